"""Sizes and ranges, from the documented tables."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.scoring.sizes import is_readable, parse_size, range_distance, range_text, size_fits

VECTORS = Path(__file__).parents[1] / "vectors"
SIZES = json.loads((VECTORS / "size-parsing.json").read_text())["cases"]
RANGES = json.loads((VECTORS / "size-range.json").read_text())["cases"]


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case["text"])
def test_documented_sizes(case: dict[str, Any]) -> None:
    assert parse_size(case["text"]) == case["parameters"]


@pytest.mark.parametrize("case", RANGES, ids=lambda case: case["where"])
def test_documented_ranges(case: dict[str, Any]) -> None:
    sizes = {key: case[key] for key in ("min", "max") if case[key] is not None}
    assert size_fits(case["modelParameterSize"], sizes) is case["passes"]
    if "rangeText" in case:
        assert range_text(sizes) == case["rangeText"]


@pytest.mark.parametrize(
    "text",
    [
        "4b",
        "7 B",
        "7BB",
        "B",
        "",
        "inf",
        "-inf",
        "nan",
        "0x10",
        "1_000",
        "٣B",
        " 7B",
        "1e999",
        "9" * 500,
        "1e400B",
    ],
)
def test_what_can_not_be_read_counts_as_zero(text: str) -> None:
    assert parse_size(text) == 0
    assert not is_readable(text)


@pytest.mark.parametrize(
    ("text", "value"), [("+7B", 7 * 10**9), ("1e3", 1000), (".5B", 5 * 10**8), ("0", 0)]
)
def test_signs_and_exponents_are_read(text: str, value: int) -> None:
    assert parse_size(text) == value
    assert is_readable(text)


def test_distance_is_exact() -> None:
    assert range_distance("3.21B", {"min": "1B", "max": "8B"}) == Decimal(7_000_000_000)
    assert range_distance("0.5", {"min": "0.25"}) == Decimal("0.25")
    assert range_distance(None, {"min": "1B"}) == range_distance("1B", None) == 0


@given(st.text(max_size=10))
def test_no_text_breaks_it(text: str) -> None:
    assert isinstance(parse_size(text), Decimal)
