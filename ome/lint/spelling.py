"""The right spelling of versions and sizes that can't be read."""

from __future__ import annotations

import re
import unicodedata

from ome.scoring.sizes import is_readable
from ome.scoring.versions import parse_version

__all__ = ["suggest_size", "suggest_version"]


def suggest_version(text: str) -> str | None:
    """A version that parses and that the text most likely means; None when there is none."""
    plain = "".join(_ascii_digit(char) for char in text.strip())
    shape = re.match(r"([vV]?)(\d+(?:\.\d+){0,2})\.?(.*)", plain, re.ASCII | re.DOTALL)
    if shape is None:
        return None
    numbers = [str(int(part)) for part in shape[2].split(".")]
    rest = shape[3].strip()
    if rest:
        numbers += ["0"] * (3 - len(numbers))
        if rest[0] not in "+-.":
            rest = ("." if plain[shape.end(2) : shape.end(2) + 1] == "." else "-") + rest
    candidate = shape[1].lower() + ".".join(numbers) + rest.rstrip("+-.")
    return candidate if candidate != text and parse_version(candidate) else None


def suggest_size(text: str) -> str | None:
    """A size that can be read and that the text most likely means; None when there is none."""
    plain = "".join(_ascii_digit(char) for char in text)
    candidate = re.sub(r"[\s_]", "", plain).upper()
    candidate = re.sub(r"([TBM])\1+$", r"\1", candidate)
    return candidate if candidate != text and is_readable(candidate) else None


def _ascii_digit(char: str) -> str:
    value = unicodedata.decimal(char, None)
    return char if value is None else str(value)
