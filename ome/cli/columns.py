"""Tables that fit a width: columns grow in turns, long cells wrap.

Source: OME "kubectl ome runtime" reference (v1.3): three spaces between columns, at most 80 columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["fit_table"]

PADDING: Final = 3
_PIECE: Final = re.compile(r"[^-_/.:]*[-_/.:]|[^-_/.:]+")


def fit_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int = 80) -> str:
    """The table within `width` columns; cells wrap at blanks, then at - _ / . and :, then anywhere.

    Where not even the headers fit, each row becomes a block of `LABEL:   value` lines.
    """
    available = width - PADDING * (len(header) - 1)
    if sum(map(len, header)) > available:
        return _blocks(header, rows)
    widths = _widths(header, rows, available)
    lines: list[str] = []
    for row in (header, *rows):
        cells = [_wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
        for at in range(max(map(len, cells))):
            parts = [
                (cell[at] if at < len(cell) else "").ljust(size)
                for cell, size in zip(cells, widths, strict=True)
            ]
            lines.append((" " * PADDING).join(parts).rstrip())
    return "\n".join(lines) + "\n"


def _blocks(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    label = max(len(name) for name in header) + 1
    blocks = [
        "\n".join(
            f"{name + ':':<{label}}{' ' * PADDING}{cell}".rstrip()
            for name, cell in zip(header, row, strict=True)
        )
        for row in rows
    ]
    return "\n\n".join(blocks) + "\n"


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """Header widths, grown one character a column a round, left to right, up to what cells need."""
    natural = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
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
        if len(lines[-1]) + len(gap) + len(word) <= width:
            lines[-1] += gap + word
        elif len(word) <= width:
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
        if len(lines[-1]) + len(piece) <= width:
            lines[-1] += piece
            continue
        if lines[-1]:
            lines.append("")
        while len(piece) > width:
            lines[-1] = piece[:width]
            lines.append("")
            piece = piece[width:]
        lines[-1] = piece
    return lines
