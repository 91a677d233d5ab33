"""Directives and `argsPatch` in manifests: what parses, what is refused, and what the CRDs let through."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import jsonschema
import pytest

from ome.api import InvalidObject, dump, parse, unknown_fields
from ome.api.crds import crds
from ome.api.directives import has_directives, without_directives
from ome.merging.schema import CONTAINER as CONTAINER_SCHEMA
from ome.merging.strategic import merge

Make = Callable[..., dict[str, Any]]
Json = dict[str, Any]
GONE = {"$patch": "delete"}
RUNTIME, SERVICE = "ClusterServingRuntime", "InferenceService"
CRDS = {each["spec"]["names"]["kind"]: each for each in crds()}
PRESERVE = "x-kubernetes-preserve-unknown-fields"

CONTAINER: Json = {
    "name": "ome-container",
    "$retainKeys": [
        "name",
        "image",
        "args",
        "env",
        "ports",
        "volumeMounts",
        "resources",
        "argsPatch",
        "readinessProbe",
        "livenessProbe",
        "startupProbe",
        "lifecycle",
        "volumeDevices",
        "command",
    ],
    "$deleteFromPrimitiveList/args": ["--a"],
    "$deleteFromPrimitiveList/command": ["x"],
    "env": [
        {"name": "A", **GONE},
        {"name": "B", "$retainKeys": ["name", "value"], "value": "x"},
        {"name": "C", "valueFrom": GONE},
        {"$patch": "replace"},
    ],
    "ports": [{"containerPort": 80, **GONE}, {"$patch": "replace"}],
    "volumeMounts": [{"mountPath": "/a", **GONE}, {"$patch": "replace"}],
    "volumeDevices": [{"devicePath": "/dev/a", **GONE}, {"$patch": "replace"}],
    "resources": {"limits": GONE, "requests": {"$patch": "replace", "cpu": "1"}},
    "readinessProbe": {"$patch": "replace", "httpGet": {"port": 80}},
    "livenessProbe": GONE,
    "startupProbe": {"httpGet": GONE, "tcpSocket": {"$patch": "replace", "port": 80}},
    "lifecycle": {"preStop": {"exec": {"$deleteFromPrimitiveList/command": ["a"]}}},
    "argsPatch": [
        {"set": {"name": "--a", "value": "1"}},
        {"set": {"name": "--b"}},
        {"unset": "--c"},
        {"append": ["x", "--y"]},
    ],
}
POD: Json = {
    "runner": CONTAINER,
    "containers": [{"name": "side", **GONE}, {"$patch": "replace"}, {**CONTAINER, "name": "other"}],
    "initContainers": [{"name": "init", **GONE}, {"$patch": "replace"}],
    "volumes": [
        {"name": "a", **GONE},
        {"name": "b", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}},
        {"name": "c", "emptyDir": GONE},
        {"$patch": "replace"},
    ],
    "imagePullSecrets": [{"name": "a", **GONE}, {"$patch": "replace"}],
    "hostAliases": [
        {"ip": "10.0.0.1", **GONE},
        {"ip": "10.0.0.2", "$deleteFromPrimitiveList/hostnames": ["a"]},
        {"$patch": "replace"},
    ],
    "topologySpreadConstraints": [{"topologyKey": "zone", **GONE}, {"$patch": "replace"}],
    "schedulingGates": [{"name": "a", **GONE}, {"$patch": "replace"}],
    "resourceClaims": [{"name": "a", **GONE}, {"$patch": "replace"}],
    "nodeSelector": {"$patch": "replace", "a": "b"},
    "overhead": GONE,
    "affinity": {"nodeAffinity": GONE, "podAffinity": {"$patch": "replace"}},
    "securityContext": {"$retainKeys": ["runAsUser"], "runAsUser": 1},
    "dnsConfig": {"$deleteFromPrimitiveList/nameservers": ["1.1.1.1"]},
    "os": GONE,
}
COMPONENT: Json = {
    **POD,
    "leader": {**POD, "dnsConfig": GONE},
    "worker": {**POD, "size": 2},
    "autoscaler": GONE,
    "labels": {"$patch": "replace", "a": "b"},
    "annotations": GONE,
    "deploymentStrategy": {"$patch": "replace", "type": "Recreate"},
}
MANIFESTS: dict[str, Json] = {
    RUNTIME: {
        "engineConfig": COMPONENT,
        "decoderConfig": GONE,
        "routerConfig": {"$patch": "replace", "config": {"$patch": "delete"}},
        "modelSizeRange": GONE,
        "acceleratorRequirements": {"$deleteFromPrimitiveList/acceleratorClasses": ["h100"]},
        "scalingPolicy": GONE,
        "nodeSelector": GONE,
        "containers": [{"name": "a", **GONE}, {"$patch": "replace"}],
        "volumes": [{"$patch": "replace"}],
        "$deleteFromPrimitiveList/protocolVersions": ["v1"],
    },
    "ServingRuntime": {"$patch": "replace", "engineConfig": {"autoscalerPolicyRef": GONE}},
    SERVICE: {
        "engine": COMPONENT,
        "decoder": {"leader": GONE, "$retainKeys": ["leader"]},
        "router": {"runner": {"$patch": "replace", "name": "r"}, "config": GONE},
    },
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_every_directive_parses_and_none_is_unknown(kind: str, make: Make) -> None:
    raw = make(kind, MANIFESTS[kind])
    read = parse(raw)
    assert read.has_directives
    assert read.raw is raw
    assert unknown_fields(read) == []
    assert dump(read) == raw


def pruned(value: Any, node: Json) -> Any:
    """What the API server keeps of a value, defaults added."""
    if isinstance(value, dict) and "properties" in node:
        known = node["properties"]
        kept = {
            name: pruned(item, known[name]) if name in known else item
            for name, item in value.items()
            if name in known or node.get(PRESERVE)
        }
        defaults = {name: each["default"] for name, each in known.items() if "default" in each}
        return {**{name: item for name, item in defaults.items() if name not in kept}, **kept}
    if isinstance(value, dict) and "additionalProperties" in node:
        return {name: pruned(item, node["additionalProperties"]) for name, item in value.items()}
    if isinstance(value, dict):
        return value if node.get(PRESERVE) else {}
    return [pruned(item, node["items"]) for item in value] if isinstance(value, list) else value


def lost(value: Any, kept: Any, path: str = "") -> list[str]:
    """What of a value isn't there any more."""
    if isinstance(value, dict):
        gone = [f"{path}.{name}" for name in value if name not in kept]
        rest = [name for name in value if name in kept]
        return gone + [
            each for name in rest for each in lost(value[name], kept[name], f"{path}.{name}")
        ]
    if isinstance(value, list):
        pairs = enumerate(zip(value, kept, strict=True))
        return [each for at, (a, b) in pairs for each in lost(a, b, f"{path}[{at}]")]
    return [] if value == kept else [path]


