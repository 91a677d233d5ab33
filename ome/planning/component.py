"""One component, from the runtime's and the service's settings to a finished pod.

Source: OME serving-runtimes document (v1.3). Every step copies; inputs are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ome.merging.argspatch import without_pending_anywhere
from ome.merging.container import DEFAULT_RUNNER_NAME, fold, merge_component
from ome.merging.directives import Report, Unmatched, problems_of, settled
from ome.merging.schema import COMPONENT, POD_FIELDS
from ome.planning.context import ComponentRefused, ServiceContext
from ome.planning.metachecks import check_metadata
from ome.planning.metadata import component_annotations, component_labels
from ome.planning.modes import RAW, component_mode
from ome.planning.names import component_name
from ome.planning.podbuild import PodBuild
from ome.planning.scaling import (
    LEGACY_ANNOTATIONS,
    Scaling,
    budget_policy,
    component_scaling,
)
from ome.planning.switches import SWITCHES
from ome.planning.trace import Trace

__all__ = ["Component", "build_component"]

Json = Mapping[str, Any]

SERVICE_LAYER = "InferenceService"
_TRACED_POD = POD_FIELDS | {"runner"}


@dataclass(frozen=True, slots=True)
class Component:
    """A component ready to be rendered: its merged settings and its pod."""

    name: str
    object_name: str
    mode: str
    settings: Json
    pod: dict[str, Any]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scaling: Scaling
    budget: Mapping[str, Any] | None

    @property
    def fixed_replicas(self) -> int | None:
        """The workload's replica count, when no autoscaler owns it."""
        return self.scaling.fixed_replicas


def build_component(
    context: ServiceContext,
    name: str,
    provenance: dict[str, tuple[Any, str]] | None = None,
    removals: dict[str, str] | None = None,
) -> Component:
    """Merge, edit and check one declared component. Raises ComponentRefused.

    With a `provenance` mapping, fills it with the value and the layer of every leaf, and `removals` with
    the layer that removed one.
    """
    trace = Trace() if provenance is not None else None
    settings = _merge(context, name, trace)
    _check_workers(name, settings)
    budget = budget_policy(context, name, settings)
    mode = component_mode(name, settings, context.spec.get("deploymentMode"))
    if mode != RAW:
        raise _unsupported(name, mode)
    scaling = component_scaling(context, name, settings)
    labels = component_labels(context, name, settings)
    annotations = component_annotations(context, settings)
    if found := tuple(check_metadata(labels, annotations, name)):
        raise ComponentRefused(found)
    leader = settings.get("leader")
    part = "leader" if isinstance(leader, dict) and name != "router" else ""
    pod_trace = trace.take(part, _TRACED_POD) if trace is not None else None
    try:
        pod = PodBuild(context, name, settings, part, pod_trace).run(annotations)
    except ComponentRefused as refused:
        if trace is None and any(each.code in SWITCHES for each in refused.problems):
            return build_component(context, name, {})  # the same refusal, with the layers named
        raise
    if trace is not None and pod_trace is not None and provenance is not None:
        _trace_settings(context, trace, settings, scaling, labels, annotations)
        prefix = f"{part}." if part else ""
        provenance.update(trace.result())
        provenance.update({prefix + path: leaf for path, leaf in pod_trace.result().items()})
        if removals is not None:
            removals.update({**trace.removed(), **pod_trace.removed()})
    return Component(
        name=name,
        object_name=component_name(context.service.name, name),
        mode=mode,
        settings=settings,
        pod=pod,
        labels=labels,
        annotations=annotations,
        scaling=scaling,
        budget=budget,
    )


def _check_workers(name: str, settings: Json) -> None:
    """Workers follow a leader, and there is at least one."""
    worker = settings.get("worker")
    if name == "router" or not isinstance(worker, dict):
        return
    size = worker.get("size")
    if not isinstance(settings.get("leader"), dict):
        text = (
            f"InvalidLeaderWorkerPairing: {name}.worker is set but {name}.leader is not; multi-pod "
            "configurations require both (WorkerRequiresLeader)"
        )
        raise ComponentRefused.because(
            "WorkerRequiresLeader", text, path=f"spec.{name}.worker", fix="add a leader"
        )
    if size is not None and size < 1:
        text = (
            f"InvalidLeaderWorkerPairing: {name}.worker.size must be a positive integer when set; leave it "
            "unset to use the runtime's size or one worker (WorkerSizeMustBePositive)"
        )
        path = f"spec.{name}.worker.size"
        raise ComponentRefused.because("WorkerSizeMustBePositive", text, path=path)


