"""Version grammar and matching, from the documented tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.scoring.versions import parse_version, versions_match

VECTORS = Path(__file__).parents[1] / "vectors"
PARSING = json.loads((VECTORS / "version-parsing.json").read_text())["cases"]
MATCHING = json.loads((VECTORS / "version-matching.json").read_text())["cases"]
BOTH_SET = [case for case in MATCHING if None not in (case["entry"], case["model"])]


@pytest.mark.parametrize("case", PARSING, ids=lambda case: repr(case["version"]))
def test_parsing(case: dict[str, Any]) -> None:
    version = parse_version(case["version"])
    assert (version is not None) is case["parses"]
    if version is not None:
        assert list(version.numbers) == case["numbers"]
        assert version.precision == case["precision"]
        assert version.is_suffixed is (case["suffix"] is not None)


@pytest.mark.parametrize("case", BOTH_SET, ids=lambda case: f"{case['entry']}-{case['model']}")
def test_matching(case: dict[str, Any]) -> None:
    assert versions_match(case["entry"], case["operator"], case["model"]) is case["match"]


@pytest.mark.parametrize(
    "text",
    [
        "v",
        "1.",
        ".1",
        "1.2-beta",
        "1.0.0x",
        "24.01",
        "١.٢",
        "1.0.0+",
        "1..2",
        "99" * 100,
        "1.0.0..",
    ],
)
def test_what_is_no_version(text: str) -> None:
    assert parse_version(text) is None
    assert not versions_match(text, None, text)


numbers = st.integers(0, 50)
plain = st.builds("{}.{}.{}".format, numbers, numbers, numbers)


@given(plain, plain)
def test_operators_agree_with_the_numbers(entry: str, model: str) -> None:
    left = tuple(map(int, entry.split(".")))
    right = tuple(map(int, model.split(".")))
    assert versions_match(entry, "Equal", model) is (left == right)
    assert versions_match(entry, "GreaterThan", model) is (left > right)
    assert versions_match(entry, "GreaterThanOrEqual", model) is (left >= right)


@given(st.text(max_size=12))
def test_a_version_that_parses_equals_itself(text: str) -> None:
    assert versions_match(text, None, text) is (parse_version(text) is not None)