def stored(raw: Json) -> Json:
    """The object as the API server would store it; raises what it would refuse."""
    schema = CRDS[raw["kind"]]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    kept: Json = pruned(raw, schema)
    kept["metadata"] = raw["metadata"]
    jsonschema.Draft7Validator(schema).validate(kept)
    return kept


@pytest.mark.parametrize("kind", MANIFESTS)
def test_the_crds_prune_and_refuse_nothing(kind: str, make: Make) -> None:
    raw = make(kind, MANIFESTS[kind])
    kept = stored(raw)
    assert lost(raw, kept) == []
    # What the API server defaults parses like what was written.
    assert parse(kept).has_directives


@pytest.mark.parametrize(
    "engine",
    [
        {"runner": {"name": "c", "env": [{}]}},
        {"runner": {"name": "c", "env": [{"value": "x"}]}},
        {"runner": {"name": "c", "ports": [{}]}},
        {"runner": {"name": "c", "volumeMounts": [{"mountPath": "/a"}]}},
        {"runner": {"name": "c", "volumeMounts": [{"name": "a"}]}},
        {"runner": {"name": "c", "argsPatch": [{"unset": "--a", "append": ["x"]}]}},
        {"runner": {"name": "c", "argsPatch": [{}]}},
        {"runner": {"name": "c", "resources": {"limits": {"cpu": "much"}}}},
        {"runner": {}},
        {"containers": [{}]},
        {"topologySpreadConstraints": [{"topologyKey": "a"}]},
        {"autoscaler": {}},
    ],
)
def test_what_was_required_still_is(engine: Json, make: Make) -> None:
    with pytest.raises(jsonschema.ValidationError):
        stored(make(RUNTIME, {"engineConfig": engine}))


