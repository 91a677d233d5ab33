"""Which model and which runtime a service uses, for services that name their runtime.

Source: OME "Reference a runtime explicitly" document (v1.3); the order of kinds for models is OME's
own ruling (docs/compatibility.md): the declared kind first, then the other one with an advisory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ome.api import BaseModel, ClusterBaseModel, InferenceService, ObjectRef, Problem
from ome.resolution import refusals
from ome.resolution.inheritance import BrokenChain, Runtime, resolve_chain, spec_of_chain
from ome.snapshot import Snapshot

__all__ = ["Model", "Resolution", "resolve"]

Model = BaseModel | ClusterBaseModel


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a service is served with.

    `chain` holds the runtime's ancestors root first and itself last, `spec` the effective runtime
    spec; `model` is None for services whose runtime loads the weights itself.
    """

    runtime: Runtime
    chain: tuple[Runtime, ...]
    spec: Mapping[str, Any]
    model: Model | None
    auto_selected: bool = False
    advisories: tuple[Problem, ...] = ()


def resolve(snapshot: Snapshot, service: InferenceService) -> Resolution:
    """Resolve a service's model and runtime. Raises refusals.Refused.

    Checks in the documented order: the model (exists, enabled), the runtime (exists, its chain, its
    merged `disabled`), then what makes a model impossible to serve (no format, sharded weights).
    """
    spec = service.raw.get("spec") or {}
    reference = spec.get("runtime")
    advisories: list[Problem] = []
    model = _resolve_model(snapshot, service, spec.get("model"), advisories)
    if not reference or not reference.get("name"):
        if model is None:
            raise refusals.nothing_named(service.ref)
        raise refusals.no_runtime_named(service.ref, model.name)
    runtime = find_runtime(
        snapshot, service.namespace, reference["name"], reference.get("kind") or _DEFAULT_RUNTIME
    )
    if runtime is None:
        kind = reference.get("kind") or _DEFAULT_RUNTIME
        raise refusals.runtime_not_found(service.ref, reference["name"], kind)
    model_name = model.name if model else None
    try:
        chain = resolve_chain(snapshot, runtime)
    except BrokenChain as broken:
        raise refusals.broken_chain(service.ref, runtime.name, model_name, broken) from None
    merged = spec_of_chain(chain)
    if merged.get("disabled") is True:
        raise refusals.runtime_disabled(service.ref, runtime.ref, model_name)
    if model is not None:
        _check_servable(service.ref, runtime, model)
    if reference.get("autoSync") is False:
        advisories.append(refusals.pin_not_applied(service.ref))
    return Resolution(runtime, chain, merged, model, advisories=tuple(advisories))


_DEFAULT_RUNTIME = "ClusterServingRuntime"


def find_runtime(snapshot: Snapshot, namespace: str, name: str, kind: str) -> Runtime | None:
    """Look a runtime up by name in the scopes that the reference's kind says, in its order."""
    local = snapshot.runtime(namespace, name)
    if kind == "ServingRuntime":
        return local
    cluster = snapshot.cluster_runtime(name)
    return (cluster or local) if kind == _DEFAULT_RUNTIME else (local or cluster)


def _resolve_model(
    snapshot: Snapshot,
    service: InferenceService,
    reference: Mapping[str, Any] | None,
    advisories: list[Problem],
) -> Model | None:
    if not reference:
        return None
    name = reference.get("name") or ""
    kind = reference.get("kind") or "ClusterBaseModel"
    model = find_model(snapshot, service.namespace, name, kind)
    if model is None:
        raise refusals.model_not_found(service.ref, name)
    if kind != model.KIND:
        advisories.append(_other_kind(service.ref, kind, model))
    if (model.raw.get("spec") or {}).get("disabled") is True:
        raise refusals.model_disabled(service.ref, name)
    return model


def find_model(snapshot: Snapshot, namespace: str, name: str, kind: str) -> Model | None:
    """Look a model up by name: of the declared kind, or else of the other one."""
    local, cluster = snapshot.model(namespace, name), snapshot.cluster_model(name)
    if kind == "BaseModel":
        return local or cluster
    return (cluster or local) if kind == "ClusterBaseModel" else None


def _other_kind(service: ObjectRef, declared: str, model: Model) -> Problem:
    return Problem(
        "ModelKindMismatch",
        f'there is no {declared} "{model.name}"; the {model.KIND} of that name is used',
        service,
        path="spec.model.kind",
        fix=f"set kind: {model.KIND}",
    )


def _check_servable(service: ObjectRef, runtime: Runtime, model: Model) -> None:
    spec = model.raw.get("spec") or {}
    cause = ""
    if not (spec.get("modelFormat") or {}).get("name"):
        cause = "invalid model specification: modelFormat.name: model format name is required"
    elif spec.get("distribution") == "Sharded":
        cause = "no model cache provider is configured for sharded model loading"
    if cause:
        raise refusals.invalid_runtime(
            service, runtime.name, model.name, cause, code="ModelNotServable"
        )
