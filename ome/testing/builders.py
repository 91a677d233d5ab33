"""Builders for tests: small objects of every kind, and a snapshot of them."""

from __future__ import annotations

from typing import Any

from ome.api import ApiObject, parse
from ome.engines.engines import Engines
from ome.merging.canonical import content_hash
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.resolution.revisions import revision_name
from ome.snapshot import EVERY_API, ApiKind, Config, Snapshot
from ome.sources import InstalledPresets

__all__ = [
    "ENTRY",
    "container",
    "deployment",
    "model",
    "obj",
    "plan_of",
    "revision",
    "runtime",
    "service",
]

Json = dict[str, Any]
# What the models of `model` match, and what the runtimes of `runtime` declare.
ENTRY: Json = {
    "modelFormat": {"name": "safetensors", "version": "1.0.0"},
    "modelFramework": {"name": "transformers", "version": "4.50.0"},
}
_CLUSTER = frozenset({"ClusterServingRuntime", "ClusterBaseModel", "AcceleratorClass"})


def obj(kind: str, name: str, spec: Json, *, namespace: str = "demo", **metadata: Any) -> ApiObject:
    """An object of any kind of OME's; cluster-scoped kinds have no namespace."""
    where = {} if kind in _CLUSTER else {"namespace": namespace}
    return parse(
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": kind,
            "metadata": {"name": name, **where, **metadata},
            "spec": spec,
        }
    )


def runtime(
    engine: Json | None = None,
    *,
    name: str = "rt",
    kind: str = "ClusterServingRuntime",
    **spec: Any,
) -> ApiObject:
    """A runtime with an engine (a plain container by default) and further spec fields; it declares
    support for the models of `model`."""
    metadata = spec.pop("metadata", {})
    spec.setdefault("supportedModelFormats", [ENTRY])
    default = {"runner": {"name": "ome-container", "image": "engine:v1"}}
    engine_config = default if engine is None else engine
    return obj(kind, name, {"engineConfig": engine_config, **spec}, **metadata)


def model(name: str = "m", *, kind: str = "ClusterBaseModel", **spec: Any) -> ApiObject:
    """A model with a format, a framework and a path."""
    metadata = spec.pop("metadata", {})
    default = {
        **ENTRY,
        "storage": {"storageUri": f"hf://acme/{name}", "path": f"/models/{name}"},
    }
    return obj(kind, name, {**default, **spec}, **metadata)


def service(name: str = "chat", *, namespace: str = "demo", **spec: Any) -> ApiObject:
    """An InferenceService that names the runtime `rt` and declares an engine."""
    metadata = spec.pop("metadata", {})
    default: Json = {"runtime": {"name": "rt"}, "engine": {}}
    merged = {key: value for key, value in {**default, **spec}.items() if value is not None}
    return obj("InferenceService", name, merged, namespace=namespace, **metadata)


def revision(spec: Any, *, name: str = "", runtime: str = "rt", **changes: Any) -> Json:
    """The ControllerRevision that OME writes for a ClusterServingRuntime's spec. `changes` are fields of
    the object, of its metadata, or (as `labels`) of its labels."""
    digest = content_hash(spec) if isinstance(spec, dict) else "0" * 64
    labels = {
        "ome.io/runtime-of": runtime,
        "ome.io/runtime-of-kind": "ClusterServingRuntime",
        "ome.io/runtime-of-namespace": "",
        "ome.io/revision-hash": digest[:8],
        **changes.pop("labels", {}),
    }
    fields: Json = {field: changes.pop(field) for field in ("revision", "data") if field in changes}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name or revision_name("ClusterServingRuntime", "", runtime, digest),
            "namespace": "ome",
            "creationTimestamp": "2026-09-01T08:00:00Z",
            "annotations": {"ome.io/created-by": "ome-controller"},
            **changes,
            "labels": labels,
        },
        "data": spec,
        "revision": 1,
        **fields,
    }


def plan_of(
    *objects: ApiObject,
    config: Config | None = None,
    engines: Engines | None = None,
    served: frozenset[ApiKind] = EVERY_API,
    provenance: bool = False,
) -> Plan:
    """The plan of the only InferenceService among the objects."""
    engines = engines or Engines()
    presets = InstalledPresets(engines)
    snapshot = Snapshot.of(objects, config=config, served=served, presets=presets)
    (target,) = snapshot.services()
    return plan(snapshot, target, engines, provenance=provenance)


def deployment(rendered: Plan, component: str = "engine") -> Json:
    """The Deployment of a component in a plan."""
    (found,) = (
        item
        for item in rendered.objects()
        if item["kind"] == "Deployment" and item["metadata"]["labels"]["component"] == component
    )
    return found


def container(rendered: Plan, component: str = "engine", name: str = "ome-container") -> Json:
    """A container of a component in a plan."""
    containers = deployment(rendered, component)["spec"]["template"]["spec"]["containers"]
    found: Json = next(item for item in containers if item["name"] == name)
    return found
