"""Merge patches: RFC 7386 applied to the old gives the new."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from ome.controller.patches import merge_patch, status_patch
from tests.controller.conftest import merged

Json = dict[str, Any]

VALUES = st.recursive(
    st.booleans() | st.integers(-1, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES)


def as_text(value: Any) -> str:
    """A value with its types: Python takes True for 1."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{as_text(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_text, value)) + "]"
    return repr(value)


@given(OBJECTS, OBJECTS)
def test_turns_the_old_into_the_new(old: Json, new: Json) -> None:
    before = as_text([old, new])
    patch = merge_patch(old, new)
    assert as_text(merged(old, patch)) == as_text(new)
    assert (patch == {}) == (as_text(old) == as_text(new))
    assert as_text([old, new]) == before


@given(OBJECTS, OBJECTS)
def test_says_nothing_that_holds_already(old: Json, new: Json) -> None:
    """No field of the patch can be left out."""
    patch = merge_patch(old, new)
    for key in patch:
        rest = {name: value for name, value in patch.items() if name != key}
        assert as_text(merged(old, rest)) != as_text(new)


PATCHES: list[tuple[Json, Json, Json]] = [
    ({"a": 1}, {"a": 1}, {}),
    ({"a": 1}, {"a": True}, {"a": True}),
    ({"a": [0]}, {"a": [False]}, {"a": [False]}),
    ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, {"a": [{"b": True}]}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
    ({"a": {"b": 1}, "x": 0}, {"a": {}}, {"a": {"b": None}, "x": None}),
    ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
    ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
    ({}, {"a": {}}, {"a": {}}),
]


@pytest.mark.parametrize("old, new, patch", PATCHES)
def test_patches(old: Json, new: Json, patch: Json) -> None:
    assert as_text(merge_patch(old, new)) == as_text(patch)


METADATA: Json = {"name": "x", "uid": "u", "resourceVersion": "7", "labels": {}}
PRECONDITION: Json = {"uid": "u", "resourceVersion": "7"}
STATUSES: dict[str, tuple[Json, Json, Json | None]] = {
    "the same": ({"metadata": METADATA, "status": {"a": 1}}, {"a": 1}, None),
    "another": (
        {"metadata": METADATA, "status": {"a": 1}},
        {"b": 1},
        {"metadata": PRECONDITION, "status": {"a": None, "b": 1}},
    ),
    "the first": (
        {"metadata": METADATA},
        {"a": 1},
        {"metadata": PRECONDITION, "status": {"a": 1}},
    ),
    "none, none": ({"metadata": METADATA, "status": None}, {}, None),
    "an odd one": (
        {"metadata": METADATA, "status": "odd"},
        {"a": 1},
        {"metadata": PRECONDITION, "status": {"a": 1}},
    ),
    "of an object without version": (
        {"metadata": {"name": "x"}},
        {"a": 1},
        {"metadata": {}, "status": {"a": 1}},
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_status_patches(name: str) -> None:
    raw, status, patch = STATUSES[name]
    assert status_patch(raw, status) == patch
