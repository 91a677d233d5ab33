"""Kubernetes quantities (`500m`, `80Gi`, `1e3`): the number behind the text.

The `kubernetes` package has this too, but importing it costs more than a whole render.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

__all__ = ["QUANTITY_PATTERN", "InvalidQuantity", "parse_quantity"]

# The pattern that the API server's schema has for a quantity.
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_SHAPE: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]{1,4}))?",
    re.ASCII,
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class InvalidQuantity(ValueError):
    """The value is no quantity."""


def parse_quantity(value: object) -> Decimal:
    """The number that a quantity stands for. Raises InvalidQuantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise InvalidQuantity("a quantity is a number or a string such as 80Gi")
    text = str(value)
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise InvalidQuantity(f'"{text}" is not a quantity')
    number, suffix, exponent = shape.groups()
    if suffix in _BINARY:
        return Decimal(number) * (1 << _BINARY[suffix])
    return Decimal(number).scaleb(_DECIMAL.get(suffix, 0) if suffix else int(exponent or 0))