def test_the_simulated_server_prunes() -> None:
    node = {"properties": {"a": {"type": "string", "default": "x"}, "c": {"type": "object"}}}
    assert pruned({"b": 1, "c": {"d": 1}}, node) == {"a": "x", "c": {}}
    assert lost({"b": 1, "c": [{"d": 1}]}, {"c": [{"d": 2}]}) == [".b", ".c[0].d"]


ONLY = "the directives are $patch, $retainKeys and $deleteFromPrimitiveList/<field>"
WORDS = "delete takes away what lower layers set, replace takes only what stands here"
WHOLE_LIST = (
    "this list is replaced as a whole: no item of it merges; remove it, or write the whole list"
)
FAULTS: list[tuple[Json, list[str]]] = [
    (
        {"runner": {"$patch": "remove"}},
        [f'runner.$patch: $patch must be delete or replace, not "remove"; {WORDS}'],
    ),
    (
        {"runner": {"$patch": ["delete"]}},
        [f"runner.$patch: $patch must be delete or replace, not a list with other items; {WORDS}"],
    ),
    (
        {"autoscaler": {"$patch": 1}},
        [f"autoscaler.$patch: $patch must be delete or replace, not 1; {WORDS}"],
    ),
    (
        {"runner": {"$retainKeys": "image"}},
        [
            'runner.$retainKeys: $retainKeys must be a list of field names, not "image"; write it as '
            "$retainKeys: [name, hostPath]"
        ],
    ),
    (
        {
            "volumes": [
                {"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/x"}, "nfs": None}
            ]
        },
        [
            "volumes[0].$retainKeys: $retainKeys leaves out hostPath, which the object sets; add hostPath "
            "to the list"
        ],
    ),
    (
        {"nodeSelector": {"$retainKeys": ["a"], "$deleteFromPrimitiveList/a": ["b"]}},
        [
            "nodeSelector.$retainKeys: $retainKeys can't stand in a map of plain values; write $patch: "
            "replace with the entries to keep",
            "nodeSelector[$deleteFromPrimitiveList/a]: $deleteFromPrimitiveList/a can't stand in a map of "
            "plain values; write $patch: replace with the entries to keep",
        ],
    ),
    (
        {"runner": {"$setElementOrder/env": [{"name": "A"}]}},
        [
            "runner[$setElementOrder/env]: $setElementOrder isn't offered: a merged list has the order of "
            "its layers; remove it"
        ],
    ),
    ({"runner": {"$ptach": "delete"}}, [f"runner.$ptach: $ptach is no directive; {ONLY}"]),
    ({"nodeSelector": {"$a": "b"}}, [f"nodeSelector.$a: $a is no directive; {ONLY}"]),
    (
        {"runner": {"$deleteFromPrimitiveList/args": "--a"}},
        [
            "runner[$deleteFromPrimitiveList/args]: $deleteFromPrimitiveList/args must be a list of plain "
            'values, not "--a"; list the values to delete'
        ],
    ),
    (
        {"runner": {"$deleteFromPrimitiveList/args": [{"a": 1}]}},
        [
            "runner[$deleteFromPrimitiveList/args]: $deleteFromPrimitiveList/args must be a list of plain "
            "values, not a list with other items; list the values to delete"
        ],
    ),
    (
        {"runner": {"$deleteFromPrimitiveList/env": ["A"]}},
        [
            "runner[$deleteFromPrimitiveList/env]: env is no list of plain values; write an item with its "
            "name and $patch: delete"
        ],
    ),
    (
        {"runner": {"$deleteFromPrimitiveList/": ["A"]}},
        [
            "runner[$deleteFromPrimitiveList/]: it names no field; write $deleteFromPrimitiveList/args"
        ],
    ),
    (
        {"runner": {"env": [{"$patch": "delete"}]}},
        [
            "runner.env[0].$patch: $patch: delete in an item of env needs the name of what it deletes; add name"
        ],
    ),
    (
        {"runner": {"env": [{"name": "A", "value": "1", "$patch": "replace"}]}},
        [
            "runner.env[0].$patch: $patch: replace in an item replaces the whole list and drops the item, "
            "value too; write `- $patch: replace` as an item of its own, or list in $retainKeys what this "
            "item keeps"
        ],
    ),
    (
        {"tolerations": [{"key": "a", "$patch": "delete"}]},
        [f"tolerations[0].$patch: $patch can't stand here: {WHOLE_LIST}"],
    ),
    (
        {"affinity": {"nodeAffinity": {"x": [{"y": {"$patch": "delete"}}]}}},
        [f"affinity.nodeAffinity.x[0].y.$patch: $patch can't stand here: {WHOLE_LIST}"],
    ),
    (
        {"autoscaler": {"hpa": {"$patch": "delete"}}},
        [
            "autoscaler.hpa.$patch: $patch can't stand here: autoscaler is replaced as one: nothing in it "
            "merges; remove it"
        ],
    ),
]


