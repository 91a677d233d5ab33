"""The live side of a service: the runtime as it is defined now, its chain, and the components' modes.

Source: OME "kubectl ome runtime" reference (v1.3), "effective". Resolution itself is `ome.resolution`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ome.api import InferenceService, ObjectRef, ServingRuntime
from ome.merging.canonical import content_hash
from ome.merging.container import merge_component
from ome.merging.directives import own_spec
from ome.planning.context import COMPONENTS
from ome.planning.modes import VIRTUAL, ModeSource, mode_of
from ome.reports.evidence import Evidence, Source
from ome.reports.revisions import RUNTIME_KINDS
from ome.resolution.pinning import runtime_kind
from ome.resolution.resolve import (
    Model,
    find_model,
    find_runtime,
    incompatibility,
    lookup_order,
    unservable,
)
from ome.resolution.selection import select
from ome.scoring.verdict import declared_mode
from ome.snapshot import Effective, Runtime, Snapshot

__all__ = ["ComponentMode", "Live", "component_modes", "has_valid_kind", "resolve_live"]

Json = Mapping[str, Any]

# How a report words why a chain doesn't resolve.
_CHAIN_REASONS: Final = {
    "ParentNotFound": "NotFound",
    "InheritanceCycle": "Cycle",
    "MaxDepthExceeded": "MaxDepthExceeded",
}


@dataclass(frozen=True, slots=True)
class ComponentMode:
    """The mode of one component, and what says so."""

    name: str
    mode: str
    source: str

    def as_json(self) -> dict[str, str]:
        """The component as JSON data."""
        return {
            "type": self.name,
            "deploymentMode": self.mode,
            "deploymentModeSource": self.source,
        }


@dataclass(frozen=True, slots=True)
class Live:
    """The runtime that a service names or OME chooses.

    `ref` is known also for a runtime that is missing, when its name and kind say where it should be.
    `spec` is None for the `reason`; `chain` is empty for the `chain_reason`. `is_incompatible`: the service
    follows it and it doesn't declare support for the model. `digest` is the full hash of `spec`.
    """

    selection: str
    name: str = ""
    ref: ObjectRef | None = None
    runtime: Runtime | None = None
    spec: Json | None = None
    digest: str = ""
    chain: tuple[Runtime, ...] = ()
    model: Model | None = None
    reason: str = ""
    chain_reason: str = ""
    is_incompatible: bool = False

    def sources(self) -> Iterator[Source]:
        """What of it was read, or couldn't be."""
        for item in (self.model, self.runtime, *self.chain):
            if item is not None:
                yield Source.of(item)
        if self.runtime is None and self.ref is not None:
            yield Source(self.ref, reason=self.reason)


def has_valid_kind(named: Json) -> bool:
    """Whether a reference's kind is a runtime's, or unset."""
    return named.get("kind") is None or named["kind"] in RUNTIME_KINDS


def resolve_live(snapshot: Snapshot, service: InferenceService, evidence: Evidence) -> Live:
    """The live runtime of a service, or why there is none."""
    spec = service.raw.get("spec") or {}
    named, wanted = spec.get("runtime") or {}, spec.get("model") or {}
    model = None
    if wanted.get("name"):
        kind = wanted.get("kind") or "ClusterBaseModel"
        model = find_model(snapshot, service.namespace, wanted["name"], kind)
    if named.get("name"):
        return _named(snapshot, service, named, model, evidence)
    if not wanted.get("name"):
        return _nothing("NotConfigured")
    return _chosen(snapshot, service, model, evidence)


def _nothing(reason: str, model: Model | None = None) -> Live:
    return Live("Selected", model=model, reason=reason, chain_reason=reason)


def _chosen(
    snapshot: Snapshot, service: InferenceService, model: Model | None, evidence: Evidence
) -> Live:
    """Automatic selection: the chosen runtime is used with its own spec, whatever it inherits from."""
    for kind in RUNTIME_KINDS:
        if evidence.listing(kind).status != "Complete":
            return _nothing("Unreadable", model)
    if model is None:
        return _nothing("NotFound")
    spec = model.raw.get("spec") or {}
    if spec.get("disabled") is True:
        return _nothing("Disabled", model)
    if unservable(spec):
        return _nothing("Unreadable", model)
    selection = select(snapshot, service, spec)
    if selection is None:
        return _nothing("NotFound", model)
    runtime = selection.runtime
    effective = snapshot.lineage.effective(runtime.ref)
    filling = snapshot.fillings.get(runtime.ref)
    if filling is not None and filling.problem is not None:
        found = Live("Selected", runtime.name, runtime.ref, runtime, model=model)
        return replace(_with_chain(found, effective), reason="Unreadable")
    own = own_spec(runtime)
    found = Live(
        "Selected", runtime.name, runtime.ref, runtime, own, content_hash(own), model=model
    )
    return _with_chain(found, effective)


def _named(
    snapshot: Snapshot,
    service: InferenceService,
    named: Json,
    model: Model | None,
    evidence: Evidence,
) -> Live:
    kind = runtime_kind(named)
    runtime = find_runtime(snapshot, service.namespace, named["name"], kind)
    if runtime is None:
        ref = _declared(named, service.namespace) if has_valid_kind(named) else None
        reason = _failure(named, service.namespace, evidence)
        return Live("Explicit", named["name"], ref, model=model, reason=reason, chain_reason=reason)
    whole = snapshot.lineage.effective(runtime.ref)
    found = _with_chain(Live("Explicit", runtime.name, runtime.ref, runtime, model=model), whole)
    if whole.broken is not None:
        return replace(found, reason="Unreadable")
    if whole.spec.get("disabled") is True:
        return replace(found, reason="Disabled")
    follows = named.get("autoSync") is not False
    mismatch = (
        follows and model is not None and incompatibility(service, runtime, whole.spec, model)
    )
    return replace(found, spec=whole.spec, digest=whole.digest, is_incompatible=bool(mismatch))


def _declared(named: Json, namespace: str) -> ObjectRef:
    kind = runtime_kind(named)
    return ObjectRef(kind, namespace if kind == ServingRuntime.KIND else "", named["name"])


def _failure(named: Json, namespace: str, evidence: Evidence) -> str:
    """Why a runtime isn't there: it doesn't exist, unless reading it failed."""
    places = lookup_order(namespace, named["name"], runtime_kind(named))
    return next((evidence.failed[ref] for ref in places if ref in evidence.failed), "NotFound")


def _with_chain(live: Live, found: Effective) -> Live:
    """The runtime with its chain, which is known also where a preset of it can't be had."""
    if found.broken is not None and found.broken.preset is None:
        return replace(live, chain_reason=_CHAIN_REASONS[found.broken.reason])
    return replace(live, chain=found.chain)


def component_modes(service: InferenceService, runtime_spec: Json) -> list[ComponentMode]:
    """The mode of every component that a service declares, on an effective runtime spec."""
    spec = service.raw.get("spec") or {}
    if declared_mode(service.annotations) == VIRTUAL:
        source = str(ModeSource.SERVICE_ANNOTATION)
        return [
            ComponentMode(name, VIRTUAL, source)
            for name in COMPONENTS
            if isinstance(spec.get(name), dict)
        ]
    found = []
    for name in COMPONENTS:
        own = spec.get(name)
        if isinstance(own, dict):
            merged = merge_component(runtime_spec.get(f"{name}Config") or {}, own)
            mode, source = mode_of(name, merged, spec.get("deploymentMode"))
            found.append(ComponentMode(name, mode, str(source)))
    return found
