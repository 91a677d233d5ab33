"""The conditions of an InferenceService: what a plan decides and what live workloads tell, in one list.

Source: OME inference-services and ingress documents (v1.3); Knative's conditions for how Ready follows from
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ome.api import InferenceService
from ome.planning.context import COMPONENTS
from ome.planning.live import Live, Workload, is_time
from ome.planning.plan import Hold, Plan, Remove
from ome.planning.stored import conditions_by_type

__all__ = [
    "READY",
    "WORKLOAD_APPLIED",
    "conditions_of",
    "declared_components",
    "is_virtual",
    "stamp",
    "timed",
]

Json = dict[str, Any]

READY: Final = "Ready"
# The controller's: False while something that a plan asks for couldn't be written, absent otherwise.
WORKLOAD_APPLIED: Final = "WorkloadApplied"
# Something else than OME changes what runs; absent otherwise.
_ALTERED: Final = "WorkloadAltered"
_ENGINE: Final = "EngineReady"
_INGRESS: Final = "IngressReady"
_RUNTIME: Final = "RuntimeReady"
_OVERLAYS: Final = "OverlaysReady"
# What counts for Ready, in the order in which it is told; everything else is for information.
_COUNTING: Final = (_ENGINE, _INGRESS)
# Every type that OME decides anew each time.
_OWN: Final = frozenset(
    {
        READY,
        *_COUNTING,
        "DecoderReady",
        "RouterReady",
        _RUNTIME,
        "RuntimeDrifted",
        _OVERLAYS,
        WORKLOAD_APPLIED,
        "WorkloadLeft",
        _ALTERED,
    }
)
_LONGEST_MESSAGE: Final = 1024
# How many altered fields are told by name.
_MOST_PATHS: Final = 8
_STATUSES: Final = frozenset({"True", "False", "Unknown"})


def is_virtual(plan: Plan) -> bool:
    """Whether somebody else runs the service: then the plan itself says that it is ready."""
    return any(each["type"] == READY for each in plan.conditions)


def declared_components(service: InferenceService, plan: Plan) -> list[str]:
    """The components that the service asks for. A refused plan holds also those that it doesn't ask for;
    the engine counts as asked for always, since nothing is ready without one."""
    spec = service.raw.get("spec") or {}
    return [
        name
        for name in COMPONENTS
        if not isinstance(plan.actions.get(name), Remove)
        and (name == "engine" or isinstance(spec.get(name), dict))
    ]


def conditions_of(
    service: InferenceService, plan: Plan, live: Live, stored: Mapping[str, Any]
) -> dict[str, Json]:
    """The conditions by type, without times. Those of types that OME doesn't know stay as they are."""
    old = conditions_by_type(stored)
    found = {kind: each for kind, each in old.items() if kind not in _OWN}
    found |= {each["type"]: dict(each) for each in plan.conditions}
    if is_virtual(plan):
        return found
    for name in declared_components(service, plan):
        kind = f"{name.capitalize()}Ready"
        found[kind] = {"type": kind, **_component(plan, name, live.workloads.get(name))}
    if _INGRESS not in found:
        found[_INGRESS] = _ingress(plan, live, old.get(_INGRESS))
    if _RUNTIME not in found and _RUNTIME in old:
        found[_RUNTIME] = _runtime(plan, old[_RUNTIME])
    overlays = _overlays(service, plan, old.get(_OVERLAYS))
    if overlays is not None:
        found[_OVERLAYS] = overlays
    if altered := _altered(live):
        found[_ALTERED] = {"type": _ALTERED, **altered}
    found[READY] = {"type": READY, **_ready(found)}
    for kind in _OWN & found.keys() - {READY, *_COUNTING}:
        found[kind].setdefault("severity", "Info")
    return found


def _said(status: str, reason: str = "", message: str = "") -> Json:
    texts = {"reason": reason, "message": message}
    return {"status": status, **{key: text for key, text in texts.items() if text}}


def _refused(plan: Plan, action: Hold) -> Json:
    """What a refusal says, with the reason of its event where it has one that says something. A long
    message is cut: the event has all of it, and this one is copied to Ready."""
    problem = action.problems[0]
    reasons = (
        each.reason
        for each in plan.events
        if each.message == problem.message and each.reason != "InternalError"
    )
    message = problem.message
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]} …"
    return _said("False", next(reasons, problem.code), message)


