"""The CRDs: structural, complete, of readable size, and true to what the catalog holds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from ome.api import KINDS
from ome.api.crds import crds
from ome.api.schema import pod_definitions
from ome.cli.crds import render_crd, render_crds

Make = Callable[..., dict[str, Any]]
Node = dict[str, Any]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
CRDS = {each["spec"]["names"]["kind"]: each for each in crds()}


def schema(kind: str) -> Node:
    found: Node = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def at(kind: str, path: str) -> Node:
    node = schema(kind)
    for step in path.split("."):
        node = node["items"] if step == "[]" else node["properties"][step]
    return node


def nodes(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, each in node.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from nodes(node[key], f"{path}[]")


ALLOWED = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    PRESERVE,
}


def structural_faults(node: Node) -> Iterator[str]:
    """What keeps a node from being part of a structural schema (Kubernetes' own rules)."""
    if unknown := node.keys() - ALLOWED:
        yield f"keywords {unknown}"
    if "x-kubernetes-int-or-string" in node:
        if "type" in node or node["anyOf"] != [{"type": "integer"}, {"type": "string"}]:
            yield "int-or-string with a type, or without its two alternatives"
    elif "type" not in node:
        yield "no type"
    elif "anyOf" in node:
        yield from alternative_faults(node)
    if "properties" in node and "additionalProperties" in node:
        yield "properties beside additionalProperties"
    if node.get("type") == "array" and "items" not in node:
        yield "a list without items"
    if missing := set(node.get("required", ())) - node.get("properties", {}).keys():
        yield f"required but not declared: {missing}"
    if node.get("required") == []:
        yield "an empty list of required fields"
    yield from list_faults(node)


def alternative_faults(node: Node) -> Iterator[str]:
    """Alternatives may only say more about the values of fields that the node declares."""
    for each in node["anyOf"]:
        if unknown := each.keys() - {"required", "properties"}:
            yield f"alternatives with {unknown}"
        for name, field in each.get("properties", {}).items():
            if name not in node["properties"] or field.keys() - {"minLength", "minimum"}:
                yield f"alternatives that say what {name} is"


def needed(node: Node) -> list[str] | None:
    """The fields that an object must have unless it says with `$patch` what it removes."""
    if "required" in node or "anyOf" not in node:
        return node.get("required")
    first, second = node["anyOf"]
    assert second == {"required": ["$patch"]}
    required: list[str] = first["required"]
    return required


def list_faults(node: Node) -> Iterator[str]:
    keys = node.get("x-kubernetes-list-map-keys")
    if (node.get("x-kubernetes-list-type") == "map") != (keys is not None):
        yield "list keys without a list of type map, or the reverse"
    item = node.get("items", {})
    for key in keys or ():
        field = item.get("properties", {}).get(key)
        if field is None or field.get("type") not in ("string", "integer", "boolean"):
            yield f"list key {key} is not a scalar field"
        elif key not in item.get("required", ()) and "default" not in field:
            yield f"list key {key} is neither required nor defaulted"


@pytest.mark.parametrize("kind", KINDS)
def test_structural(kind: str) -> None:
    found = [
        (path, fault) for path, node in nodes(schema(kind)) for fault in structural_faults(node)
    ]
    assert found == []


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_fit_their_own_field(kind: str) -> None:
    for path, node in nodes(schema(kind)):
        if "default" in node:
            jsonschema.validate(node["default"], node)
            assert "type" in node or "anyOf" in node, path


@pytest.mark.parametrize("kind", KINDS)
def test_size(kind: str) -> None:
    assert len(render_crd(CRDS[kind], keep=True).encode()) < 200 * 1024


def test_no_directive_stands_among_the_properties_of_a_crd() -> None:
    """Helm and kubectl update CRDs with strategic merge patches, which would carry it out."""
    for kind in KINDS:
        for path, node in nodes(schema(kind)):
            found = [name for name in node.get("properties", {}) if name.startswith("$")]
            assert found == [], path


def test_the_structural_check_finds_faults() -> None:
    bad = {
        "type": "array",
        "items": {"properties": {"a": {"type": "string"}}, "required": ["b"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "c"],
    }
    assert list(structural_faults(bad)) == [
        "list key a is neither required nor defaulted",
        "list key c is not a scalar field",
    ]
    assert len(list(structural_faults(bad["items"]))) == 2  # type: ignore[arg-type]
    typed = {"properties": {"a": {"type": "string"}, "b": {}}, "maximum": 1}
    assert list(structural_faults({"type": "object", "properties": {}, "anyOf": [typed]})) == [
        "alternatives with {'maximum'}",
        "alternatives that say what a is",
        "alternatives that say what b is",
    ]


NAMES = [
    ("AcceleratorClass", "acceleratorclasses", "Cluster", None),
    ("BaseModel", "basemodels", "Namespaced", None),
    ("ClusterBaseModel", "clusterbasemodels", "Cluster", None),
    ("ClusterServingRuntime", "clusterservingruntimes", "Cluster", None),
    ("InferenceService", "inferenceservices", "Namespaced", ["isvc"]),
    ("ServingRuntime", "servingruntimes", "Namespaced", None),
]


@pytest.mark.parametrize(("kind", "plural", "scope", "short"), NAMES)
def test_names(kind: str, plural: str, scope: str, short: list[str] | None) -> None:
    crd = CRDS[kind]
    assert crd["metadata"] == {"name": f"{plural}.ome.io"}
    assert crd["spec"]["scope"] == scope
    names = crd["spec"]["names"]
    assert names.get("shortNames") == short
    assert names["categories"] == ["ome"]
    assert (names["listKind"], names["singular"]) == (f"{kind}List", kind.lower())
    version = crd["spec"]["versions"][0]
    assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)
    assert version["subresources"] == {"status": {}}
    assert "required" not in schema(kind)


COLUMNS = {
    "AcceleratorClass": "Vendor Family Memory Nodes",
    "BaseModel": (
        "Disabled Version Vendor Framework FrameworkVersion ModelFormat Architecture Capabilities"
        " Size CompartmentID Ready Age"
    ),
    "InferenceService": "URL Ready BaseModel Runtime Placement Plan-Source Plan-Drift Age",
    "ServingRuntime": (
        "Disabled ModelFormat ModelFramework ModelFrameworkVersion ModelArchitecture ModelSizeMin"
        " ModelSizeMax Images Age"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns(kind: str) -> None:
    columns = CRDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    same = {"ClusterBaseModel": "BaseModel", "ClusterServingRuntime": "ServingRuntime"}
    assert " ".join(each["name"] for each in columns) == COLUMNS[same.get(kind, kind)]
    wide = [each["name"] for each in columns if each.get("priority")]
    assert wide == (
        ["Placement", "Plan-Source", "Plan-Drift"] if kind == "InferenceService" else []
    )


RUNTIME, SERVICE = "ServingRuntime", "InferenceService"
FACTS: list[tuple[str, str, str, Any]] = [
    (SERVICE, "spec.model.kind", "default", "ClusterBaseModel"),
    (SERVICE, "spec.runtime.autoSync", "default", True),
    (SERVICE, "spec.runtime", "required", ["name"]),
    (SERVICE, "spec.engine.runner", "required", None),
    (SERVICE, "spec.router.runner", "required", None),
    (SERVICE, "spec.engine.autoscaler", "required", None),
    (SERVICE, "spec.engine.os", "required", None),
    (SERVICE, "spec.engine.leader.runner", "required", ["name"]),
    (SERVICE, "spec.decoder.worker.runner", "required", ["name"]),
    (SERVICE, "spec.engine.runner.readinessProbe.httpGet", "required", None),
    (SERVICE, "spec.engine.runner.livenessProbe.tcpSocket", "required", None),
    (SERVICE, "spec.engine.runner.startupProbe.httpGet", "required", ["port"]),
    (SERVICE, "spec.engine.runner.ports.[].protocol", "default", "TCP"),
    (SERVICE, "status", PRESERVE, True),
    (SERVICE, "status.modelStatus.modelCopies.failedCopies", "default", 0),
    (SERVICE, "spec.engine.nodeSelector", "x-kubernetes-map-type", "atomic"),
    (SERVICE, "spec.engine.minAvailable", "x-kubernetes-int-or-string", True),
    (RUNTIME, "spec.engineConfig.runner", "required", ["name"]),
    (RUNTIME, "spec.engineConfig.autoscaler", "required", ["class"]),
    (RUNTIME, "spec.engineConfig.runner.readinessProbe.httpGet", "required", ["port"]),
    (RUNTIME, "spec.scalingPolicy", "required", ["mode"]),
    (RUNTIME, "spec.nodeSelector", "x-kubernetes-map-type", None),
    (RUNTIME, "spec.containers", "x-kubernetes-list-map-keys", ["name"]),
    (RUNTIME, "spec.tolerations", "x-kubernetes-list-type", "atomic"),
    (RUNTIME, "spec.supportedModelFormats.[].priority", "minimum", 1),
    (RUNTIME, "spec.supportedModelFormats.[].modelFormat.operator", "enum", None),
    (RUNTIME, "status.conditions", "x-kubernetes-list-map-keys", ["type"]),
    ("BaseModel", "spec", "required", ["storage"]),
    ("BaseModel", "spec.modelConfiguration", PRESERVE, True),
    ("BaseModel", "spec.storage.nodeSelector", "x-kubernetes-map-type", "atomic"),
    ("BaseModel", "status", "required", ["state"]),
    ("AcceleratorClass", "spec", "required", ["discovery", "capabilities"]),
    ("AcceleratorClass", "spec.resources.[].quantity", "default", "1"),
    ("AcceleratorClass", "status.conditions", "x-kubernetes-list-type", "atomic"),
]


@pytest.mark.parametrize(("kind", "path", "keyword", "value"), FACTS)
def test_facts(kind: str, path: str, keyword: str, value: Any) -> None:
    node = at(kind, path)
    assert (needed(node) if keyword == "required" else node.get(keyword)) == value


def test_a_service_has_no_ephemeral_containers() -> None:
    assert not [path for path, _ in nodes(schema(SERVICE)) if path.endswith("ephemeralContainers")]
    assert "ephemeralContainers" in at(RUNTIME, "spec.engineConfig")["properties"]


def test_rules_read_only_declared_fields() -> None:
    rules = at(SERVICE, "spec")["x-kubernetes-validations"]
    assert len(rules) == 2
    for path in ("placement.policy", "placement.capacityFactors", "routing.capacityFactors"):
        assert at(SERVICE, f"spec.{path}")


def validate(raw: Node) -> None:
    jsonschema.Draft7Validator(schema(raw["kind"])).validate(raw)


def test_the_catalog_fits(catalog: list[tuple[str, Node]]) -> None:
    for _, raw in catalog:
        validate(raw)


def test_the_golden_inputs_fit(golden: list[tuple[str, Node]]) -> None:
    for _, raw in golden:
        validate(raw)


MISFITS = [
    (SERVICE, {"engine": {"minReplicas": "1"}}),
    (SERVICE, {"acceleratorSelector": {"policy": "Best"}}),
    (SERVICE, {"engine": {"leader": {"runner": {}}}}),
    (RUNTIME, {"engineConfig": {"runner": {}}}),
    (RUNTIME, {"engineConfig": {"runner": {"name": "c", "env": [{}]}}}),
    (RUNTIME, {"engineConfig": {"containers": [{}]}}),
    (RUNTIME, {"engineConfig": {"volumes": [{}]}}),
    ("BaseModel", {}),
    ("AcceleratorClass", {"discovery": {}, "capabilities": {"memoryGB": "much"}}),
]


@pytest.mark.parametrize(("kind", "spec"), MISFITS)
def test_misfits(kind: str, spec: Any, make: Make) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(make(kind, spec))


def test_rendering() -> None:
    documents = list(yaml.load_all(render_crds(), yaml.SafeLoader))
    assert documents == crds()
    kept = yaml.safe_load(render_crd(documents[0], keep=True))
    assert kept["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in documents[0]["metadata"]


def test_each_call_gives_new_objects() -> None:
    first = crds()
    before = copy.deepcopy(first)
    for crd in first:
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clear()
    assert crds() == before


def test_pod_definitions_refer_to_each_other_only() -> None:
    known = pod_definitions()

    def references(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for each in node.values():
                yield from references(each)

    assert {name for each in known.values() for name in references(each)} <= known.keys()
