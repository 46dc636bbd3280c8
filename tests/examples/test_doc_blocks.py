"""How the blocks of a page are found, and what their marks mean."""

from __future__ import annotations

import pytest

from tests.examples.doc_blocks import blocks_of, commands_of, missing_line


def page(tmp_path, text: str):
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_blocks_carry_their_marks(tmp_path):
    text = (
        "A\n\n<!-- run: prism; slow; N=64 as N=4 -->\n```\nprism-gpu m -const N=64\n```\n"
        "<!-- not run: opens a window -->\n```sh\nprism-gpu -gui\n```\n\n```python\nprint(1)\n```\n"
        "```prism\ndtmc\n```\n"
    )
    first, second, third, fourth = blocks_of(page(tmp_path, text))
    assert (first.line, first.needs, first.not_run) == (5, ("prism", "slow"), "")
    assert first.runnable == "prism-gpu m -const N=4\n"
    assert (second.language, second.not_run) == ("sh", "opens a window")
    assert (third.language, third.text, third.needs) == ("python", "print(1)\n", ())
    assert fourth.language == "prism"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```\nx\n", "without an end"),
        ("```ruby\nx\n```\n", "ruby are not known"),
        ("<!-- run: often -->\n```\nx\n```\n", "'often' is not known"),
        ("```text\nprism-gpu m.sm\n```\n", "are not run"),
    ],
)
def test_a_block_that_would_escape_is_an_error(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        blocks_of(page(tmp_path, text))


def test_a_mark_cannot_shrink_what_is_not_there(tmp_path):
    (block,) = blocks_of(page(tmp_path, "<!-- run: N=9 as N=1 -->\n```\nx\n```\n"))
    with pytest.raises(ValueError, match="not there"):
        block.runnable  # noqa: B018


def test_commands_and_the_lines_expected_of_them():
    text = "$ one \\\n    -a\nfirst\n…\n$ two\n\n$ three\nlast\n"
    assert commands_of(text) == [("one -a", ["first", "…"]), ("two", []), ("three", ["last"])]


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        ([], None),
        (["b"], None),
        (["a", "c … d"], None),
        (["c", "a"], "c"),
        (["b", "a"], "a"),
        (["c … e"], "c … e"),
        (["c"], "c"),
    ],
)
def test_lines_are_looked_for_in_their_order(expected, missing):
    assert missing_line(expected, "a\nb\nc 1.5 d\n") == missing
