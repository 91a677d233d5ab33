"""The planner: one pure function from a snapshot to what one service asks for.

Components are handled engine → decoder → router, then the ingress step. A refusal holds its
component and everything after it; what runs stays as it is. Source: OME "How OME works" and
inference-services documents (v1.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ome.api import InferenceService, Problem
from ome.engines.engines import Engines
from ome.engines.guard import HOOK_FAILED
from ome.planning import objects
from ome.planning.component import Component, build_component
from ome.planning.context import COMPONENTS, ComponentRefused, ServiceContext
from ome.planning.metadata import SERVICE_LABEL
from ome.planning.modes import VIRTUAL
from ome.planning.names import MAX_NAME
from ome.planning.plan import Action, Apply, Event, Hold, Overlays, Plan, Provenance, Remove
from ome.planning.scaling import autoscaler_object
from ome.planning.stored import stored_conditions
from ome.planning.unread import unread_values
from ome.resolution.pinning import Pin
from ome.resolution.refusals import Refused
from ome.resolution.resolve import Resolution, resolve
from ome.scoring.verdict import declared_mode
from ome.snapshot import PRESET_ANNOTATION, Snapshot

__all__ = ["plan", "unreadable"]

Json = dict[str, Any]

_INGRESS: Final = "ingress"
_DRIFTED: Final = "RuntimeDrifted"
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_CLUSTER_LOCAL: Final = "networking.knative.dev/visibility"
_DISABLE_INGRESS: Final = "ome.io/ingress-disable-creation"
# What is missing where a preset was to supply it.
_OF_PRESETS: Final = frozenset({"ImageMissing", "NoContainer"})


def plan(
    snapshot: Snapshot, service: InferenceService, engines: Engines, *, provenance: bool = False
) -> Plan:
    """What a service asks for, given everything in the snapshot. Never raises for what users wrote.

    With `provenance` the plan says for every leaf which layer set it; that costs several renders.
    """
    if declared_mode(service.annotations) == VIRTUAL:
        return _virtual(snapshot, service)
    try:
        _check_service(service)
        resolution = resolve(snapshot, service)
    except Refused as refused:
        return _held(service, refused)
    context = ServiceContext(snapshot, engines, service, resolution)
    return _ServicePlan(context, provenance=provenance).run()


def unreadable(service: InferenceService, problems: Sequence[Problem]) -> Plan:
    """The plan of a service that can't be read, for what is wrong with it: everything is held.

    `service` is what is known of it, `problems` are one or more.
    """
    found = (str(replace(each, where="", ref=None, fix="")) for each in problems)
    text = f"the InferenceService can't be read: {'; '.join(found)}"
    first = problems[0]
    return _held(
        service, Refused(replace(first, message=text, path="", ref=service.ref), "InternalError")
    )


def _virtual(snapshot: Snapshot, service: InferenceService) -> Plan:
    """VirtualDeployment: somebody else runs the workload, OME creates nothing. What OME ran before goes on
    running, as after every change of mode, and is told."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "VirtualDeployment",
        "message": "InferenceService is in VirtualDeployment mode",
    }
    actions: dict[str, Action] = dict.fromkeys((*COMPONENTS, _INGRESS), Hold(()))
    conditions = (ready, *_left(snapshot, service), *_drift_conditions(service, None))
    return Plan(service.ref, actions, conditions=conditions)


def _left(snapshot: Snapshot, service: InferenceService) -> tuple[Json, ...]:
    """`WorkloadLeft`, while something runs that the service's mode wouldn't make."""
    names = sorted(ref.name for ref in snapshot.live if ref.namespace == service.namespace)
    if not names:
        return ()
    command = (
        f"kubectl delete deployments,services,hpa,pdb -n {service.namespace} "
        f"-l {SERVICE_LABEL}={service.name}"
    )
    text = f"{', '.join(names)} of an earlier deployment mode still runs; remove it with: {command}"
    return (
        {
            "type": "WorkloadLeft",
            "status": "True",
            "severity": "Info",
            "reason": "DeploymentModeChanged",
            "message": text,
        },
    )


def _check_service(service: InferenceService) -> None:
    """What no resolution can mend: the name, and a service without an engine."""
    name = service.name
    if not _NAME.fullmatch(name):
        text = f'invalid InferenceService name "{name}", must match "{_NAME.pattern}"'
        raise Refused(
            Problem("InvalidName", text, service.ref, "metadata.name"), "InternalError", text
        )
    if len(name) > MAX_NAME:
        text = f'InferenceService name "{name}" has {len(name)} characters; Services and labels hold 63'
        raise Refused(
            Problem("NameTooLong", text, service.ref, "metadata.name"), "InternalError", text
        )
    spec = service.raw.get("spec") or {}
    if not isinstance(spec.get("engine"), dict):
        denial = ""
        if isinstance(spec.get("decoder"), dict):
            denial = "decoder cannot be specified without engine"
        problem = Problem(
            "EngineRequired",
            "engine component is required",
            service.ref,
            "spec.engine",
            "add engine: {}",
        )
        raise Refused(problem, "DeploymentModeError", denial)


