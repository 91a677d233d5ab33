"""`status.modelStatus`: whether the model is loaded, in how many copies, and what keeps it from loading.

Source: OME inference-services document (v1.3), "Status", and the API reference of its fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ome.api import InferenceService
from ome.planning.conditions import is_virtual
from ome.planning.live import Failure, Live, PodFacts
from ome.planning.plan import Plan

__all__ = ["model_status"]

Json = dict[str, Any]


def model_status(
    service: InferenceService, plan: Plan, live: Live, stored: Json, *, is_ready: bool
) -> Json | None:
    """What became of the model; None for a service without one, and where somebody else serves it.

    The engine's pods tell: pods that are on their way out or over don't count. The model is loaded once the
    service is ready and has pods. It failed to load when a container ended with an error: of any pod before
    that, and of a pod with another template than those that serve after that. While the pods aren't known,
    what is stored stays.
    """
    if is_virtual(plan) or not (service.raw.get("spec") or {}).get("model"):
        return None
    if live.pods is None:
        return stored.get("modelStatus")
    pods = sorted(
        (each for each in live.pods if each.component == "engine" and each.counts),
        key=lambda pod: pod.name,
    )
    loaded = [pod for pod in pods if pod.ready]
    failing = [pod for pod in pods if _failed(pod.failure)]
    if is_ready:
        serving = {pod.revision for pod in loaded}
        blocking = [pod for pod in failing if pod.revision not in serving] if loaded else []
    else:
        blocking = failing
    active = "Loaded" if loaded else "Pending"
    if blocking:
        return {
            "transitionStatus": "BlockedByFailedLoad",
            "modelRevisionStates": _states(active, "FailedToLoad"),
            "modelCopies": _copies(loaded, failing),
            "lastFailureInfo": _info(blocking[0]),
        }
    if is_ready and pods:
        return {
            "transitionStatus": "UpToDate",
            "modelRevisionStates": _states("Loaded", "Loaded"),
            "modelCopies": _copies(loaded, failing),
        }
    found: Json = {
        "transitionStatus": "InProgress",
        "modelRevisionStates": _states(active, "Pending"),
    }
    told = next((pod for pod in pods if pod.failure is not None), None)
    if told is not None:
        found["lastFailureInfo"] = _info(told)
    return found


def _failed(failure: Failure | None) -> bool:
    return failure is not None and failure.exit_code is not None and not failure.is_past


def _states(active: str, target: str) -> Json:
    return {"activeModelState": active, "targetModelState": target}


def _copies(loaded: Iterable[PodFacts], failing: Iterable[PodFacts]) -> Json:
    """Copies that serve and copies that failed; each pod is one of them at most."""
    ready = {pod.name for pod in loaded}
    failed = {pod.name for pod in failing} - ready
    return {"failedCopies": len(failed), "totalCopies": len(ready)}


def _info(pod: PodFacts) -> Json:
    """A failure as status tells it: an end is the model's, a container that can't start the runtime's."""
    failure = pod.failure
    assert failure is not None
    message = failure.message or failure.reason
    if failure.reason not in ("Error", message):
        message = f"{failure.reason}: {message}"
    found: Json = {
        "location": pod.name,
        "reason": "RuntimeUnhealthy" if failure.exit_code is None else "ModelLoadFailed",
        "message": message,
    }
    if failure.exit_code is not None:
        found["exitCode"] = failure.exit_code
    if failure.time:
        found["time"] = failure.time
    return found
