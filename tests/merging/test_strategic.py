"""The merge: documented cases, the order of keyed lists, and its algebra."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.merging.schema import COMPONENT, CONTAINER, RUNTIME_SPEC
from ome.merging.strategic import is_unset, merge, merge_chain

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/inheritance-merge.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["title"])
def test_documented_merges(case: dict[str, Any]) -> None:
    assert merge(case["parent"], case["child"], RUNTIME_SPEC) == case["merged"]


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [("BX", "ABCX"), ("XB", "ACXB"), ("CA", "BCA"), ("XY", "ABCXY"), ("", "ABC")],
)
def test_order_of_keyed_lists(overlay: str, expected: str) -> None:
    def env(names: str) -> dict[str, Any]:
        return {"env": [{"name": name, "value": name} for name in names]}

    merged = merge(env("ABC"), env(overlay), CONTAINER)
    assert "".join(item["name"] for item in merged["env"]) == expected


@pytest.mark.parametrize("unset", [None, "", [], {}])
def test_an_unset_value_changes_nothing(unset: Any) -> None:
    base = {"image": "a", "args": ["x"], "labels": {"a": "b"}}
    for field in base:
        assert merge(base, {field: unset}, COMPONENT) == base


@pytest.mark.parametrize(
    ("field", "value"), [("maxReplicas", 0), ("hostNetwork", False), ("hostPID", False)]
)
def test_zero_and_false_that_count_as_unset(field: str, value: Any) -> None:
    assert merge({field: 5}, {field: value}, COMPONENT) == {field: 5}


@pytest.mark.parametrize(
    ("field", "value"), [("minReplicas", 0), ("disabled", False), ("hostUsers", False)]
)
def test_zero_and_false_that_count_as_set(field: str, value: Any) -> None:
    assert merge({field: True}, {field: value}, COMPONENT) == {field: value}


def test_an_empty_string_in_a_map_is_a_value() -> None:
    base = {"servicePortAppProtocols": {"http": "h2c"}}
    overlay = {"servicePortAppProtocols": {"http": ""}}
    assert merge(base, overlay, COMPONENT) == overlay


def test_an_empty_object_with_a_meaning_is_kept_where_there_is_none() -> None:
    merged = merge(
        {"volumes": [{"name": "a"}]}, {"volumes": [{"name": "a", "emptyDir": {}}]}, COMPONENT
    )
    assert merged == {"volumes": [{"name": "a", "emptyDir": {}}]}
    assert merge({}, {"leader": {}, "command": [], "image": ""}, COMPONENT) == {"leader": {}}


def test_ports_of_one_number_and_two_protocols_are_kept_apart() -> None:
    udp = {"containerPort": 53, "protocol": "UDP"}
    base = {"ports": [{"containerPort": 53, "name": "tcp"}, {**udp, "name": "udp"}]}
    assert merge(base, {"ports": [{**udp, "name": "dns"}]}, CONTAINER)["ports"] == [
        {"containerPort": 53, "name": "tcp"},
        {**udp, "name": "dns"},
    ]
    assert merge({"ports": [{"containerPort": 1}]}, base, CONTAINER)["ports"] == [
        {"containerPort": 1},
        *base["ports"],
    ]


def test_an_autoscaler_is_taken_whole() -> None:
    base = {"autoscaler": {"class": "KEDA", "keda": {"triggers": [{"type": "cron"}]}}}
    overlay = {"autoscaler": {"class": "None"}}
    assert merge(base, overlay, COMPONENT) == overlay


def test_a_null_list_of_a_serialised_object_counts_as_absent() -> None:
    assert merge({"containers": None}, {"containers": [{"name": "a"}]}, COMPONENT) == {
        "containers": [{"name": "a"}]
    }


def test_items_of_the_overlay_with_one_key_merge_into_one() -> None:
    base = {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
    overlay = {"env": [{"name": "B", "value": "1"}, {"name": "B", "value": "2"}]}
    merged = merge(base, overlay, CONTAINER)["env"]
    assert merged == [*base["env"], {"name": "B", "value": "2"}]


def test_a_list_with_an_item_that_lacks_its_key_is_replaced() -> None:
    assert merge({"env": [{"name": "A"}]}, {"env": [{"value": "1"}]}, CONTAINER) == {
        "env": [{"value": "1"}]
    }


names = st.sampled_from(["A", "B", "C", "D"])
texts = st.sampled_from(["x", "y", "z", ""])
string_maps = st.dictionaries(names, st.sampled_from(["x", "y", ""]), max_size=3)
env_items = st.fixed_dictionaries({"name": names}, optional={"value": texts})
envs = st.lists(env_items, max_size=4, unique_by=lambda item: item["name"])
volumes = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={"emptyDir": st.fixed_dictionaries({}, optional={"medium": texts})},
    ),
    max_size=3,
    unique_by=lambda item: item["name"],
)
containers = st.fixed_dictionaries(
    {},
    optional={
        "image": texts,
        "args": st.lists(st.sampled_from(["--a", "--b"]), max_size=2),
        "env": envs,
        "resources": st.fixed_dictionaries(
            {}, optional={"limits": string_maps, "requests": string_maps}
        ),
    },
)
components = st.fixed_dictionaries(
    {},
    optional={
        "runner": containers,
        "nodeSelector": string_maps,
        "volumes": volumes,
        "minReplicas": st.integers(0, 2),
        "maxReplicas": st.integers(0, 2),
        "hostNetwork": st.booleans(),
        "tolerations": st.lists(st.fixed_dictionaries({"key": names}), max_size=2),
        "worker": st.fixed_dictionaries(
            {}, optional={"runner": containers, "size": st.integers(1, 3)}
        ),
    },
)


def unordered(value: Any) -> Any:
    """The value with the items of keyed lists by key, and what says nothing left out."""
    if isinstance(value, dict):
        cleaned = {key: unordered(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if not is_unset(item)}
    if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
        return {item["name"]: unordered({**item, "name": "-" + item["name"]}) for item in value}
    return value


@given(components, components)
def test_merging_is_idempotent_and_leaves_its_inputs_alone(base: Any, overlay: Any) -> None:
    before = copy.deepcopy((base, overlay))
    once = merge(base, overlay, COMPONENT)
    assert merge(once, overlay, COMPONENT) == once
    assert (base, overlay) == before


@given(components)
def test_merging_with_nothing_is_the_identity(value: Any) -> None:
    assert merge(value, {}, COMPONENT) == value
    assert unordered(merge({}, value, COMPONENT)) == unordered({**value, **_zeros(value)})


def _zeros(value: Any) -> dict[str, Any]:
    """The fields whose zero or false is left out when nothing stands below."""
    return {key: None for key in ("maxReplicas", "hostNetwork") if key in value and not value[key]}


@given(components, components, components)
def test_a_chain_merges_the_same_in_any_grouping(a: Any, b: Any, c: Any) -> None:
    left = merge(merge(a, b, COMPONENT), c, COMPONENT)
    right = merge(a, merge(b, c, COMPONENT), COMPONENT)
    assert unordered(left) == unordered(right)
    chain = merge_chain([a, b, c], COMPONENT)
    assert unordered(chain) == unordered(
        merge(merge(merge({}, a, COMPONENT), b, COMPONENT), c, COMPONENT)
    )


@given(components, components)
def test_a_set_value_of_the_overlay_always_wins(base: Any, overlay: Any) -> None:
    merged = merge(base, overlay, COMPONENT)
    for field in ("minReplicas", "tolerations"):
        if not is_unset(overlay.get(field)):
            assert merged[field] == overlay[field]
    assert {**base.get("nodeSelector", {}), **overlay.get("nodeSelector", {})} == (
        merged.get("nodeSelector") or {}
    )