@pytest.mark.parametrize(
    ("engine", "faults"), FAULTS, ids=[case[1][0].split(": ")[0] for case in FAULTS]
)
def test_directives_that_are_none(engine: Json, faults: list[str], make: Make) -> None:
    with pytest.raises(InvalidObject) as caught:
        parse(make(SERVICE, {"engine": engine}))
    texts = [str(problem).partition("spec.engine.")[2] for problem in caught.value.problems]
    assert texts == faults
    assert {problem.code for problem in caught.value.problems} == {"DirectiveInvalid"}


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (SERVICE, {"model": {"name": "m", **GONE}}, "spec.model.$patch"),
        (SERVICE, GONE, "spec.$patch"),
        (SERVICE, {"engine": {}, "scalingPolicy": GONE}, "spec.scalingPolicy.$patch"),
        ("BaseModel", {"storage": {"storageUri": "hf://a/b", **GONE}}, "spec.storage.$patch"),
    ],
)
def test_directives_where_nothing_merges(kind: str, spec: Json, path: str, make: Make) -> None:
    with pytest.raises(InvalidObject) as caught:
        parse(make(kind, spec))
    (problem,) = caught.value.problems
    assert problem.path == path
    assert problem.message == "$patch can't stand here: nothing merges here"
    assert problem.fix == "remove it"


def test_a_directive_excuses_nothing_but_what_it_removes(make: Make) -> None:
    with pytest.raises(InvalidObject) as caught:
        parse(make(RUNTIME, {"engineConfig": {"runner": {"$patch": "replace", "image": 3}}}))
    texts = [str(problem).partition("runner.")[2] for problem in caught.value.problems]
    assert sorted(texts) == [
        'image: must be a string, not an integer (3); quote it: "3"',
        "name: required",
    ]


