"""CustomResourceDefinitions of the six kinds, generated from the models.

The schemas are structural. Pod-shaped parts are checked as far as a definition of readable size
allows: a runtime embeds a container more than twenty times over, so what is rarely misspelt (volume
sources, probe handlers, affinity, security contexts) keeps unknown fields at its own level and is left
to the API server that creates the pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.api.base import GROUP, VERSION, ApiObject
from ome.api.opening import open_for_directives
from ome.api.parsing import KINDS
from ome.api.schema import PRESERVE, Node, kind_schema, resolve

__all__ = ["CATEGORY", "crds"]

CATEGORY: Final = "ome"
"""Every kind's category, so that `kubectl get ome` lists them all; upstream's kinds have none."""

_SHORT_NAMES: Final = {"InferenceService": ["isvc"]}
_AGE: Final = ("Age", ".metadata.creationTimestamp", "date")
_MODEL_COLUMNS: Final = (
    ("Disabled", ".spec.disabled", "boolean"),
    ("Version", ".spec.version", "string"),
    ("Vendor", ".spec.vendor", "string"),
    ("Framework", ".spec.modelFramework.name", "string"),
    ("FrameworkVersion", ".spec.modelFramework.version", "string"),
    ("ModelFormat", ".spec.modelFormat.name", "string"),
    ("Architecture", ".spec.modelArchitecture", "string"),
    ("Capabilities", ".spec.modelCapabilities[*]", "string"),
    ("Size", ".spec.modelParameterSize", "string"),
    ("CompartmentID", ".spec.compartmentID", "string"),
    ("Ready", ".status.state", "string"),
    _AGE,
)
_FORMATS: Final = ".spec.supportedModelFormats[*]"
_RUNTIME_COLUMNS: Final = (
    ("Disabled", ".spec.disabled", "boolean"),
    ("ModelFormat", f"{_FORMATS}.modelFormat.name", "string"),
    ("ModelFramework", f"{_FORMATS}.modelFramework.name", "string"),
    ("ModelFrameworkVersion", f"{_FORMATS}.modelFramework.version", "string"),
    ("ModelArchitecture", f"{_FORMATS}.modelArchitecture", "string"),
    ("ModelSizeMin", ".spec.modelSizeRange.min", "string"),
    ("ModelSizeMax", ".spec.modelSizeRange.max", "string"),
    ("Images", ".spec.containers[*].image", "string"),
    _AGE,
)
_COLUMNS: Final[Mapping[str, tuple[tuple[str, str, str] | tuple[str, str, str, int], ...]]] = {
    "AcceleratorClass": (
        ("Vendor", ".spec.vendor", "string"),
        ("Family", ".spec.family", "string"),
        ("Memory", ".spec.capabilities.memoryGB", "string"),
        ("Nodes", ".status.availableNodes", "integer"),
    ),
    "BaseModel": _MODEL_COLUMNS,
    "ClusterBaseModel": _MODEL_COLUMNS,
    "ClusterServingRuntime": _RUNTIME_COLUMNS,
    "InferenceService": (
        ("URL", ".status.url", "string"),
        ("Ready", ".status.conditions[?(@.type=='Ready')].status", "string"),
        ("BaseModel", ".spec.model.name", "string"),
        ("Runtime", ".spec.runtime.name", "string"),
        ("Placement", ".status.placement.phase", "string", 1),
        ("Plan-Source", ".status.rollout.activeRun.plan.groups[0].source", "string", 1),
        ("Plan-Drift", ".status.conditions[?(@.type=='RolloutPlanDrift')].status", "string", 1),
        _AGE,
    ),
    "ServingRuntime": _RUNTIME_COLUMNS,
}

_OPAQUE: Final = frozenset(
    {
        "Affinity",
        "ContainerRestartRule",
        "EnvVarSource",
        "ExecAction",
        "HTTPHeader",
        "HorizontalPodAutoscalerBehavior",
        "LabelSelector",
        "Lifecycle",
        "PodDNSConfig",
        "PodSecurityContext",
        "SecurityContext",
    }
)
_OUTLINED: Final = frozenset(
    {
        "EnvFromSource",
        "EphemeralContainer",
        "GRPCAction",
        "HTTPGetAction",
        "MetricSpec",
        "TCPSocketAction",
        "TopologySpreadConstraint",
        "Volume",
    }
)
_SIDE_LISTS: Final = frozenset({"containers", "initContainers"})


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of Kubernetes' own definitions a CRD shows.

    Of an `opaque` definition it says only that it is an object, of an `outlined` one it has the
    required fields, list keys among them. Both keep unknown fields.
    """

    opaque: Collection[str] = frozenset()
    outlined: Collection[str] = frozenset()


