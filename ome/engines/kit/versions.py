"""The order of an engine's versions."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Order", "order_of"]

Order = tuple[int, ...]

_NUMBER: Final = r"(\d{1,9})"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?(?:(rc|\.post){_NUMBER})?"
)
_STAGES: Final = {"rc": -1, None: 0, ".post": 1}


def order_of(version: str) -> Order | None:
    """A key that sorts versions (`.post1` after the release, `rc1` before), None if it is none."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    *numbers, stage, last = found.groups()
    return (*(int(number or 0) for number in numbers), _STAGES[stage], int(last or 0))
