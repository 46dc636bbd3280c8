"""A run as it looks on a terminal, drawn as SVG.

    python examples/benchmarks/terminal_picture.py docs/terminal.svg

The run is made anew, by the prism-gpu of this checkout and without PRISM; what it prints before the
first property is left out, and the picture says so.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "prism-gpu examples/models/cluster.sm -const N=64 -pf 'S=? [ \"premium\" ]'"
FIRST = "Model checking:"
STRONG = ("Result:", "States:", "Transitions:", "prism-gpu:")
LEFT, TOP, LINE, COLUMN = 18, 56, 19, 8.1
"""Pixels: of margins, and of a line's and a letter's place."""


def printed() -> list[str]:
    """Run the command, and return its lines from the first property on, none of them empty."""
    words = [sys.executable, "-m", "bridge", *shlex.split(COMMAND)[1:], "-frontend", "builtin"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line]
    start = next(number for number, line in enumerate(lines) if line.startswith(FIRST))
    return lines[start:]


def drawn(lines: list[str]) -> str:
    """Return the picture of a command and what it printed."""
    texts = [("#8bd5ca", f"$ {COMMAND}"), ("#6e738d", "…")]
    texts += [("#ffffff" if line.startswith(STRONG) else "#a5adcb", line) for line in lines]
    width = LEFT * 2 + COLUMN * max(len(text) for _, text in texts)
    height = TOP + LINE * len(texts)
    rows = [
        f'<text x="{LEFT}" y="{TOP + LINE * number}" fill="{colour}">{escape(text)}</text>'
        for number, (colour, text) in enumerate(texts)
    ]
    lights = [
        f'<circle cx="{22 + 20 * number}" cy="20" r="6" fill="{colour}"/>'
        for number, colour in enumerate(("#ed8796", "#eed49f", "#a6da95"))
    ]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
            'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13.4" '
            'style="white-space: pre">',
            f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#24273a"/>',
            *lights,
            *rows,
            "</svg>\n",
        )
    )


def main() -> None:
    """Make the run and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("picture", type=Path, help="an .svg")
    parser.parse_args().picture.write_text(drawn(printed()), encoding="utf-8")


if __name__ == "__main__":
    main()