def _held(service: InferenceService, refused: Refused) -> Plan:
    held = Hold((refused.problem,))
    actions: dict[str, Action] = dict.fromkeys((*COMPONENTS, _INGRESS), held)
    denial = refused.problem.message if refused.denial == "" else refused.denial
    conditions = _drift_conditions(service, refused.pin)
    if refused.pin is not None:
        status = refused.pin.status
        return Plan(service.ref, actions, conditions=conditions, status=status, denial=denial)
    if refused.reason == "RuntimeNotFound":
        conditions = (
            {
                "type": "RuntimeReady",
                "status": "False",
                "severity": "Info",
                "reason": refused.reason,
                "message": refused.problem.message,
            },
            *conditions,
        )
    return Plan(
        service.ref,
        actions,
        conditions=conditions,
        events=(Event("Warning", refused.reason, refused.problem.message),),
        denial=denial,
    )


def _drift_conditions(service: InferenceService, pin: Pin | None) -> tuple[Json, ...]:
    """`RuntimeDrifted` is True or absent, and never counts for Ready. Where nothing was decided about a
    pin it stays as it is: while the service follows its runtime, and while it can't be resolved."""
    if pin is None:
        drifted = stored_conditions(service).get(_DRIFTED)
        return () if drifted is None else (drifted,)
    if pin.drift is None:
        return ()
    return (
        {
            "type": _DRIFTED,
            "status": "True",
            "severity": "Info",
            "reason": pin.drift.reason,
            "message": pin.drift.message,
        },
    )


