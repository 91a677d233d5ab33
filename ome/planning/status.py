"""The status of an InferenceService, from its plan and what runs, and the events that report a change.

What status says is the present status with what is known now laid over it: what a plan leaves open stays,
what is over goes. Reporting again, with nothing changed, gives the same status and no event.
docs/status.md has every field for users.

Source: OME inference-services, ingress and component-autoscaling documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ome.api import InferenceService
from ome.planning.conditions import (
    READY,
    conditions_of,
    declared_components,
    is_virtual,
    timed,
)
from ome.planning.live import Live, Scaler
from ome.planning.modelstatus import model_status
from ome.planning.plan import Apply, Event, Plan, Remove
from ome.planning.stored import conditions_by_type, settled_status, stored_status
from ome.resolution.selection import RECORD
from ome.snapshot import Config

__all__ = ["REPORTED", "ServiceReport", "report_service"]

Json = dict[str, Any]

# The field of the service's status that holds the digests of events that were sent and still stand.
REPORTED: Final = "reportedEvents"
_MANAGERS: Final = {"HPA": "ome", "KEDA": "ome", "External": "external", "None": "none"}


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """The whole status that a service should have, and the events to send because of it."""

    status: Mapping[str, Any]
    events: tuple[Event, ...] = ()


def report_service(
    service: InferenceService, plan: Plan, live: Live, config: Config, now: datetime
) -> ServiceReport:
    """What status says of a service with this plan and what runs of it.

    `now` dates the conditions whose status changes and nothing else. Never raises, whatever the present
    status holds. A plan's event is returned once for as long as it stands: its digest is in status.
    """
    stored = stored_status(service)
    status = {**stored, **plan.status}
    if service.generation:
        status["observedGeneration"] = service.generation
    conditions = conditions_of(service, plan, live, stored)
    status["conditions"] = timed(conditions.values(), stored, now)
    is_ready = conditions[READY]["status"] == "True"
    chosen: Json = {"components": _components(service, plan, live, config, stored)}
    chosen |= _selection(service, plan, stored)
    chosen |= _overlays(service, plan, stored)
    chosen |= _address(service, plan, live, config, stored)
    chosen["modelStatus"] = model_status(service, plan, live, stored, is_ready=is_ready)
    chosen[REPORTED] = sorted({event.digest for event in plan.events})
    for field, value in chosen.items():
        status.pop(field, None)
        if value:
            status[field] = value
    events = tuple(_events(service, plan, stored, is_ready=is_ready))
    return ServiceReport(settled_status(status), events)


def _events(
    service: InferenceService, plan: Plan, stored: Json, *, is_ready: bool
) -> Iterator[Event]:
    known = stored.get(REPORTED)
    sent = {each for each in known if isinstance(each, str)} if isinstance(known, list) else set()
    for event in plan.events:
        if event.digest not in sent:
            sent.add(event.digest)
            yield event
    was_ready = conditions_by_type(stored).get(READY, {}).get("status") == "True"
    if is_ready and not was_ready:
        text = f"InferenceService [{service.name}] is Ready"
        yield Event("Normal", "InferenceServiceReady", text)
    if was_ready and not is_ready:
        text = f"InferenceService [{service.name}] is no longer Ready"
        yield Event("Warning", "InferenceServiceNotReady", text)


def _selection(service: InferenceService, plan: Plan, stored: Json) -> Json:
    """The record of an automatic choice: a refusal keeps the last one, a service that names its runtime
    has none."""
    reference = (service.raw.get("spec") or {}).get("runtime") or {}
    if is_virtual(plan) or reference.get("name"):
        return {RECORD: None}
    if plan.decision is not None:
        return {RECORD: plan.decision.get("record")}
    return {RECORD: stored.get(RECORD)}


def _overlays(service: InferenceService, plan: Plan, stored: Json) -> Json:
    model = (service.raw.get("spec") or {}).get("model") or {}
    if is_virtual(plan) or not model.get("overlays"):
        return {"mountedOverlays": None}
    if plan.overlays is None:
        return {"mountedOverlays": stored.get("mountedOverlays")}
    return {"mountedOverlays": list(plan.overlays.mounted)}


def _address(
    service: InferenceService, plan: Plan, live: Live, config: Config, stored: Json
) -> Json:
    """Where requests go: the Service in front. While it is held it stays, and so does its address."""
    action = plan.actions.get("ingress")
    if is_virtual(plan):
        url = _in_cluster(service, config)
    elif isinstance(action, Apply):
        port = action.objects[0]["spec"]["ports"][0]["port"]
        url = f"{_in_cluster(service, config)}:{port}"
    elif isinstance(action, Remove) or not live.front:
        return {"url": None, "address": None}
    else:
        return {"url": stored.get("url"), "address": stored.get("address")}
    return {"url": url, "address": {"url": url}}


def _in_cluster(service: InferenceService, config: Config) -> str:
    host = f"{service.name}.{service.namespace}.svc.cluster.local"
    return f"{config.ingress.url_scheme}://{host}"


def _components(
    service: InferenceService, plan: Plan, live: Live, config: Config, stored: Json
) -> Json:
    if is_virtual(plan):
        return {"engine": {"url": _in_cluster(service, config)}}
    old = stored.get("components") or {}
    found = {}
    for name in declared_components(service, plan):
        entry = _component(service, plan, live, config, name, dict(old.get(name) or {}))
        if entry:
            found[name] = entry
    return found


def _component(
    service: InferenceService, plan: Plan, live: Live, config: Config, name: str, entry: Json
) -> Json:
    """A component's entry. It gets its address when its workload is first available, and keeps it."""
    workload = live.workloads.get(name)
    target = _deployment(plan, name) or (workload.ref.name if workload else "")
    if target:
        entry["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    if workload and (workload.available or {}).get("status") == "True":
        host = config.ingress.host(workload.ref.name, service.namespace)
        entry["url"] = f"{config.ingress.url_scheme}://{host}"
    autoscaler = _autoscaler(plan, name, live.scalers.get(name), entry)
    if autoscaler:
        entry["autoscaler"] = autoscaler
    return entry


def _deployment(plan: Plan, name: str) -> str:
    action = plan.actions.get(name)
    objects = action.objects if isinstance(action, Apply) else ()
    names = (str(each["metadata"]["name"]) for each in objects if each["kind"] == "Deployment")
    return next(names, "")


def _autoscaler(plan: Plan, name: str, scaler: Scaler | None, entry: Json) -> Json:
    """Who counts the replicas, and while OME's autoscaler does, how it counts. A held component's is as
    it was decided last."""
    decided = plan.autoscalers.get(name)
    if decided is None:
        old = entry.get("autoscaler") or {}
        found = {key: old[key] for key in ("class", "managedBy", "specSource") if key in old}
    else:
        found = {
            "class": decided["class"],
            "managedBy": _MANAGERS[decided["class"]],
            "specSource": decided["specSource"],
        }
    if scaler is not None and found.get("managedBy") == "ome":
        counts = {
            "currentReplicas": scaler.current,
            "desiredReplicas": scaler.desired,
            "lastScaleTime": scaler.last_scale_time,
        }
        found |= {key: value for key, value in counts.items() if value}
    return found