FORMS = "write one of set: {name: --flag, value: x}, unset: --flag, append: [words]"
FLAG = "write the flag with its dashes and without its value, such as --max-len"
OPERATIONS: list[tuple[Any, str]] = [
    ("--a", f"must be an object with one operation; {FORMS}"),
    ({}, f"must hold exactly one operation; {FORMS}"),
    ({"unset": "--a", "append": ["x"]}, f"must hold exactly one operation; {FORMS}"),
    ({"remove": "--a"}, f'"remove" is no operation; {FORMS}'),
    ({"unset": "--a=1"}, f"unset must be a flag; {FLAG}"),
    ({"unset": 3}, f"unset must be a flag; {FLAG}"),
    ({"unset": "-1"}, f"unset must be a flag; {FLAG}"),
    ({"set": "--a"}, f"set must be an object with name and perhaps value; {FORMS}"),
    (
        {"set": {"name": "--a", "to": "x"}},
        f"set must be an object with name and perhaps value; {FORMS}",
    ),
    ({"set": {"name": "a b"}}, f"set.name must be a flag; {FLAG}"),
    ({"set": {"name": "--a", "value": 8}}, "set.value must be a string; quote it"),
    (
        {"set": {"name": "--a", "value": ""}},
        "set.value must not be empty; leave value out for a bare flag, or append the flag with =",
    ),
    ({"append": "x"}, "append must be a list of words, at least one; quote numbers and booleans"),
    ({"append": [8]}, "append must be a list of words, at least one; quote numbers and booleans"),
    ({"append": []}, "append must be a list of words, at least one; quote numbers and booleans"),
]


@pytest.mark.parametrize(
    ("operation", "text"), OPERATIONS, ids=[str(case[0]) for case in OPERATIONS]
)
def test_operations_that_are_none(operation: Any, text: str, make: Make) -> None:
    with pytest.raises(InvalidObject) as caught:
        parse(make(SERVICE, {"engine": {"runner": {"argsPatch": [{"unset": "--x"}, operation]}}}))
    (problem,) = caught.value.problems
    assert str(problem).endswith(f"spec.engine.runner.argsPatch[1]: {text}")
    assert problem.code == "SchemaInvalid"


def test_a_null_directive_counts_as_absent(make: Make) -> None:
    engine = {
        "runner": {"$patch": None, "env": [{"name": "A", "$patch": None}], "$retainKeys": None}
    }
    read = parse(make(SERVICE, {"engine": engine}))
    merged = merge({"env": [{"name": "A", "value": "1"}]}, engine["runner"], CONTAINER_SCHEMA)
    assert merged == {"env": [{"name": "A", "value": "1"}]}
    assert read.has_directives


def test_no_directive_excuses_what_is_outside_of_spec(make: Make) -> None:
    with pytest.raises(InvalidObject) as caught:
        parse({**make(SERVICE, {"engine": {}}), "metadata": GONE})
    assert [str(each) for each in caught.value.problems] == ["metadata.name: required"]


def test_what_holds_directives() -> None:
    assert has_directives({"a": [{"$patch": "delete"}]})
    assert has_directives({"$anything": 1})
    assert not has_directives({"a": ["$(MODEL_PATH)", "$HOME"], 1: [["x"]]})
    assert not has_directives({"since": date(2026, 1, 1)})
    assert has_directives([{"since": date(2026, 1, 1), "$patch": "delete"}])


def test_what_an_overlay_sets_by_itself() -> None:
    value = {
        "a": {"$patch": "replace", "b": 1},
        "c": GONE,
        "d": [{"$patch": "replace"}, {"e": GONE}],
    }
    assert without_directives(value) == {"a": {"b": 1}, "d": [{}]}


@pytest.mark.parametrize(
    ("engine", "field"),
    [
        ({"nodeSelector": {"$patch": "delete", "pool": "x"}}, "pool"),
        ({"runner": {"name": "c", "resources": {"$patch": "delete", "limits": {}}}}, "limits"),
        (
            {"runner": {"name": "c", "env": [{"name": "A", "$patch": "delete", "value": "x"}]}},
            "value",
        ),
    ],
)
def test_nothing_stands_beside_a_deletion(engine: dict[str, Any], field: str) -> None:
    raw = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s", "namespace": "d"},
        "spec": {"engine": engine},
    }
    with pytest.raises(InvalidObject, match=f"drops what stands beside it, {field} too"):
        parse(raw)