class _ServicePlan:
    """Plans the components of one resolved service, in order."""

    def __init__(self, context: ServiceContext, *, provenance: bool) -> None:
        self._context = context
        self._provenance: dict[str, dict[str, tuple[Any, str]]] | None = {} if provenance else None
        self._removals: dict[str, dict[str, str]] = {}
        self._actions: dict[str, Action] = {}
        self._parts: dict[str, Component] = {}
        self._events: list[Event] = []

    def run(self) -> Plan:
        """The plan."""
        context = self._context
        context.warnings.extend(context.resolution.advisories)
        self._advise()
        refused = self._outdated()
        for name in COMPONENTS:
            if context.declared(name) is None:
                self._actions[name] = Remove()
            elif refused is not None:
                self._actions[name] = refused
            else:
                self._actions[name] = action = self._component(name)
                refused = action if isinstance(action, Hold) else None
        self._actions[_INGRESS] = refused or self._ingress()
        pin = context.resolution.pin
        return Plan(
            service=context.ref,
            actions=self._actions,
            effects=pin.effects if pin else (),
            status=pin.status if pin else {},
            conditions=(*self._conditions(refused), *_drift_conditions(context.service, pin)),
            denial=context.resolution.denial,
            events=(*self._events, *self._plugin_events()),
            warnings=tuple(dict.fromkeys(context.warnings)),
            decision=_decision(context.resolution, context.fits),
            provenance=dict[str, Provenance](self._provenance or {}),
            removals=self._removals,
            autoscalers=self._autoscalers(),
            overlays=self._overlays(),
        )

    def _plugin_events(self) -> Iterable[Event]:
        """A hook that failed costs its answer alone, so nothing else would tell the user."""
        found = [each for each in self._context.warnings if each.code == HOOK_FAILED]
        return dict.fromkeys(Event("Warning", each.code, each.message) for each in found)

    def _autoscalers(self) -> dict[str, dict[str, str]]:
        return {
            name: {"class": part.scaling.kind, "specSource": part.scaling.source}
            for name, part in self._parts.items()
        }

    def _overlays(self) -> Overlays | None:
        found = self._context.overlays.values()
        if not found or "engine" not in self._parts:
            return None
        return Overlays(
            tuple(dict(each) for each in found if not isinstance(each, str)),
            tuple(each for each in found if isinstance(each, str)),
        )

    def _outdated(self) -> Hold | None:
        """A chosen runtime that has changed since is picked up when OME chooses again, and not before."""
        selection = self._context.resolution.selection
        if selection is None or not selection.is_outdated:
            return None
        problem = Problem(
            "RuntimeChangedSince",
            f"runtime {selection.runtime.name} has changed since OME chose it; the workload stays as it is "
            "until OME chooses again",
            self._context.ref,
            "spec.runtime",
            "change the InferenceService, restart its Deployment (kubectl rollout restart), or name a "
            "runtime",
        )
        return Hold((problem,))

    def _advise(self) -> None:
        """What is skipped in the service, and the event for a named runtime that doesn't declare support,
        while the service follows it."""
        resolution = self._context.resolution
        self._context.warnings.extend(unread_values(self._context.service))
        reference = self._context.spec.get("runtime") or {}
        if resolution.incompatible and resolution.model and reference.get("autoSync") is not False:
            text = (
                f"Runtime {resolution.runtime.name} does not declare support for model "
                f"{resolution.model.name} ({resolution.incompatible}); proceeding because the runtime "
                "was named explicitly"
            )
            self._events.append(Event("Warning", "RuntimeCompatibilityAdvisory", text))

    def _component(self, name: str) -> Action:
        leaves: dict[str, tuple[Any, str]] | None = None if self._provenance is None else {}
        removals: dict[str, str] = {}
        try:
            part = build_component(self._context, name, leaves, removals)
        except ComponentRefused as refused:
            problems = tuple(self._explained(item) for item in refused.problems)
            self._events.append(Event("Warning", refused.reason, problems[0].message))
            return Hold(problems)
        self._parts[name] = part
        if self._provenance is not None and leaves is not None:
            self._provenance[name] = leaves
            self._removals[name] = removals
        return Apply(tuple(_raw_objects(self._context, part)))

    def _explained(self, problem: Problem) -> Problem:
        """A refusal of the service. A container or image that is missing is often one of a preset that
        nobody has filled in."""
        found = replace(problem, ref=self._context.ref)
        if problem.code not in _OF_PRESETS:
            return found
        for ref, _ in self._context.resolution.layers:
            runtime = self._context.snapshot.runtime_of(ref)
            if runtime and (preset := runtime.annotations.get(PRESET_ANNOTATION)):
                named = f'{ref} names the preset "{preset}" ({PRESET_ANNOTATION})'
                text = f"{named}, and nobody has filled it in"
                fix = (
                    "a preset fills a runtime when OME's webhook admits it or a file is rendered, not "
                    "later: write the runtime's containers out, or apply it anew where the webhook serves"
                )
                return replace(found, message=f"{problem.message}: {text}", fix=fix)
        return found

    def _ingress(self) -> Action:
        """The Service named after the InferenceService, while ingress creation is off."""
        if not self._ingress_disabled():
            problem = Problem(
                "IngressNotRendered",
                "ingress creation is on, but this version of OME renders no Ingress or HTTPRoute",
                self._context.ref,
                f"metadata.annotations[{_DISABLE_INGRESS}]",
                "set disableIngressCreation in the ingress configuration to get a Service instead",
            )
            return Hold((problem,))
        if self._context.service.labels.get(_CLUSTER_LOCAL) == "cluster-local":
            return Remove()
        target = "router" if "router" in self._parts else "engine"
        port = objects.service_ports(self._parts[target].pod)[0]["port"]
        return Apply((objects.external_service(self._context, target, port),))

    def _ingress_disabled(self) -> bool:
        override = self._context.service.annotations.get(_DISABLE_INGRESS)
        if override is not None:
            return override.lower() == "true"
        return self._context.snapshot.config.ingress.creation_disabled

    def _conditions(self, refused: Hold | None) -> tuple[Json, ...]:
        if refused is not None or not self._ingress_disabled():
            return ()
        return (
            {
                "type": "IngressReady",
                "status": "True",
                "reason": "IngressDisabled",
                "message": "Ingress creation is disabled, using external service for access",
            },
        )


def _raw_objects(context: ServiceContext, part: Component) -> Iterator[Json]:
    """A RawDeployment component's objects, in the order they are applied."""
    if part.name == "router":
        yield from objects.router_access(context, part)
    yield objects.deployment(context, part)
    yield objects.service(context, part)
    if part.budget:
        yield objects.pod_disruption_budget(context, part, part.budget)
    if context.snapshot.is_served("monitoring.coreos.com/v1", "PodMonitor"):
        yield objects.pod_monitor(context, part)
    metadata = objects.metadata(context, part.object_name, part.labels)
    scaler = autoscaler_object(part.scaling, metadata, part.object_name)
    if scaler is not None:
        yield scaler


def _decision(resolution: Resolution, fits: Mapping[str, Any]) -> Json:
    """What the service is served with, by which way it was found, and how the model fits."""
    selection = resolution.selection
    decision: Json = {
        "selection": "Selected" if selection else "Explicit",
        "runtime": str(resolution.runtime.ref),
        "chain": [str(runtime.ref) for runtime in resolution.chain],
    }
    if resolution.model is not None:
        decision["model"] = str(resolution.model.ref)
    if selection is not None:
        decision["kept"] = selection.kept
        decision["record"] = dict(selection.record)
    if fits:
        decision["fit"] = dict(fits)
    return decision
