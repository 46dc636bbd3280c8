"""A million damaged files, for a machine that has half an hour.

    python -m tests.bridge.files.fuzz_at_length [--inputs N] [--seed S]

Each input is a valid file (or folder of files) with some of its bytes, words, lines, members,
index fields or tar headers changed. Whatever a reader makes of it must be a model that keeps every
rule, or one of our errors, within five seconds of computing. The input that breaks a reader stays
in the folder that is printed, for a look.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import numpy as np
from tqdm import tqdm

from bridge.files.umb import read_umb
from engines.errors import InvalidModelError, UnsupportedError
from tests.bridge.files.test_fuzz import COMBINED, MODELS, NUMBERS, judge
from tests.bridge.files.test_umb_fuzz import assert_sound, valid_files
from tests.bridge.files.test_umb_samples import pack

SECONDS = 5
JSON_VALUES = [None, True, -1, 0, 1, 3, 10**12, 2**63, 10**30, 0.5, "", "states", "double", [], {}]
NAMES = ["init", "deadlock", "x", "goal", "a\nResult: 1\n", "\ud800", "\x1b[2J", "../../x", "\0"]
TAR_BLOCK = 512
TAR_NAMES = [b"../../x", b"/etc/x", b"index.json", b"a" * 99, b"\xff\xfe", b""]
TAR_SIZES = [
    b"77777777777\0",
    b"-0000000001\0",
    b"00000000000\0",
    b"\x80" + b"\xff" * 11,
    b"x" * 12,
]


class Fuzzer:
    """Makes inputs from a seed and lets the readers read them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.originals = valid_files(folder)
        self.seen: Counter[str] = Counter()

    def one(self) -> None:
        """Make and read one input."""
        kind = self.random.choice(
            [self.text_files, self.combined, self.umb_bytes, self.umb_members]
        )
        outcome = kind()
        self.seen[f"{kind.__name__}: {outcome}"] += 1

    def text_files(self) -> str:
        files = dict(self.random.choice(MODELS))
        for _ in range(self.random.randint(1, 2)):
            ending = self.random.choice(sorted(files))
            files[ending] = self.changed_text(files[ending])
        if self.random.random() < 0.1:
            files = {
                f"{ending}.gz": self.changed_bytes(gzip.compress(text, 1), rarely=True)
                for ending, text in files.items()
            }
        return self.judged_text(files)

    def combined(self) -> str:
        text = self.changed_text(COMBINED)
        if self.random.random() < 0.1:
            return self.judged_text({".pexp.xz": lzma.compress(text, preset=0)})
        return self.judged_text({".pexp": text})

    def umb_bytes(self) -> str:
        plain = pack(self.random.choice(self.originals), self.folder / "f.umb").read_bytes()
        if self.random.random() < 0.4:
            plain = self.changed_header(plain)
        else:
            plain = self.changed_bytes(plain)
        squeeze = self.random.choice([bytes, bytes, bytes, gzip.compress])
        content = squeeze(plain)
        if squeeze is gzip.compress and self.random.random() < 0.5:
            content = self.changed_bytes(content)
        (self.folder / "f.umb").write_bytes(content)
        return self.judged_umb()

    def umb_members(self) -> str:
        members = dict(self.random.choice(self.originals))
        name = self.random.choice([*members, *["index.json"] * len(members)])
        if name == "index.json":
            if self.random.random() < 0.1:
                members = self.claiming_more(members)
            else:
                members[name] = self.changed_index(members[name])
        elif self.random.random() < 0.6:
            members[name] = self.changed_word(members[name])
        else:
            members[name] = self.changed_bytes(members[name])
        pack(members, self.folder / "f.umb")
        return self.judged_umb()

    def judged_text(self, files: dict[str, bytes]) -> str:
        for old in self.folder.glob("m.*"):
            old.unlink()
        for ending, text in files.items():
            (self.folder / f"m{ending}").write_bytes(text)
        return "a model" if judge(self.folder / f"m{min(files, key=by_rank)}") else "refused"

    def judged_umb(self) -> str:
        try:
            file = read_umb(self.folder / "f.umb")
        except (InvalidModelError, UnsupportedError) as error:
            if "f.umb" not in str(error):
                raise AssertionError("the message does not name the file") from error
            return "refused"
        assert_sound(file)
        return "a model"

    def changed_text(self, text: bytes) -> bytes:
        for _ in range(self.random.randint(1, 3)):
            lines = text.split(b"\n")
            place, other = (self.random.randrange(len(lines)) for _ in range(2))
            match self.random.randrange(8):
                case 0 | 1:
                    words = lines[place].split(b" ")
                    words[self.random.randrange(len(words))] = self.random.choice(NUMBERS)
                    lines[place] = b" ".join(words)
                case 2:
                    del lines[place]
                case 3:
                    lines.insert(place, lines[other])
                case 4:
                    lines[place], lines[other] = lines[other], lines[place]
                case 5:
                    at = self.random.randint(0, len(lines[place]))
                    put = self.random.randbytes(self.random.randint(0, 3))
                    lines[place] = lines[place][:at] + put + lines[place][at:]
                case 6:
                    lines[place] = lines[place][: self.random.randint(0, len(lines[place]))]
                case _:
                    lines = [b"\n".join(lines)[: self.random.randint(0, len(text))]]
            text = b"\n".join(lines)
        return text

    def changed_bytes(self, content: bytes, rarely: bool = False) -> bytes:
        if rarely and self.random.random() < 0.7:
            return content
        changed = bytearray(content)
        for _ in range(self.random.randint(1, 4)):
            place = self.random.randint(0, max(len(changed) - 1, 0))
            removed = self.random.choice([0, 1, 1, 1, 8, 512])
            put = self.random.randbytes(self.random.choice([removed, 0, 1, 7]))
            changed[place : place + removed] = put
        return bytes(changed)

    def changed_header(self, tar: bytes) -> bytes:
        """Change a tar header's name, size or type, with its checksum made right again."""
        changed = bytearray(tar)
        starts = [
            start
            for start in range(0, len(tar) - TAR_BLOCK, TAR_BLOCK)
            if tar[start + 257 : start + 262] == b"ustar"
        ]
        if not starts:
            return bytes(changed)
        start = self.random.choice(starts)
        match self.random.randrange(3):
            case 0:
                name = self.random.choice(TAR_NAMES)
                changed[start : start + 100] = name.ljust(100, b"\0")
            case 1:
                changed[start + 124 : start + 136] = self.random.choice(TAR_SIZES)
            case _:
                changed[start + 156] = self.random.choice(b"0123456xgL\0")
        block = changed[start : start + TAR_BLOCK]
        block[148:156] = b" " * 8
        changed[start + 148 : start + 156] = f"{sum(block):06o}\0 ".encode()
        return bytes(changed)

    def changed_word(self, member: bytes) -> bytes:
        words = bytearray(member)
        word = self.random.randrange(max(len(words) // 8, 1))
        numbers = [np.nan, np.inf, -1.0, 0.0, 0.5, 1e300, 5e-324]
        number = self.random.choice(
            [
                self.random.choice([0, 1, 2, 3, 4, 5, 10**12, 2**63]).to_bytes(8, "little"),
                np.float64(self.random.choice(numbers)).tobytes(),
                self.random.randbytes(8),
            ]
        )
        words[8 * word : 8 * word + 8] = number
        return bytes(words)

    def claiming_more(self, members: dict[str, bytes]) -> dict[str, bytes]:
        """Claim huge counts that agree with each other, and leave out members."""
        index = json.loads(members["index.json"])
        claimed = self.random.choice([10**9, 10**12, 2**62])
        for entity in ("states", "choices", "branches"):
            index["transition-system"][f"#{entity}"] = claimed
        kept = {name: text for name, text in members.items() if self.random.random() < 0.2}
        kept.pop("index.json", None)
        return {"index.json": json.dumps(index).encode(), **kept}

    def changed_index(self, text: bytes) -> bytes:
        index = json.loads(text)
        for _ in range(self.random.randint(1, 3)):
            place = index
            while True:
                keys = list(place) if isinstance(place, dict) else list(range(len(place)))
                if not keys:
                    break
                key = self.random.choice(keys)
                if isinstance(place[key], dict | list) and self.random.random() < 0.8:
                    place = place[key]
                    continue
                if self.random.random() < 0.75:
                    place[key] = self.random.choice([*JSON_VALUES, *NAMES])
                elif isinstance(place, dict) and self.random.random() < 0.5:
                    place[self.random.choice(NAMES)] = place.pop(key)
                else:
                    del place[key]
                break
        return json.dumps(index).encode()


def by_rank(ending: str) -> int:
    """Order endings so that the one that leads to the others comes first."""
    return 0 if ending.startswith((".tra", ".pexp")) else 1


def _hang(signum: int, frame: object) -> None:
    del signum, frame
    raise TimeoutError(f"a reader took more than {SECONDS} seconds")


@click.command()
@click.option("--inputs", default=1_000_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(inputs: int, seed: int) -> None:
    """Read damaged files until all are read or one breaks a reader."""
    signal.signal(signal.SIGPROF, _hang)
    folder = Path(
        tempfile.mkdtemp(prefix="fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    )
    fuzzer = Fuzzer(folder, seed)
    started = time.perf_counter()
    for number in tqdm(range(inputs), disable=None):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            fuzzer.one()
        except BaseException:
            print(f"input {number} of seed {seed} breaks a reader; it is in {folder}")
            raise
    signal.setitimer(signal.ITIMER_PROF, 0)
    for old in folder.iterdir():
        old.unlink()
    folder.rmdir()
    print(f"{inputs} inputs in {time.perf_counter() - started:.0f} s, seed {seed}")
    for outcome, count in sorted(fuzzer.seen.items()):
        print(f"{count:9} {outcome}")


if __name__ == "__main__":
    main()