def _component(plan: Plan, name: str, workload: Workload | None) -> Json:
    """A component is as ready as its Deployment is available.

    A Deployment that says nothing yet, or isn't there yet, is Unknown. Without one, a refusal makes the
    component False: nothing will come until somebody acts. One whose pods can't be made (a quota, an
    admission webhook) tells why, instead of how few there are.
    """
    action = plan.actions.get(name)
    if workload is None:
        if isinstance(action, Hold):
            return _refused(plan, action)
        return _said("Unknown", "Initializing", f"{name} component initializing")
    available, refused = workload.available, workload.refused
    if refused is not None and (available or {}).get("status") != "True":
        return _said("False", refused.get("reason", ""), refused.get("message", ""))
    if available is None or available.get("status") not in _STATUSES:
        progress = workload.progressing or {}
        reason = progress.get("reason") or "Initializing"
        message = progress.get("message") or f"{name} component initializing"
        return _said("Unknown", reason, message)
    return _said(available["status"], available.get("reason", ""), available.get("message", ""))


def _ingress(plan: Plan, live: Live, old: Json | None) -> Json:
    """Where a plan says nothing about ingress something is refused: what is there stays as ready as it was,
    and what isn't won't be."""
    if live.front and old is not None and old["status"] == "True":
        return dict(old)
    action = plan.actions.get("ingress")
    said = _refused(plan, action) if isinstance(action, Hold) else _said("Unknown")
    return {"type": _INGRESS, **said}


def _altered(live: Live) -> Json | None:
    """What is said of Deployments that somebody else has paused, or has put something into: an apply sets
    OME's fields, and leaves those that only others own."""
    paused, fields = [], []
    for each in live.workloads.values():
        where = f"{each.ref.name} -n {each.ref.namespace}"
        if each.paused:
            paused.append(
                f"Deployment {each.ref.name} is paused: no change reaches its pods until somebody resumes "
                f"it with: kubectl rollout resume deployment {where}"
            )
        if each.altered:
            paths = ", ".join(each.altered[:_MOST_PATHS])
            more = len(each.altered) - _MOST_PATHS
            fields.append(
                f"Deployment {each.ref.name} has in its pods what OME didn't put there: {paths}"
                f"{f' and {more} more' if more > 0 else ''}; if nobody else needs it, remove it with: "
                f"kubectl edit deployment {where}"
            )
    if not paused and not fields:
        return None
    return _said("True", "Paused" if paused else "ForeignFields", "; ".join([*paused, *fields]))


def _runtime(plan: Plan, old: Json) -> Json:
    """A runtime that resolves clears an earlier False; without a decision nothing is known."""
    if plan.decision is None:
        return dict(old)
    return {"type": _RUNTIME, **_said("True", "RuntimeResolved")}


def _overlays(service: InferenceService, plan: Plan, old: Json | None) -> Json | None:
    """Only with overlays; while the engine is refused it stays as it was."""
    model = (service.raw.get("spec") or {}).get("model") or {}
    if not model.get("overlays"):
        return None
    if plan.overlays is None:
        return None if old is None else dict(old)
    if plan.overlays.skipped:
        message = "; ".join(plan.overlays.skipped)
        return {"type": _OVERLAYS, **_said("False", "OverlaysSkipped", message)}
    return {"type": _OVERLAYS, **_said("True", "AllOverlaysMounted")}


def _ready(found: Mapping[str, Json]) -> Json:
    """True when all that counts is; else what fails tells why, a False before an Unknown."""
    counting = [found[kind] for kind in _COUNTING]
    for status in ("False", "Unknown"):
        for each in counting:
            if each["status"] == status:
                return _said(status, each.get("reason", ""), each.get("message", ""))
    return _said("True")


def timed(conditions: Iterable[Json], stored: Mapping[str, Any], now: datetime) -> list[Json]:
    """Conditions in the order of their types, each with the time when its status last changed."""
    old = conditions_by_type(stored)
    dated = []
    for each in sorted(conditions, key=lambda condition: str(condition["type"])):
        before = old.get(each["type"], {})
        at = before.get("lastTransitionTime")
        if before.get("status") != each["status"] or not is_time(at):
            at = stamp(now)
        dated.append({**each, "lastTransitionTime": at})
    return dated


def stamp(now: datetime) -> str:
    """A moment as Kubernetes writes it; one without a time zone is in UTC."""
    at = now.astimezone(UTC) if now.tzinfo else now
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
