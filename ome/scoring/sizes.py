"""Model sizes and size ranges. Source: OME "Model size range matching" document (v1.3).

A size that can't be read counts as 0, as documented; `ome lint` says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

__all__ = ["is_readable", "parse_size", "range_distance", "range_text", "size_fits"]

_UNITS: Final = {"T": 12, "B": 9, "M": 6}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_LARGEST: Final = 308
_ZERO: Final = Decimal(0)

Range = Mapping[str, Any]


@lru_cache(maxsize=4096)
def parse_size(text: str) -> Decimal:
    """The number of parameters that a text such as `3.21B` stands for; 0 when it can't be read."""
    read = _read(text)
    return _ZERO if read is None else read


def is_readable(text: str) -> bool:
    """Whether a size is a number with an optional upper-case M, B or T."""
    return _read(text) is not None


def _read(text: str) -> Decimal | None:
    unit = _UNITS.get(text[-1:], 0)
    number = text[:-1] if unit else text
    if len(number) > 400 or not _NUMBER.fullmatch(number):
        return None
    value = Decimal(number)
    return value.scaleb(unit) if abs(value.adjusted()) <= _LARGEST else None


def size_fits(size: str | None, sizes: Range | None) -> bool:
    """Whether a model's size is inside a range, bounds included; no range or no size fits."""
    if not sizes or not size:
        return True
    value = parse_size(size)
    least, most = sizes.get("min"), sizes.get("max")
    if least is not None and value < parse_size(least):
        return False
    return most is None or value <= parse_size(most)


def range_text(sizes: Range) -> str:
    """A range as messages show it: `[2B, 4B]`, `[70B, inf)`, `(-inf, 13B]`."""
    least, most = sizes.get("min"), sizes.get("max")
    left = "(-inf" if least is None else f"[{least}"
    right = "inf)" if most is None else f"{most}]"
    return f"{left}, {right}"


def range_distance(size: str | None, sizes: Range | None) -> Decimal:
    """How far a range's bounds are from a size, added up; 0 without a range or a size."""
    if not sizes or not size:
        return _ZERO
    value = parse_size(size)
    bounds = [sizes[name] for name in ("min", "max") if sizes.get(name) is not None]
    return sum((abs(parse_size(bound) - value) for bound in bounds), _ZERO)
