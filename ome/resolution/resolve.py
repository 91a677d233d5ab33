"""Which model and which runtime a service uses, named or chosen.

Source: OME "Reference a runtime explicitly" document (v1.3); the order of kinds for models is OME's
own ruling (docs/compatibility.md): the declared kind first, then the other one with an advisory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ome.api import (
    BaseModel,
    ClusterBaseModel,
    ClusterServingRuntime,
    InferenceService,
    ObjectRef,
    Problem,
    ServingRuntime,
)
from ome.merging.directives import Report, problems_of, remove
from ome.merging.schema import RUNTIME_SPEC
from ome.merging.strategic import merge
from ome.resolution import refusals
from ome.resolution.pinning import Pin, Unpinnable, pin, runtime_kind, runtime_of_revision
from ome.resolution.revisions import revision_name, revision_name_fits
from ome.resolution.selection import Selection, no_runtime_message, select
from ome.scoring.matching import NO_CACHE
from ome.scoring.verdict import Request, compatibility_error, judge
from ome.snapshot import Effective, Filling, Runtime, Snapshot

__all__ = [
    "Model",
    "Resolution",
    "find_model",
    "find_runtime",
    "incompatibility",
    "lookup_order",
    "resolve",
    "unservable",
]

Model = BaseModel | ClusterBaseModel


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a service is served with.

    `chain` holds the runtime's ancestors root first and itself last, `spec` the effective runtime
    spec; `model` is None for services whose runtime loads the weights itself. `selection` is there
    when OME chose the runtime: it is rendered from its own spec then; `pin` when the service is served from
    a stored revision. `fillings` tells what presets gave to runtimes of the chain. `incompatible` says why
    a named runtime doesn't declare support for the model. `denial` is what admission refuses the service
    with all the same: a pinned service is served from its revision while its live runtime is gone or
    disabled, and can't be edited.
    """

    runtime: Runtime
    chain: tuple[Runtime, ...]
    spec: Mapping[str, Any]
    model: Model | None
    selection: Selection | None = None
    pin: Pin | None = None
    fillings: Mapping[ObjectRef, Filling] = field(default_factory=dict)
    incompatible: str = ""
    denial: str | None = None
    advisories: tuple[Problem, ...] = ()

    @property
    def auto_selected(self) -> bool:
        """Whether OME chose the runtime."""
        return self.selection is not None

    @property
    def layers(self) -> list[tuple[ObjectRef, Mapping[str, Any]]]:
        """What the effective spec was merged from, weakest first: objects with their own specs."""
        if self.pin is not None:
            return [(ObjectRef("ControllerRevision", "", self.pin.revision), self.spec)]
        return [layer for each in self.chain for layer in self._layers_of(each)]

    def _layers_of(self, runtime: Runtime) -> Sequence[tuple[ObjectRef, Mapping[str, Any]]]:
        """A runtime's own spec, with the preset under it that fills it."""
        filling = self.fillings.get(runtime.ref)
        return filling.layers if filling else [(runtime.ref, runtime.raw.get("spec") or {})]


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
        return _choose(snapshot, service, model, advisories)
    _check_revision(service, reference)
    if reference.get("autoSync") is False:
        found = _pinned(snapshot, service, reference, model)
    else:
        found = _live(snapshot, service, reference, model, advisories)
    runtime = found.runtime
    if found.spec.get("disabled") is True:
        raise _disabled(service, found, model)
    incompatible = ""
    if model is not None:
        _check_servable(service.ref, runtime, model)
        incompatible = incompatibility(service, runtime, found.live, model)
        if incompatible:
            advisories.append(_not_declared(service.ref, runtime.name, model.name, incompatible))
    return Resolution(
        runtime,
        found.chain,
        found.spec,
        model,
        pin=found.pin,
        fillings=snapshot.fillings,
        incompatible=incompatible,
        denial=found.denial,
        advisories=tuple(advisories),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A named runtime: the spec that counts, and the live one that support is declared in."""

    runtime: Runtime
    chain: tuple[Runtime, ...]
    spec: Mapping[str, Any]
    live: Mapping[str, Any]
    pin: Pin | None = None
    denial: str | None = None


def _disabled(service: InferenceService, found: _Found, model: Model | None) -> refusals.Refused:
    """The refusal of a disabled runtime; a revision's is worded without the model, as documented."""
    name = model.name if model and not found.pin else None
    refused = refusals.runtime_disabled(service.ref, found.runtime.ref, name)
    return replace(refused, denial=found.denial) if found.pin else refused


def _check_revision(service: InferenceService, reference: Mapping[str, Any]) -> None:
    """A revision needs `autoSync: false` and the form of the runtime's revision names."""
    revision = reference.get("revision")
    if not revision:
        return
    if reference.get("autoSync") is not False:
        raise refusals.revision_needs_auto_sync_false(service.ref)
    kind = runtime_kind(reference)
    if not revision_name_fits(revision, kind, service.namespace, reference["name"]):
        form = revision_name(kind, service.namespace, reference["name"], "")
        raise refusals.revision_name(service.ref, revision, reference["name"], kind, form)


def _live(
    snapshot: Snapshot,
    service: InferenceService,
    reference: Mapping[str, Any],
    model: Model | None,
    advisories: list[Problem],
) -> _Found:
    """The named runtime with its chain. Raises Refused when there is none."""
    kind = runtime_kind(reference)
    runtime = find_runtime(snapshot, service.namespace, reference["name"], kind)
    name = model.name if model else None
    if runtime is None:
        raise refusals.runtime_not_found(service.ref, reference["name"], kind, name)
    effective = snapshot.lineage.effective(runtime.ref)
    if effective.broken is not None:
        raise refusals.broken_chain(service.ref, runtime.name, name, effective.broken)
    advisories.extend(effective.unmatched)
    return _Found(runtime, effective.chain, effective.spec, effective.spec)


def _pinned(
    snapshot: Snapshot,
    service: InferenceService,
    reference: Mapping[str, Any],
    model: Model | None,
) -> _Found:
    """The revision that a service is pinned to. Raises Refused when there is none, or drift freezes."""
    kind = runtime_kind(reference)
    runtime = find_runtime(snapshot, service.namespace, reference["name"], kind)
    live: Effective | None = None
    chain: tuple[Runtime, ...] = ()
    problem = ""
    if runtime is None:
        missing = refusals.runtime_not_found(service.ref, reference["name"], kind, None)
        problem = missing.problem.message
    else:
        effective = snapshot.lineage.effective(runtime.ref)
        if effective.broken is not None:
            problem = effective.broken.message
        else:
            chain = effective.chain
            live = effective
    cause = problem
    if live is not None and live.spec.get("disabled") is True:
        cause = refusals.disabled_text(live.chain[-1].ref)
    denial = refusals.pinned_denial(reference["name"], model.name if model else None, cause)
    try:
        found = pin(snapshot, service, reference, live, problem, is_missing=runtime is None)
    except Unpinnable as error:
        raise refusals.unpinnable(service.ref, error.message, denial) from None
    if found.spec is None:
        raise refusals.drifted(service.ref, found, denial)
    if runtime is None:
        runtime = runtime_of_revision(snapshot, service.namespace, found)
    return _Found(runtime, chain, found.spec, live.spec if live else found.spec, found, denial)


def _choose(
    snapshot: Snapshot, service: InferenceService, model: Model, advisories: list[Problem]
) -> Resolution:
    """Automatic selection: the runtime's own spec, without what it inherits."""
    spec = model.raw.get("spec") or {}
    if fault := unservable(spec):
        raise refusals.selection_failed(service.ref, model.name, fault)
    selection = select(snapshot, service, spec)
    if selection is None:
        text = no_runtime_message(snapshot, service, spec)
        raise refusals.no_runtime_found(service.ref, model.name, text)
    runtime = selection.runtime
    filling = snapshot.fillings.get(runtime.ref)
    if filling is not None and filling.problem is not None:
        raise refusals.no_preset(service.ref, filling.problem, "spec.model.name")
    text = f"Runtime {runtime.name} will be auto-selected for model {model.name}"
    advisories.append(Problem("AutoSelected", text, service.ref))
    own: Mapping[str, Any] = runtime.raw.get("spec") or {}
    report: Report = []
    if filling is not None:
        merge(filling.fragment, filling.own.raw.get("spec") or {}, RUNTIME_SPEC, report)
    elif runtime.has_directives:
        own = remove({}, own, RUNTIME_SPEC, report)[1]
    advisories.extend(problems_of(report, runtime.ref))
    return Resolution(
        runtime,
        (runtime,),
        own,
        model,
        selection,
        fillings=snapshot.fillings,
        advisories=tuple(advisories),
    )


def incompatibility(
    service: InferenceService, runtime: Runtime, merged: Mapping[str, Any], model: Model
) -> str:
    """Why a named runtime, with its merged spec, doesn't declare support for the model; "" when it does."""
    model_spec = model.raw.get("spec") or {}
    reason = judge(runtime.ref, merged, model_spec, Request.of(service.raw)).reason
    return "" if reason is None else compatibility_error(runtime.name, model_spec, reason)


def _not_declared(service: ObjectRef, runtime: str, model: str, error: str) -> Problem:
    text = (
        f'runtime "{runtime}" does not declare support for model "{model}" ({error}); '
        "proceeding because the runtime was named explicitly"
    )
    return Problem("NotDeclared", text, service, path="spec.runtime.name")


def find_runtime(snapshot: Snapshot, namespace: str, name: str, kind: str) -> Runtime | None:
    """Look a runtime up by name in the scopes that the reference's kind says, in its order."""
    found = (snapshot.runtime_of(ref) for ref in lookup_order(namespace, name, kind))
    return next((runtime for runtime in found if runtime is not None), None)


def lookup_order(namespace: str, name: str, kind: str) -> tuple[ObjectRef, ...]:
    """The runtimes that a service's reference can mean, the first that exists being meant."""
    local = ObjectRef(ServingRuntime.KIND, namespace, name)
    if kind == ServingRuntime.KIND:
        return (local,)
    cluster = ObjectRef(ClusterServingRuntime.KIND, "", name)
    return (cluster, local) if kind == ClusterServingRuntime.KIND else (local, cluster)


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
    if weights := reference.get("fineTunedWeights"):
        raise refusals.fine_tuned_weights(service.ref, weights)
    return model


def find_model(snapshot: Snapshot, namespace: str, name: str, kind: str) -> Model | None:
    """Look a model up by name: of the declared kind, or else of the other one."""
    local, cluster = snapshot.model(namespace, name), snapshot.cluster_model(name)
    return (local or cluster) if kind == "BaseModel" else (cluster or local)


def _other_kind(service: ObjectRef, declared: str, model: Model) -> Problem:
    return Problem(
        "ModelKindMismatch",
        f'there is no {declared} "{model.name}"; the {model.KIND} of that name is used',
        service,
        path="spec.model.kind",
        fix=f"set kind: {model.KIND}",
    )


def unservable(model_spec: Mapping[str, Any]) -> str:
    """What keeps any runtime from serving a model; "" when nothing does."""
    if not (model_spec.get("modelFormat") or {}).get("name"):
        return "invalid model specification: modelFormat.name: model format name is required"
    return ""


def _check_servable(service: ObjectRef, runtime: Runtime, model: Model) -> None:
    spec = model.raw.get("spec") or {}
    cause = unservable(spec)
    if not cause and spec.get("distribution") == "Sharded":
        cause = NO_CACHE
    if cause:
        raise refusals.invalid_runtime(
            service, runtime.name, model.name, cause, code="ModelNotServable"
        )
