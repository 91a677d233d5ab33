"""Reading objects: identity, strictness, exact messages, and giving back what was read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import API_VERSION, KINDS, InvalidObject, ObjectRef, OmeError, dump, parse

Make = Callable[..., dict[str, Any]]
KIND_NAMES = (
    "AcceleratorClass, BaseModel, ClusterBaseModel, ClusterServingRuntime, InferenceService,"
    " ServingRuntime"
)
NAME_FIX = (
    "use at most 253 lowercase letters, digits, - and ., starting and ending with a letter"
    " or a digit"
)


def faults(raw: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidObject) as caught:
        parse(raw)
    assert {each.code for each in caught.value.problems} == {"SchemaInvalid"}
    return [(each.path, each.message, each.fix) for each in caught.value.problems]


@pytest.mark.parametrize("kind", KINDS)
def test_identity(kind: str, make: Make) -> None:
    raw = make(kind)
    raw["metadata"] |= {"uid": "u", "generation": 3, "labels": {"a": "b"}}
    before = copy.deepcopy(raw)
    read = parse(raw)
    namespace = "demo" if KINDS[kind].NAMESPACED else ""
    assert type(read) is KINDS[kind]
    assert read.raw is raw
    assert read.ref == ObjectRef(kind, namespace, "one")
    assert (read.name, read.namespace, read.uid, read.generation) == ("one", namespace, "u", 3)
    assert (read.labels, read.annotations) == ({"a": "b"}, {})
    assert dump(read) == before == raw


@pytest.mark.parametrize("kind", KINDS)
def test_spec_is_optional(kind: str, make: Make) -> None:
    raw = make(kind)
    del raw["spec"]
    read = parse(raw)
    assert dump(read) == raw
    assert (read.uid, read.generation, read.labels) == ("", 0, {})
    raw["spec"] = None
    assert dump(parse(raw)) == raw


def test_a_namespace_on_a_cluster_object_is_ignored(make: Make) -> None:
    raw = make("ClusterBaseModel")
    raw["metadata"]["namespace"] = "demo"
    assert parse(raw).ref == ObjectRef("ClusterBaseModel", "", "one")


IDENTITY_FAULTS: list[tuple[str, Any, list[tuple[str, str, str]]]] = [
    ("not an object", [], [("", "must be an object, not a list", "")]),
    ("null", None, [("", "must be an object, not null", "")]),
    (
        "empty",
        {},
        [
            ("apiVersion", "required", "set it to ome.io/v1beta1"),
            ("kind", "required", f"one of {KIND_NAMES}"),
        ],
    ),
    (
        "another version",
        {"apiVersion": "ome.io/v1", "kind": "BaseModel"},
        [("apiVersion", 'must be ome.io/v1beta1, not "ome.io/v1"', "")],
    ),
    (
        "misspelt kind",
        {"apiVersion": API_VERSION, "kind": "InferenceServise"},
        [
            (
                "kind",
                f'must be one of {KIND_NAMES}; not "InferenceServise"',
                'did you mean "InferenceService"?',
            )
        ],
    ),
    (
        "kind of another type",
        {"apiVersion": API_VERSION, "kind": 5},
        [("kind", f"must be one of {KIND_NAMES}; not 5", "")],
    ),
    (
        "no metadata",
        {"apiVersion": API_VERSION, "kind": "InferenceService"},
        [("metadata", "required", "")],
    ),
    (
        "no name",
        {"apiVersion": API_VERSION, "kind": "InferenceService", "metadata": {}},
        [("metadata.name", "required", "")],
    ),
    (
        "bad name",
        {"apiVersion": API_VERSION, "kind": "InferenceService", "metadata": {"name": "My_Chat"}},
        [("metadata.name", '"My_Chat" is not a valid name', NAME_FIX)],
    ),
]


@pytest.mark.parametrize(
    ("raw", "expected"), [each[1:] for each in IDENTITY_FAULTS], ids=[i[0] for i in IDENTITY_FAULTS]
)
def test_identity_faults(raw: Any, expected: list[tuple[str, str, str]]) -> None:
    assert faults(raw) == expected


SERVICE = "InferenceService"
RUNTIME = "ClusterServingRuntime"
MODEL = "BaseModel"
CLASS = "AcceleratorClass"
FAULTS: list[tuple[str, str, Any, str, str, str]] = [
    (
        "string for integer",
        SERVICE,
        {"engine": {"minReplicas": "two"}},
        "spec.engine.minReplicas",
        'must be an integer, not a string ("two")',
        "",
    ),
    (
        "quoted integer",
        SERVICE,
        {"engine": {"minReplicas": "2"}},
        "spec.engine.minReplicas",
        'must be an integer, not a string ("2")',
        "write 2 without quotes",
    ),
    (
        "boolean for integer",
        SERVICE,
        {"engine": {"maxReplicas": True}},
        "spec.engine.maxReplicas",
        "must be an integer, not a boolean (true)",
        "",
    ),
    (
        "number for integer",
        SERVICE,
        {"engine": {"maxReplicas": 1.5}},
        "spec.engine.maxReplicas",
        "must be an integer, not a number (1.5)",
        "",
    ),
    (
        "integer for string",
        SERVICE,
        {"model": {"name": 7}},
        "spec.model.name",
        "must be a string, not an integer (7)",
        'quote it: "7"',
    ),
    (
        "null for a required string",
        SERVICE,
        {"model": {"name": None}},
        "spec.model.name",
        "must be a string, not null",
        "",
    ),
    (
        "quoted boolean",
        SERVICE,
        {"engine": {"hostNetwork": "true"}},
        "spec.engine.hostNetwork",
        'must be a boolean, not a string ("true")',
        "write true without quotes",
    ),
    (
        "list for object",
        SERVICE,
        {"engine": []},
        "spec.engine",
        "must be an object, not a list",
        "",
    ),
    (
        "object for list",
        SERVICE,
        {"engine": {"volumes": {}}},
        "spec.engine.volumes",
        "must be a list, not an object",
        "",
    ),
    (
        "choice",
        SERVICE,
        {"acceleratorSelector": {"policy": "Best"}},
        "spec.acceleratorSelector.policy",
        'must be one of BestFit, Cheapest, MostCapable, FirstAvailable; not "Best"',
        'did you mean "BestFit"?',
    ),
    (
        "choice of another type",
        SERVICE,
        {"deploymentMode": 1},
        "spec.deploymentMode",
        "must be a string, not an integer (1)",
        'quote it: "1"',
    ),
    (
        "choice of two",
        SERVICE,
        {"deploymentMode": "MultiNode"},
        "spec.deploymentMode",
        'must be one of OMENative, RawDeployment; not "MultiNode"',
        "",
    ),
    (
        "command in one string",
        SERVICE,
        {"engine": {"runner": {"command": "serve --x"}}},
        "spec.engine.runner.command",
        'must be a list, not a string ("serve --x")',
        "",
    ),
    (
        "integer argument",
        SERVICE,
        {"engine": {"runner": {"args": ["--port", 8000]}}},
        "spec.engine.runner.args[1]",
        "must be a string, not an integer (8000)",
        'quote it: "8000"',
    ),
    (
        "unnamed variable",
        SERVICE,
        {"engine": {"runner": {"env": [{"value": "x"}]}}},
        "spec.engine.runner.env[0].name",
        "required",
        "",
    ),
    (
        "port as text",
        SERVICE,
        {"router": {"runner": {"ports": [{"containerPort": "http"}]}}},
        "spec.router.runner.ports[0].containerPort",
        'must be an integer, not a string ("http")',
        "",
    ),
    (
        "mount without a path",
        SERVICE,
        {"engine": {"runner": {"volumeMounts": [{"name": "v"}]}}},
        "spec.engine.runner.volumeMounts[0].mountPath",
        "required",
        "",
    ),
    (
        "quantity under a key with a dot",
        SERVICE,
        {"engine": {"runner": {"resources": {"limits": {"nvidia.com/gpu": "eight"}}}}},
        "spec.engine.runner.resources.limits[nvidia.com/gpu]",
        '"eight" is not a quantity',
        "",
    ),
    (
        "boolean quantity",
        SERVICE,
        {"engine": {"runner": {"resources": {"requests": {"cpu": False}}}}},
        "spec.engine.runner.resources.requests.cpu",
        "must be an integer or a string, not a boolean (false)",
        "",
    ),
    (
        "unnamed leader runner",
        SERVICE,
        {"engine": {"leader": {"runner": {}}}},
        "spec.engine.leader.runner.name",
        "required",
        "",
    ),
    (
        "unnamed worker runner",
        SERVICE,
        {"decoder": {"worker": {"runner": {"image": "x"}}}},
        "spec.decoder.worker.runner.name",
        "required",
        "",
    ),
    (
        "unnamed sidecar",
        SERVICE,
        {"engine": {"containers": [{"image": "x"}]}},
        "spec.engine.containers[0].name",
        "required",
        "",
    ),
    (
        "unnamed engine runner of a runtime",
        RUNTIME,
        {"engineConfig": {"runner": {"image": "x"}}},
        "spec.engineConfig.runner.name",
        "required",
        "",
    ),
    (
        "unnamed router runner of a runtime",
        RUNTIME,
        {"routerConfig": {"runner": {}}},
        "spec.routerConfig.runner.name",
        "required",
        "",
    ),
    (
        "autoscaler of a runtime without a class",
        RUNTIME,
        {"decoderConfig": {"autoscaler": {}}},
        "spec.decoderConfig.autoscaler.class",
        "required",
        "",
    ),
    (
        "format without a framework",
        RUNTIME,
        {"supportedModelFormats": [{"modelFormat": {"name": "safetensors"}}]},
        "spec.supportedModelFormats[0].modelFramework",
        "required",
        "",
    ),
    (
        "low priority",
        RUNTIME,
        {
            "supportedModelFormats": [
                {"modelFormat": {"name": "a"}, "modelFramework": {"name": "b"}, "priority": 0}
            ]
        },
        "spec.supportedModelFormats[0].priority",
        "must be at least 1, not 0",
        "",
    ),
    (
        "too large a number",
        MODEL,
        {"storage": {"storageUri": "hf://a/b"}, "maxTokens": 2**31},
        "spec.maxTokens",
        "must be at most 2147483647, not 2147483648",
        "",
    ),
    ("model without storage", MODEL, {}, "spec.storage", "required", ""),
    (
        "misspelt download policy",
        MODEL,
        {"storage": {"storageUri": "hf://a/b", "downloadPolicy": "ReuseIfExist"}},
        "spec.storage.downloadPolicy",
        'must be one of AlwaysDownload, ReuseIfExists; not "ReuseIfExist"',
        'did you mean "ReuseIfExists"?',
    ),
    (
        "unquoted price",
        CLASS,
        {"discovery": {}, "capabilities": {}, "cost": {"perHour": 2.5}},
        "spec.cost.perHour",
        "must be an integer or a string, not a number (2.5)",
        'quote it: "2.5"',
    ),
    (
        "memory in words",
        CLASS,
        {"discovery": {}, "capabilities": {"memoryGB": "80 Gi"}},
        "spec.capabilities.memoryGB",
        '"80 Gi" is not a quantity',
        "",
    ),
    ("no discovery", CLASS, {"capabilities": {}}, "spec.discovery", "required", ""),
    (
        "no triggers",
        SERVICE,
        {"engine": {"autoscaler": {"class": "KEDA", "keda": {"triggers": []}}}},
        "spec.engine.autoscaler.keda.triggers",
        "must have at least 1 item",
        "",
    ),
    (
        "empty name",
        SERVICE,
        {"engine": {"autoscalerPolicyRef": {"name": ""}}},
        "spec.engine.autoscalerPolicyRef.name",
        "must have at least 1 character",
        "",
    ),
    (
        "too many groups",
        SERVICE,
        {"rollout": {"groups": [{}, {}, {}, {}]}},
        "spec.rollout.groups",
        "must have at most 3 items",
        "",
    ),
    (
        "integer key",
        SERVICE,
        {"engine": {"labels": {1: "x"}}},
        "spec.engine.labels[1]",
        "its key must be a string, not an integer (1)",
        'quote it: "1"',
    ),
    (
        "integer field name",
        SERVICE,
        {"engine": {2: "x"}},
        "spec.engine[2]",
        "its key must be a string, not an integer (2)",
        'quote it: "2"',
    ),
    (
        "date",
        SERVICE,
        {"engine": {"labels": {"since": date(2026, 5, 1)}}},
        "spec.engine.labels.since",
        'must be a string, not a date ("2026-05-01")',
        "quote it: YAML reads it as a date",
    ),
    (
        "long value",
        SERVICE,
        {"deploymentMode": "x" * 100},
        "spec.deploymentMode",
        f'must be one of OMENative, RawDeployment; not "{"x" * 58}…',
        "",
    ),
]


@pytest.mark.parametrize(
    ("kind", "spec", "path", "message", "fix"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_faults(kind: str, spec: Any, path: str, message: str, fix: str, make: Make) -> None:
    assert faults(make(kind, spec)) == [(path, message, fix)]


def test_every_fault_is_told_at_once(make: Make) -> None:
    raw = make(SERVICE, {"model": [], "engine": {"minReplicas": "1", "runner": {"image": 1}}})
    raw["metadata"]["labels"] = {"on": True}
    with pytest.raises(OmeError) as caught:
        parse(raw)
    assert [each.path for each in caught.value.problems] == [
        "metadata.labels.on",
        "spec.engine.minReplicas",
        "spec.engine.runner.image",
        "spec.model",
    ]
    assert str(caught.value).splitlines()[0] == (
        "InferenceService/demo/one: metadata.labels.on: must be a string, not a boolean (true);"
        ' quote it: "true"'
    )


ACCEPTED: list[tuple[str, str, Any]] = [
    ("unnamed runner of a service", SERVICE, {"engine": {"runner": {"image": "x"}}}),
    ("autoscaler without a class", SERVICE, {"engine": {"autoscaler": {}}}),
    ("policy without a name", SERVICE, {"engine": {"autoscalerPolicyRef": {}}}),
    ("probe overlay", SERVICE, {"engine": {"runner": {"startupProbe": {"periodSeconds": 2}}}}),
    (
        "quantities",
        SERVICE,
        {"engine": {"runner": {"resources": {"limits": {"a": 1, "b": "1.5Gi", "c": 0.5}}}}},
    ),
    ("null containers", RUNTIME, {"containers": None, "engineConfig": None}),
    ("null in a container", SERVICE, {"engine": {"runner": {"args": None, "env": None}}}),
    ("null with a default", SERVICE, {"runtime": {"name": "r", "kind": None, "autoSync": None}}),
    ("unknown fields", SERVICE, {"engine": {"x": {"y": [1, {"z": None}]}}, "w": 1.5}),
    ("unknown status", SERVICE, {}),
]


@pytest.mark.parametrize(
    ("kind", "spec"), [each[1:] for each in ACCEPTED], ids=[each[0] for each in ACCEPTED]
)
def test_accepted(kind: str, spec: Any, make: Make) -> None:
    raw = make(kind, spec)
    raw["status"] = {"someday": {"a": [1]}}
    before = copy.deepcopy(raw)
    assert dump(parse(raw)) == before == raw


def test_kubernetes_parts_are_kept_as_they_are(make: Make) -> None:
    raw = make(RUNTIME)
    raw["spec"]["engineConfig"]["runner"] = {"zeta": 1, "name": "c", "args": ["--x"]}
    read = parse(raw).spec  # type: ignore[attr-defined]
    assert read.engine_config.runner is raw["spec"]["engineConfig"]["runner"]


def test_a_model_in_a_state_we_do_not_know(make: Make) -> None:
    raw = make(MODEL)
    raw["status"] = {"state": "Evicted", "nodesEvicted": ["n"]}
    assert dump(parse(raw)) == raw


def test_round_trip_of_the_catalog(catalog: list[tuple[str, dict[str, Any]]]) -> None:
    for name, raw in catalog:
        before = copy.deepcopy(raw)
        assert dump(parse(raw)) == before, name
        assert raw == before, name


def test_round_trip_of_the_golden_inputs(golden: list[tuple[str, dict[str, Any]]]) -> None:
    for name, raw in golden:
        assert dump(parse(raw)) == raw, name


KNOWN = ("name", "kind", "spec", "engine", "runner", "labels", "model", "status", "metadata", "x")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1Gi", "HPA"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", KINDS)
@given(spec=VALUES, part=VALUES)
def test_any_json_is_read_exactly_or_refused_in_plain_words(
    kind: str, spec: Any, part: Any
) -> None:
    raw = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": {**spec, "engine": {"runner": part}} if isinstance(spec, dict) else spec,
    }
    try:
        read = parse(raw)
    except InvalidObject as error:
        for each in error.problems:
            assert each.path.startswith("spec")
            assert not any(word in each.message for word in ("None", "dict", "Input", "valid:"))
    else:
        assert dump(read) == raw
