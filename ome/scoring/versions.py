"""Model version matching: the grammar of versions and what an entry's operator means.

Source: OME "Model version matching" document (v1.3). The entry stands left of the operator, so its
version is an *upper* limit for the model's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

__all__ = ["Version", "parse_version", "parsed_match", "versions_match"]

_NUMBERS: Final = re.compile(
    r"(v?)(0|[1-9][0-9]*)(?:\.(0|[1-9][0-9]*)(?:\.(0|[1-9][0-9]*)(.*))?)?", re.ASCII | re.DOTALL
)
_MAX_NUMBER: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Version:
    """A parsed version: three numbers (0 where missing), how many were written, and its suffixes."""

    numbers: tuple[int, int, int]
    precision: int
    has_v: bool
    suffixes: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = ((), (), ())

    @property
    def is_suffixed(self) -> bool:
        """Whether it has a build, pre-release or dev part, which defeats every operator."""
        return any(self.suffixes)


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """Parse a version; None when it isn't one (such as `1.08.0`, `V1.0.0` or the empty string)."""
    shape = _NUMBERS.fullmatch(text)
    if shape is None:
        return None
    written = [int(part) for part in shape.groups()[1:4] if part is not None]
    if any(number > _MAX_NUMBER for number in written):
        return None
    suffixes = _split_suffixes(shape[5] or "")
    if suffixes is None:
        return None
    first, second, third = (*written, 0, 0)[:3]
    return Version((first, second, third), len(written), bool(shape[1]), suffixes)


def _split_suffixes(
    rest: str,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None:
    """Cut build at the first `+`, then pre-release at the first `-`, then dev at the first `.`."""
    parts: list[tuple[str, ...]] = []
    for mark in "+-.":
        rest, found, suffix = rest.partition(mark)
        identifiers = tuple(suffix.split(".")) if found else ()
        if any(not identifier for identifier in identifiers):
            return None
        parts.append(identifiers)
    if rest:
        return None
    return parts[0], parts[1], parts[2]


def versions_match(entry: str, operator: str | None, model: str) -> bool:
    """Whether a model's version satisfies an entry's. Malformed versions never match."""
    return parsed_match(parse_version(entry), operator, parse_version(model))


def parsed_match(left: Version | None, operator: str | None, right: Version | None) -> bool:
    """The same for versions that are parsed already; None stands for a malformed one."""
    if left is None or right is None:
        return False
    if operator in (None, "", "Equal") or left.is_suffixed or right.is_suffixed:
        return left.numbers == right.numbers and left.suffixes == right.suffixes
    if left.precision != right.precision or left.has_v != right.has_v:
        return False
    if operator == "GreaterThan":
        return left.numbers > right.numbers
    if operator == "GreaterThanOrEqual":
        return left.numbers >= right.numbers
    return left.numbers == right.numbers