def _unsupported(name: str, mode: str) -> ComponentRefused:
    return ComponentRefused.because(
        "DeploymentModeUnsupported",
        f"the {name} resolves to deployment mode {mode}, which this version of OME doesn't render",
        path=f"spec.{name}",
        fix=f"set spec.deploymentMode or the {name}'s annotation ome.io/deploymentMode to {RAW}",
        reason="DeploymentModeError",
    )


def _merge(context: ServiceContext, name: str, trace: Trace | None) -> dict[str, Any]:
    """The runtime's config under the service's component; its pod fields under leader and worker."""
    report: Report = []
    merged = merge_component(
        context.config(name),
        context.overlay(name) or {},
        report,
        patched=context.service.has_directives,
    )
    if report:
        report = [_pointed(each, context.overlay(name) or {}, merged) for each in report]
        context.warnings.extend(problems_of(report, context.ref, ("spec", name)))
    if isinstance(runner := merged.get("runner"), dict) and not runner.get("name"):
        merged = {**merged, "runner": {"name": DEFAULT_RUNNER_NAME, **runner}}
    folded = fold(merged, context.runtime_spec.get("schedulerName"))
    if trace is not None:
        _trace_merge(context, name, trace, merged, folded)
    return folded


def _pointed(unmatched: Unmatched, overlay: Json, merged: Json) -> Unmatched:
    """Where a directive found nothing, since what it names comes from another field: that field."""
    start, *rest = unmatched.path
    if start in ("leader", "worker"):
        fix = f"the {start} takes the component's own pod fields too: remove them there"
        return replace(unmatched, fix=fix)
    runner = merged.get("runner") or {}
    if start == "containers" and len(rest) > 2 and isinstance(rest[0], int):
        name = overlay["containers"][rest[0]].get("name")
        if name == (runner.get("name") or DEFAULT_RUNNER_NAME):
            return replace(unmatched, fix="the container is the runner: write it in runner")
    return unmatched


def _trace_merge(
    context: ServiceContext, name: str, trace: Trace, merged: Json, folded: Json
) -> None:
    """Hand the layers over one by one. Operations on arguments aren't values: they are traced when they
    are carried out."""
    clean = without_pending_anywhere
    scheduler = str(context.resolution.runtime.ref)
    for ref, spec, so_far in context.stages:
        layer = spec.get(f"{name}Config")
        own = settled(layer, COMPONENT) if isinstance(layer, dict) else {}
        trace.merged(str(ref), clean(own), clean(so_far.get(f"{name}Config") or {}))
        if spec.get("schedulerName"):
            scheduler = str(ref)
    trace.merged(SERVICE_LAYER, clean(context.declared(name) or {}), clean(merged))
    folded = clean(folded)
    for part in ("leader", "worker"):
        if part in folded:
            trace.folded(part, folded[part])
    trace.changed(scheduler, folded)


def _trace_settings(
    context: ServiceContext,
    trace: Trace,
    settings: Json,
    scaling: Scaling,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> None:
    for field, own, final in (
        ("labels", context.service.labels, labels),
        ("annotations", context.service.annotations, annotations),
    ):
        merged = {**own, **(settings.get(field) or {})}
        trace.changed(SERVICE_LAYER, {key: merged[key] for key in merged if key in final}, field)
        trace.changed("OME", dict(final), field)
    for field, value in (("minReplicas", scaling.least), ("maxReplicas", scaling.most)):
        if value is not None:
            trace.changed("configuration", value, field)
    if not settings.get("autoscaler"):
        legacy = bool(LEGACY_ANNOTATIONS & context.service.annotations.keys())
        layer = SERVICE_LAYER if legacy else "OME"
        trace.changed(layer, dict(scaling.block), "autoscaler")
