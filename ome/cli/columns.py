"""Tables and cells in columns of a terminal: padding, wrapping, shortening.

Source: OME "kubectl ome runtime" reference (v1.3): three spaces between columns, at most 80 columns.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

__all__ = [
    "clip",
    "clip_identity",
    "display_width",
    "fingerprint",
    "fit_table",
    "printable",
    "table",
]

PADDING: Final = 3
_GAP: Final = " " * PADDING
_ELLIPSIS: Final = "..."
_PIECE: Final = re.compile(r"[^-_/.:]*[-_/.:]|[^-_/.:]+")


def display_width(text: str) -> int:
    """How many columns a terminal gives to a text: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def printable(text: str) -> str:
    """The text with everything that a terminal would act on (line breaks, escapes, text direction) written
    out."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def fingerprint(text: str) -> str:
    """`#` and eight hex digits that tell a shortened text from similar ones."""
    return "#" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def clip(text: str, width: int) -> str:
    """The start of a text, ending in `...` where it is wider than `width`."""
    shown = printable(text)
    if display_width(shown) <= width:
        return shown
    return _start(shown, width - len(_ELLIPSIS)) + _ELLIPSIS


def clip_identity(text: str, width: int) -> str:
    """A name that is wider than `width`: its start and end around `...`, and a fingerprint of it all."""
    shown = printable(text)
    if display_width(shown) <= width:
        return shown
    mark = fingerprint(text)
    left = width - len(mark) - len(_ELLIPSIS)
    if left < 2:
        return mark[:width]
    end = _start(shown[::-1], left // 2)[::-1]
    return _start(shown, left - left // 2) + _ELLIPSIS + end + mark


def _start(text: str, width: int) -> str:
    for at, character in enumerate(text):
        width -= _width(character)
        if width < 0:
            return text[:at]
    return text


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with three spaces between columns and no trailing blanks; one line a row."""
    shown = [header, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)]
    lines = [_GAP.join(map(_pad, row, widths)).rstrip() for row in shown]
    return "\n".join(lines) + "\n"


def fit_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int = 80) -> str:
    """The table within `width` columns; cells wrap at blanks, then at - _ / . and :, then anywhere.

    Where not even the headers fit, each row becomes a block of `LABEL:   value` lines.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    available = width - PADDING * (len(header) - 1)
    if sum(map(display_width, header)) > available:
        return _blocks(header, shown)
    widths = _widths(header, shown, available)
    lines: list[str] = []
    for row in (header, *shown):
        cells = [_wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
        for at in range(max(map(len, cells))):
            parts = [
                _pad(cell[at] if at < len(cell) else "", size)
                for cell, size in zip(cells, widths, strict=True)
            ]
            lines.append(_GAP.join(parts).rstrip())
    return "\n".join(lines) + "\n"


def _blocks(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    label = max(len(name) for name in header) + 1
    blocks = [
        "\n".join(
            f"{name + ':':<{label}}{_GAP}{cell}".rstrip()
            for name, cell in zip(header, row, strict=True)
        )
        for row in rows
    ]
    return "\n\n".join(blocks) + "\n"


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """Header widths, grown one character a column a round, left to right, up to what cells need."""
    natural = [max(map(display_width, column)) for column in zip(header, *rows, strict=True)]
    widths = [len(name) for name in header]
    left = available - sum(widths)
    while left > 0:
        growing = [at for at in range(len(widths)) if widths[at] < natural[at]]
        if not growing:
            break
        for at in growing[:left]:
            widths[at] += 1
        left -= len(growing[:left])
    return widths


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        gap = " " if lines[-1] else ""
        if display_width(lines[-1] + gap + word) <= width:
            lines[-1] += gap + word
        elif display_width(word) <= width:
            lines.append(word)
        else:
            pieces = _pack(word, width)
            if lines == [""]:
                lines = pieces
            else:
                lines.extend(pieces)
    return lines


def _pack(word: str, width: int) -> list[str]:
    """A word that is too long: packed greedily in pieces, each cut hard if it is still too long."""
    lines = [""]
    for piece in _PIECE.findall(word):
        if display_width(lines[-1] + piece) <= width:
            lines[-1] += piece
            continue
        if lines[-1]:
            lines.append("")
        while display_width(piece) > width:
            lines[-1] = _start(piece, width) or piece[:1]
            piece = piece[len(lines[-1]) :]
            if piece:
                lines.append("")
        lines[-1] += piece
    return lines