_FULL: Final = Depth()
_COMPONENT: Final = Depth(_OPAQUE, _OUTLINED)
_SIDE_LIST: Final = Depth(_OPAQUE, _OUTLINED | {"Container"})
"""In `containers` and `initContainers`; it is the runner that people write by hand."""
_DEPTHS: Final[Mapping[str, Depth]] = {
    "AcceleratorClass": _FULL,
    "BaseModel": _FULL,
    "ClusterBaseModel": _FULL,
    "ClusterServingRuntime": _COMPONENT,
    "InferenceService": _COMPONENT,
    "ServingRuntime": _COMPONENT,
}


def crds() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions, in the order of their names.

    Names, columns, defaults and validations are upstream's (spec: api.md 1 to 8); the category
    `ome` is a deliberate addition. Each call returns new objects.
    """
    definitions = [_crd(kind) for kind in KINDS.values()]
    return sorted(definitions, key=lambda each: str(each["metadata"]["name"]))


def _crd(kind: type[ApiObject]) -> dict[str, Any]:
    names: dict[str, Any] = {
        "categories": [CATEGORY],
        "kind": kind.KIND,
        "listKind": f"{kind.KIND}List",
        "plural": kind.PLURAL,
        "singular": kind.KIND.lower(),
    }
    if short := _SHORT_NAMES.get(kind.KIND):
        names["shortNames"] = short
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced" if kind.NAMESPACED else "Cluster",
            "versions": [
                {
                    "additionalPrinterColumns": [_column(*each) for each in _COLUMNS[kind.KIND]],
                    "name": VERSION,
                    "schema": {"openAPIV3Schema": _object_schema(kind.KIND)},
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _column(name: str, path: str, kind: str, priority: int = 0) -> dict[str, Any]:
    column: dict[str, Any] = {"jsonPath": path, "name": name, "type": kind}
    if priority:
        column["priority"] = priority
    return column


def _object_schema(kind: str) -> Node:
    """The whole object: `spec` and `status` in full, the rest as the API server has it."""
    fields = kind_schema(kind)["properties"]
    spec = _expanded(fields["spec"], _DEPTHS[kind])
    spec.pop("default", None)
    if kind == "InferenceService":
        _relax(spec)
        for component in ("engine", "decoder", "router"):
            open_for_directives(spec["properties"][component])
    elif kind.endswith("ServingRuntime"):
        open_for_directives(spec)
    return {
        "description": f"{KINDS[kind].__doc__ or ''}".partition(" (spec")[0].rstrip(".") + ".",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": _expanded(fields["status"], _DEPTHS[kind]),
        },
        "type": "object",
    }


def _expanded(node: Node, depth: Depth) -> Node:
    """A copy of the node in which references are replaced by as much as the CRD shows of them."""
    reference = node.get("$ref", "")
    if reference in depth.opaque:
        return {"type": "object", PRESERVE: True}
    node = dict(resolve(node))
    if reference in depth.outlined:
        node |= {"properties": _required_fields(node), PRESERVE: True}
    for key in ("items", "additionalProperties"):
        if key in node:
            node[key] = _expanded(node[key], depth)
    if "properties" in node:
        inner = dict.fromkeys(_SIDE_LISTS, _SIDE_LIST) if depth is _COMPONENT else {}
        node["properties"] = {
            name: _expanded(each, inner.get(name, depth))
            for name, each in node["properties"].items()
        }
    return node


def _required_fields(node: Node) -> dict[str, Node]:
    return {name: node["properties"][name] for name in node.get("required", ())}


def _relax(spec: Node) -> None:
    """Drop what upstream's build drops from an InferenceService (spec: api.md 1).

    Objects two levels below `spec` require nothing, and the readiness and liveness probes of a
    runner need no port.
    """
    for component in spec["properties"].values():
        for part in component.get("properties", {}).values():
            part.pop("required", None)
            for probe in ("readinessProbe", "livenessProbe"):
                handlers = part.get("properties", {}).get(probe, {}).get("properties", {})
                for handler in ("httpGet", "tcpSocket"):
                    handlers.get(handler, {}).pop("required", None)
