"""Directives: Kubernetes' cases, what differs, where they find nothing, and their algebra."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ome.api.directives import MERGE_KEYS, is_directive
from ome.merging.directives import Unmatched, remove, settled
from ome.merging.schema import (
    COMPONENT,
    CONTAINER,
    POD_FIELDS,
    RUNTIME_SPEC,
    Keyed,
    StringMap,
    Struct,
    Whole,
    naming,
)
from ome.merging.strategic import merge, merge_chain

Json = dict[str, Any]
A = {"name": "A", "value": "1"}
B = {"name": "B", "value": "2"}
C = {"name": "C", "value": "3"}
GONE = {"$patch": "delete"}
PROBE = {"httpGet": {"port": 80}, "periodSeconds": 5}

CASES: list[tuple[str, Json, Json, Json]] = [
    ("an item of a keyed list", {"env": [A, B]}, {"env": [{"name": "A", **GONE}]}, {"env": [B]}),
    (
        "every item with the key",
        {"env": [A, B, {**A, "value": "9"}]},
        {"env": [{"name": "A", **GONE}]},
        {"env": [B]},
    ),
    ("the last item: the list goes", {"env": [A]}, {"env": [{"name": "A", **GONE}]}, {}),
    (
        "an item, and others of the list merge",
        {"env": [A, B, C]},
        {"env": [{"name": "C", "value": "x"}, {"name": "A", **GONE}]},
        {"env": [B, {"name": "C", "value": "x"}]},
    ),
    (
        "an item that is added anew comes last",
        {"env": [A, B]},
        {"env": [{"name": "A", **GONE}, {"name": "A", "valueFrom": {"x": "y"}}]},
        {"env": [B, {"name": "A", "valueFrom": {"x": "y"}}]},
    ),
    (
        "other fields of a deleting item don't count",
        {"env": [A, B]},
        {"env": [{"name": "A", "value": "1", **GONE}]},
        {"env": [B]},
    ),
    (
        "an object",
        {"readinessProbe": PROBE, "image": "a"},
        {"readinessProbe": GONE},
        {"image": "a"},
    ),
    (
        "an object, whatever stands beside the directive",
        {"readinessProbe": PROBE},
        {"readinessProbe": {**GONE, "periodSeconds": 9}},
        {},
    ),
    (
        "a map",
        {"resources": {"limits": {"cpu": "1"}}},
        {"resources": {"limits": GONE}},
        {"resources": {}},
    ),
    (
        "an object is replaced",
        {"readinessProbe": PROBE},
        {"readinessProbe": {"$patch": "replace", "tcpSocket": {"port": 1}}},
        {"readinessProbe": {"tcpSocket": {"port": 1}}},
    ),
    (
        "an object is replaced by an empty one",
        {"readinessProbe": PROBE},
        {"readinessProbe": {"$patch": "replace"}},
        {"readinessProbe": {}},
    ),
    (
        "a keyed list is replaced",
        {"env": [A, B]},
        {"env": [{"$patch": "replace"}, C]},
        {"env": [C]},
    ),
    (
        "wherever the replacing item stands, and deletions beside it are dropped",
        {"env": [A, B]},
        {"env": [C, {"name": "", "$patch": "replace"}, {"name": "A", **GONE}]},
        {"env": [C]},
    ),
    ("a keyed list is replaced by nothing", {"env": [A]}, {"env": [{"$patch": "replace"}]}, {}),
    (
        "keys are retained",
        {"readinessProbe": PROBE},
        {
            "readinessProbe": {
                "$retainKeys": ["periodSeconds", "tcpSocket"],
                "tcpSocket": {"port": 1},
            }
        },
        {"readinessProbe": {"periodSeconds": 5, "tcpSocket": {"port": 1}}},
    ),
    (
        "keys of an item are retained, and its place",
        {"env": [A, B]},
        {"env": [{"name": "A", "$retainKeys": ["name", "valueFrom"], "valueFrom": {"x": "y"}}]},
        {"env": [{"name": "A", "valueFrom": {"x": "y"}}, B]},
    ),
    (
        "the key of an item stays",
        {"env": [A]},
        {"env": [{"name": "A", "$retainKeys": []}]},
        {"env": [{"name": "A"}]},
    ),
    (
        "words of a list, wherever they stand",
        {"args": ["--a", "--b", "--a"]},
        {"$deleteFromPrimitiveList/args": ["--a"]},
        {"args": ["--b"]},
    ),
    ("all words of a list", {"args": ["--a"]}, {"$deleteFromPrimitiveList/args": ["--a"]}, {}),
    (
        "words, and the list is set",
        {"args": ["--a"]},
        {"$deleteFromPrimitiveList/args": ["--a"], "args": ["--a", "--c"]},
        {"args": ["--a", "--c"]},
    ),
    (
        "a port on one of two protocols",
        {"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]},
        {"ports": [{"containerPort": 53, **GONE}]},
        {"ports": [{"containerPort": 53, "protocol": "UDP"}]},
    ),
    (
        "a port on the other protocol",
        {"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]},
        {"ports": [{"containerPort": 53, "protocol": "UDP", **GONE}]},
        {"ports": [{"containerPort": 53}]},
    ),
    (
        "deep in an opaque object",
        {"securityContext": {"a": {"b": 1, "c": 2}}},
        {"securityContext": {"a": {"$retainKeys": ["c"]}}},
        {"securityContext": {"a": {"c": 2}}},
    ),
    (
        "another type below is replaced as ever",
        {"env": "x"},
        {"env": [{"name": "A", **GONE}, B]},
        {"env": [B]},
    ),
    ("null stays unset", {"env": [A]}, {"env": None}, {"env": [A]}),
]


@pytest.mark.parametrize(
    ("base", "overlay", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_what_a_directive_removes(base: Json, overlay: Json, expected: Json) -> None:
    report: list[Unmatched] = []
    before = copy.deepcopy((base, overlay))
    merged = merge(base, overlay, CONTAINER, report)
    assert merged == expected
    assert (base, overlay) == before
    assert merge(merged, overlay, CONTAINER) == merged


FIX = "remove it, or correct what it names"
NOTHING: list[tuple[str, Json, Json, Json, tuple[Any, ...], str, str]] = [
    (
        "an item",
        {"env": [{"name": "LOG_LEVEL"}]},
        {"env": [{"name": "LOGLEVEL", **GONE}]},
        {"env": [{"name": "LOG_LEVEL"}]},
        ("env", 0, "$patch"),
        "$patch: delete finds nothing to delete: lower layers have no env item with name LOGLEVEL",
        'did you mean "LOG_LEVEL"?',
    ),
    (
        "an object",
        {"image": "a"},
        {"livenessProbe": GONE},
        {"image": "a"},
        ("livenessProbe", "$patch"),
        "$patch: delete finds nothing to delete: no lower layer sets it",
        FIX,
    ),
    (
        "an object below one that isn't there",
        {},
        {"lifecycle": {"preStop": GONE}},
        {},
        ("lifecycle", "preStop", "$patch"),
        "$patch: delete finds nothing to delete: no lower layer sets it",
        FIX,
    ),
    (
        "an object to replace",
        {},
        {"livenessProbe": {"$patch": "replace", "exec": {}}},
        {"livenessProbe": {"exec": {}}},
        ("livenessProbe", "$patch"),
        "$patch: replace finds nothing to replace: no lower layer sets it",
        FIX,
    ),
    (
        "a list to replace",
        {},
        {"env": [{"$patch": "replace"}, A]},
        {"env": [A]},
        ("env", 0, "$patch"),
        "$patch: replace finds nothing to replace: no lower layer sets env",
        FIX,
    ),
    (
        "keys to retain",
        {},
        {"env": [{"name": "A", "value": "1", "$retainKeys": ["name", "value"]}]},
        {"env": [A]},
        ("env", 0, "$retainKeys"),
        "$retainKeys finds nothing to remove: no lower layer sets the object",
        FIX,
    ),
    (
        "an item that holds nothing but a directive is no item to add",
        {"env": [A]},
        {"env": [{"name": "B", "valueFrom": GONE}]},
        {"env": [A]},
        ("env", 0, "valueFrom", "$patch"),
        "$patch: delete finds nothing to delete: no lower layer sets it",
        FIX,
    ),
    (
        "a word",
        {"args": ["--quiet", "x"]},
        {"$deleteFromPrimitiveList/args": ["--quite", "x"]},
        {"args": ["--quiet"]},
        ("$deleteFromPrimitiveList/args",),
        "$deleteFromPrimitiveList/args finds no --quite in the lower layers' args",
        'did you mean "--quiet"?',
    ),
]


@pytest.mark.parametrize(
    ("base", "overlay", "merged", "path", "message", "fix"),
    [case[1:] for case in NOTHING],
    ids=[case[0] for case in NOTHING],
)
def test_a_directive_that_finds_nothing_does_nothing(
    base: Json, overlay: Json, merged: Json, path: tuple[Any, ...], message: str, fix: str
) -> None:
    report: list[Unmatched] = []
    assert merge(base, overlay, CONTAINER, report) == merged
    assert report == [Unmatched(path, message, fix)]


def test_blocks_that_are_replaced_as_one() -> None:
    base = {"autoscaler": {"class": "KEDA", "keda": {}}}
    assert merge(base, {"autoscaler": {"class": "None", "hpa": GONE}}, COMPONENT) == {
        "autoscaler": {"class": "None"}
    }
    assert merge(base, {"autoscaler": GONE}, COMPONENT) == {}
    assert merge(base, {"autoscaler": {"$patch": "replace", "class": "HPA"}}, COMPONENT) == {
        "autoscaler": {"class": "HPA"}
    }


def test_the_root_of_a_layer() -> None:
    assert merge({"image": "a"}, {"$patch": "delete"}, CONTAINER) == {}
    assert merge({"image": "a"}, {"$patch": "replace", "args": ["x"]}, CONTAINER) == {"args": ["x"]}
    assert merge({"image": "a", "tty": True}, {"$retainKeys": ["tty"]}, CONTAINER) == {"tty": True}


def test_lists_without_a_key_keep_no_directive() -> None:
    """Parsing refuses these; a stored revision is never parsed."""
    tolerations = [{"key": "a"}, {"key": "b", **GONE}, {"key": "c", "x": GONE}]
    assert merge({}, {"tolerations": tolerations}, COMPONENT) == {
        "tolerations": [{"key": "a"}, {"key": "c"}]
    }
    assert merge({}, {"runner": {"$setElementOrder/env": [], "image": "a"}}, COMPONENT) == {
        "runner": {"image": "a"}
    }


def test_parts_without_directives_are_shared() -> None:
    overlay = {"env": [A, {"name": "B", **GONE}], "readinessProbe": PROBE, "args": ["x"]}
    base = {"env": [B, C], "lifecycle": {"preStop": {}}}
    left, kept = remove(base, overlay, CONTAINER)
    assert left["env"][0] is C
    assert left["lifecycle"] is base["lifecycle"]
    assert kept["readinessProbe"] is PROBE
    assert kept["env"][0] is A
    assert settled({"args": overlay["args"]}, CONTAINER)["args"] is overlay["args"]


def nodes(struct: Struct, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(struct) in seen:
        return
    seen.add(id(struct))
    for name, node in struct.fields.items():
        yield name, node
        if isinstance(node, Struct):
            yield from nodes(node, seen)
        elif isinstance(node, Keyed):
            yield from nodes(node.item, seen)


def test_manifests_and_merges_agree_on_which_lists_have_keys() -> None:
    from ome.api import directives

    found = list(nodes(RUNTIME_SPEC, set()))
    assert {name: node.key for name, node in found if isinstance(node, Keyed)} == MERGE_KEYS
    seconds = {name: node.second for name, node in found if isinstance(node, Keyed) and node.second}
    assert seconds == directives._SECOND_KEYS
    assert {name for name, node in found if isinstance(node, StringMap)} == directives._MAPS
    assert {name for name, node in found if isinstance(node, Whole)} == directives.WHOLE
    assert MERGE_KEYS.keys() - {"env", "ports", "volumeMounts", "volumeDevices"} <= POD_FIELDS


# The merge as it was before directives, written for clarity.
SAYS_NOTHING: tuple[Any, ...] = (None, "", [], {})


def says_nothing(schema: Struct, name: str, value: Any) -> bool:
    return (value in SAYS_NOTHING and not isinstance(value, bool | int)) or (
        name in schema.zero_is_unset and isinstance(value, bool | int) and not value
    )


def old_merge(base: dict[str, Any], overlay: dict[str, Any], schema: Struct) -> dict[str, Any]:
    merged = dict(base)
    for name, value in overlay.items():
        old = base.get(name)
        if old is None and value == {} and isinstance(value, dict):
            merged[name] = {}
        elif not says_nothing(schema, name, value):
            merged[name] = value if old is None else old_value(old, value, schema.fields.get(name))
    return merged


def old_value(old: Any, new: Any, node: Any) -> Any:
    if isinstance(new, dict) and isinstance(old, dict) and not isinstance(node, Whole):
        if isinstance(node, StringMap):
            return {**old, **{key: item for key, item in new.items() if item is not None}}
        return old_merge(old, new, node if isinstance(node, Struct) else Struct())
    if isinstance(node, Keyed) and isinstance(old, list) and isinstance(new, list):
        return old_keyed(old, new, node)
    return new


def old_keyed(old: list[Any], new: list[Any], node: Keyed) -> list[Any]:
    if not all(isinstance(item, dict) and node.key in item for item in (*old, *new)):
        return new
    name_of = naming(old, new, node)
    base = {name_of(item): at for at, item in reversed(list(enumerate(old)))}
    found: dict[Any, Any] = {}
    for item in new:
        name = name_of(item)
        below = found.get(name, old[base[name]] if name in base else None)
        found[name] = item if below is None else old_merge(below, item, node.item)
    merged: list[Any] = []
    left = [
        (at, item)
        for at, item in enumerate(old)
        if base[name_of(item)] != at or name_of(item) not in found
    ]
    for name, item in found.items():
        limit = base.get(name, len(old))
        merged += [each for at, each in left if at < limit]
        left = [(at, each) for at, each in left if at >= limit]
        merged.append(item)
    return merged + [each for _, each in left]


names = st.sampled_from(["A", "B", "C", "D"])
texts = st.sampled_from(["x", "y", "z", ""])
string_maps = st.dictionaries(names, texts, max_size=3)
envs = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"value": texts}),
    max_size=4,
    unique_by=lambda item: item["name"],
)
containers = st.fixed_dictionaries(
    {},
    optional={
        "image": texts,
        "args": st.lists(st.sampled_from(["--a", "--b"]), max_size=2),
        "env": envs,
        "tty": st.booleans(),
        "resources": st.fixed_dictionaries({}, optional={"limits": string_maps}),
    },
)
components = st.fixed_dictionaries(
    {},
    optional={
        "runner": containers,
        "nodeSelector": string_maps,
        "volumes": envs,
        "maxReplicas": st.integers(0, 2),
        "minReplicas": st.one_of(st.none(), st.integers(0, 2)),
        "hostNetwork": st.booleans(),
        "autoscaler": string_maps,
        "tolerations": st.lists(st.fixed_dictionaries({"key": names}), max_size=2),
        "worker": st.fixed_dictionaries({}, optional={"runner": containers}),
    },
)
# Overlays with directives of every kind, on the values that the tests of the merge have.
items = st.fixed_dictionaries(
    {"name": names},
    optional={
        "value": texts,
        "$patch": st.sampled_from(["delete", "replace"]),
        "$retainKeys": st.lists(st.sampled_from(["name", "value"]), max_size=2),
    },
)
patched_maps = st.dictionaries(
    st.one_of(names, st.just("$patch")), st.sampled_from(["delete", "replace"]), max_size=3
)
patched_containers = st.fixed_dictionaries(
    {},
    optional={
        "image": texts,
        "args": st.lists(st.sampled_from(["--a", "--b"]), max_size=2),
        "env": st.lists(items, max_size=4),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "limits": patched_maps,
                "requests": patched_maps,
                "$patch": st.sampled_from(["delete", "replace"]),
            },
        ),
        "$patch": st.sampled_from(["delete", "replace", "remove"]),
        "$retainKeys": st.lists(st.sampled_from(["image", "env", "args"]), max_size=2),
        "$deleteFromPrimitiveList/args": st.lists(st.sampled_from(["--a", "--c"]), max_size=2),
        "$setElementOrder/env": st.just([]),
    },
)
patched = st.fixed_dictionaries(
    {},
    optional={
        "runner": patched_containers,
        "nodeSelector": patched_maps,
        "volumes": st.lists(
            st.fixed_dictionaries(
                {"name": names},
                optional={"emptyDir": patched_maps, "$patch": st.just("delete")},
            ),
            max_size=3,
        ),
        "tolerations": st.lists(
            st.fixed_dictionaries({"key": names}, optional={"$patch": st.just("delete")}),
            max_size=2,
        ),
        "autoscaler": st.fixed_dictionaries({}, optional={"class": texts, "hpa": patched_maps}),
        "worker": st.fixed_dictionaries({}, optional={"runner": patched_containers}),
        "$patch": st.sampled_from(["delete", "replace"]),
        "$retainKeys": st.lists(st.sampled_from(["runner", "volumes"]), max_size=2),
    },
)


def directives_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [name for name in value if is_directive(name)]
        return own + [each for item in value.values() for each in directives_of(item)]
    return (
        [each for item in value for each in directives_of(item)] if isinstance(value, list) else []
    )


@given(components, patched)
def test_no_directive_survives_and_inputs_stay(base: Json, overlay: Json) -> None:
    before = copy.deepcopy((base, overlay))
    assert directives_of(merge(base, overlay, COMPONENT)) == []
    assert directives_of(settled(overlay, COMPONENT)) == []
    assert (base, overlay) == before


@given(components, patched)
def test_carrying_out_twice_is_carrying_out_once(base: Json, overlay: Json) -> None:
    assume(not repeats_a_key(overlay))
    once = merge(base, overlay, COMPONENT)
    assert said(merge(once, overlay, COMPONENT)) == said(once)


def said(value: Any) -> Any:
    """The value without the fields that say nothing."""
    if isinstance(value, dict):
        kept = {name: said(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, "", [], {})}
    return [said(item) for item in value] if isinstance(value, list) else value


def repeats_a_key(value: Any) -> bool:
    """Whether a list names one item twice, which merges into one only where it stands below."""
    if isinstance(value, dict):
        return any(repeats_a_key(item) for item in value.values())
    named = (
        [item.get("name") for item in value if "name" in item] if isinstance(value, list) else []
    )
    return len(set(named)) < len(named)


@given(st.lists(patched, max_size=4))
def test_a_chain_is_its_layers_one_by_one(layers: list[Json]) -> None:
    merged: Json = {}
    for layer in layers:
        left, kept = remove(merged, layer, COMPONENT)
        merged = old_merge(dict(left), dict(kept), COMPONENT)
    assert merge_chain(layers, COMPONENT) == merged


@given(components, components)
def test_without_directives_the_merge_is_the_old_one(base: Json, overlay: Json) -> None:
    report: list[Unmatched] = []
    assert merge(base, overlay, COMPONENT, report) == old_merge(base, overlay, COMPONENT)
    assert report == []


@given(containers, names)
def test_removing_and_adding_back_restores(base: Json, name: str) -> None:
    """All but the place: what is added back comes last."""
    item = next((each for each in base.get("env", []) if each["name"] == name), None)
    assume(item is not None)
    gone = merge(base, {"env": [{"name": name, **GONE}]}, CONTAINER)
    assert name not in [each["name"] for each in gone.get("env", [])]
    back = merge(gone, {"env": [item]}, CONTAINER)
    others = [each for each in base["env"] if each["name"] != name]
    assert back == {**base, "env": [*others, item]}
    assert (
        merge(
            merge(base, {"env": [{"$patch": "replace"}]}, CONTAINER),
            {"env": base["env"]},
            CONTAINER,
        )
        == base
    )


def test_a_misspelt_name_that_is_kept_is_said() -> None:
    report: list[Any] = []
    base = {"command": ["x"], "image": "i"}
    after, _ = remove(base, {"$retainKeys": ["image", "comand", "other"]}, report=report)
    assert after == {"image": "i"}
    assert [(each.message, each.fix) for each in report] == [
        ("$retainKeys keeps comand, which no layer sets", 'did you mean "command"?')
    ]
