"""Quantities: the number behind the text."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api.quantities import QUANTITY_PATTERN, InvalidQuantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8),
        (8, 8),
        (0.5, Decimal("0.5")),
        ("500m", Decimal("0.5")),
        ("80Gi", 80 * 2**30),
        ("80G", 80 * 10**9),
        ("1e3", 1000),
        ("1.5k", 1500),
        (".5", Decimal("0.5")),
        ("-1", -1),
        ("1E", 10**18),
        ("1Ei", 2**60),
    ],
)
def test_quantities(text: object, number: object) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize(
    "text", ["", "eight", "8 Gi", "8GB", "1_000", "inf", "٨", True, None, [], "1e99999"]
)
def test_what_is_none(text: object) -> None:
    with pytest.raises(InvalidQuantity):
        parse_quantity(text)


@given(st.text(alphabet="0123456789.+-eEkKMGTPmnui", max_size=8))
def test_agrees_with_the_api_servers_pattern(text: str) -> None:
    accepted = re.fullmatch(QUANTITY_PATTERN, text, re.ASCII) is not None
    try:
        parse_quantity(text)
    except InvalidQuantity:
        assert not accepted or re.search(r"[eE][+-]?([0-9]*\.|[0-9]{5})", text)
    else:
        assert accepted
