"""Cells and tables are measured in columns of a terminal, not in characters."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.cli.columns import clip, clip_identity, display_width, fit_table, printable, table
from ome.cli.target import terminal_width


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("abc", 3), ("界", 2), ("e\u0301", 1), ("ﬀ", 1), ("🙂", 2)]
)
def test_widths(text: str, width: int) -> None:
    assert display_width(text) == width


def test_wide_characters_line_up() -> None:
    assert table(("A", "B"), [("界界", "x"), ("abc", "y")]) == "A      B\n界界   x\nabc    y\n"
    wrapped = fit_table(("A", "B"), [("界界界", "x")], width=8)
    assert wrapped == "A      B\n界界   x\n界\n"
    # Not even one wide character fits the column: it stands there all the same.
    assert fit_table(("A", "B"), [("界", "x")], width=5) == "A   B\n界   x\n"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcdef", 5, "ab..."),
        ("界界界", 5, "界..."),
        ("a\nb", 4, r"a\nb"),
        ("a\nbc", 4, "a..."),
    ],
)
def test_clip(text: str, width: int, expected: str) -> None:
    assert clip(text, width) == expected


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc", 3, "abc"),
        ("a" * 24 + "x" + "z" * 38, 59, "a" * 24 + "..." + "z" * 23 + "#32627e25"),
        ("a" * 24 + "y" + "z" * 38, 59, "a" * 24 + "..." + "z" * 23 + "#e93d9e69"),
        ("a" * 24 + "x" + "z" * 38, 37, "a" * 13 + "..." + "z" * 12 + "#32627e25"),
        ("a" * 24 + "x" + "z" * 38, 9, "#32627e25"),
        ("a" * 24 + "x" + "z" * 38, 4, "#326"),
    ],
)
def test_clip_identity(text: str, width: int, expected: str) -> None:
    """The digests are of OME's own documents: equal names look equal there and here."""
    assert clip_identity(text, width) == expected


@given(st.text(max_size=80), st.integers(10, 60))
def test_nothing_is_wider_than_asked(text: str, width: int) -> None:
    for shown in (clip(text, width), clip_identity(text, width)):
        assert display_width(shown) <= width
        assert shown.isprintable()
    if display_width(printable(text)) <= width:
        assert clip(text, width) == clip_identity(text, width) == printable(text)


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __init__(self, *, terminal: bool) -> None:
            self._terminal = terminal

        def isatty(self) -> bool:
            return self._terminal

        def fileno(self) -> int:
            return 1

    monkeypatch.setattr(sys, "stdout", Stream(terminal=False))
    assert terminal_width() is None
    monkeypatch.setattr(sys, "stdout", Stream(terminal=True))
    monkeypatch.setattr("os.get_terminal_size", lambda _: Size(72))
    assert terminal_width() == 72
    monkeypatch.setattr("os.get_terminal_size", lambda _: Size(0))
    assert terminal_width() is None

    def fails(_: int) -> Size:
        raise OSError(25, "not a terminal after all")

    monkeypatch.setattr("os.get_terminal_size", fails)
    assert terminal_width() is None


class Size:
    def __init__(self, columns: int) -> None:
        self.columns = columns
