"""What status tells of live objects: small facts, read once from raw JSON and kept in memory.

The readers never raise: what an object doesn't say, or says oddly, counts as not said. A pod's failure
is what keeps one of its containers from running:

- It ended with an exit code other than zero, or waits in `CrashLoopBackOff` after it ended: the model
  failed to load, as upstream has it. Both states of one crash give the same facts, so that a crash loop
  changes nothing.
- It can't start (an image that can't be pulled, a Secret that is missing): upstream waits and says nothing;
  here the reason is told, and the model still counts as pending.
- It runs again after such an end and isn't ready yet: the failure is past, and told until it is ready.

Source: OME inference-services document (v1.3), "Status"; Kubernetes' container states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ome.api import ObjectRef

__all__ = [
    "Failure",
    "Live",
    "PodFacts",
    "Scaler",
    "Workload",
    "is_time",
    "read_pod",
    "read_scaler",
    "read_workload",
]

Json = Mapping[str, Any]

_COMPONENT: Final = "component"
_REVISION: Final = "deployment.kubernetes.io/revision"
_TEMPLATE_HASH: Final = "pod-template-hash"
_CONDITION_FIELDS: Final = ("status", "reason", "message")
_CRASHES: Final = "CrashLoopBackOff"
_NO_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
_NO_START: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ImageInspectError",
        "InvalidImageName",
        "RegistryUnavailable",
        "RunContainerError",
        "SignatureValidationFailed",
    }
)
_LONGEST_MESSAGE: Final = 512
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TEN_MINUTES: Final = re.compile(r"(.{14}\d)\d:\d\d(?:\.\d+)?(.+)")


@dataclass(frozen=True, slots=True)
class Workload:
    """A component's Deployment. `available` and `progressing` are its conditions of these types, without
    their times; `refused` is `ReplicaFailure` while that holds: pods can't be made. `altered` are the paths
    in its pod that somebody else has set and OME hasn't."""

    component: str
    ref: ObjectRef
    generation: int = 0
    observed_generation: int = 0
    available: Json | None = None
    progressing: Json | None = None
    refused: Json | None = None
    revision: str = ""
    replicas: int = 0
    ready: int = 0
    updated: int = 0
    paused: bool = False
    altered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """What keeps a container from running. `exit_code` is None for one that never started; `is_past` marks
    a container that runs again and isn't ready yet; `message` is the end of what the container said."""

    container: str
    reason: str
    message: str = ""
    exit_code: int | None = None
    time: str = ""
    is_past: bool = False


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod of a component. `revision` identifies its template."""

    name: str
    component: str
    phase: str = ""
    ready: bool = False
    terminating: bool = False
    failure: Failure | None = None
    revision: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is a copy of the model, or is to become one: neither on its way out nor over."""
        return not self.terminating and self.phase not in ("Failed", "Succeeded")


@dataclass(frozen=True, slots=True)
class Scaler:
    """A component's autoscaler, an HPA or a ScaledObject; a ScaledObject tells no counts."""

    component: str
    ref: ObjectRef
    current: int | None = None
    desired: int | None = None
    last_scale_time: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """What runs for one service: workloads and autoscalers by component, and pods; None for pods that
    aren't known. `front` says whether the Service named after the InferenceService is there."""

    workloads: Mapping[str, Workload] = field(default_factory=dict)
    pods: tuple[PodFacts, ...] | None = ()
    scalers: Mapping[str, Scaler] = field(default_factory=dict)
    front: bool = True


def read_workload(raw: Any, altered: tuple[str, ...] = ()) -> Workload | None:
    """The facts of a Deployment, and of what others have altered in it; None for what is no Deployment of a
    component."""
    found = _identity(raw, "Deployment")
    if found is None:
        return None
    ref, component = found
    metadata, status = _object(raw.get("metadata")), _object(raw.get("status"))
    refused = _condition(status, "ReplicaFailure")
    return Workload(
        component=component,
        ref=ref,
        generation=_count(metadata.get("generation")) or 0,
        observed_generation=_count(status.get("observedGeneration")) or 0,
        available=_condition(status, "Available"),
        progressing=_condition(status, "Progressing"),
        refused=refused if refused is not None and refused["status"] == "True" else None,
        revision=_text(_object(metadata.get("annotations")).get(_REVISION)),
        replicas=_count(status.get("replicas")) or 0,
        ready=_count(status.get("readyReplicas")) or 0,
        updated=_count(status.get("updatedReplicas")) or 0,
        paused=_object(raw.get("spec")).get("paused") is True,
        altered=altered,
    )


def read_pod(raw: Any) -> PodFacts | None:
    """The facts of a pod; None for what is no pod of a component."""
    found = _identity(raw, "Pod")
    if found is None:
        return None
    ref, component = found
    metadata, status = _object(raw.get("metadata")), _object(raw.get("status"))
    ready = _condition(status, "Ready")
    return PodFacts(
        name=ref.name,
        component=component,
        phase=_text(status.get("phase")),
        ready=ready is not None and ready["status"] == "True",
        terminating=bool(metadata.get("deletionTimestamp")),
        failure=_pod_failure(status),
        revision=_text(_object(metadata.get("labels")).get(_TEMPLATE_HASH)),
    )


def read_scaler(raw: Any) -> Scaler | None:
    """The facts of a HorizontalPodAutoscaler or a ScaledObject; None for anything else.

    A ScaledObject tells when a trigger was last active, anew at each poll: that is kept to ten minutes.
    """
    found = _identity(raw, "HorizontalPodAutoscaler", "ScaledObject")
    if found is None:
        return None
    ref, component = found
    status = _object(raw.get("status"))
    if ref.kind == "ScaledObject":
        active = _time(status.get("lastActiveTime"))
        return Scaler(component, ref, last_scale_time=_TEN_MINUTES.sub(r"\g<1>0:00\g<2>", active))
    return Scaler(
        component,
        ref,
        current=_count(status.get("currentReplicas")),
        desired=_count(status.get("desiredReplicas")),
        last_scale_time=_time(status.get("lastScaleTime")),
    )


def is_time(value: Any) -> bool:
    """Whether a value is a time as Kubernetes writes it (RFC 3339)."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _identity(raw: Any, *kinds: str) -> tuple[ObjectRef, str] | None:
    """The object and its component; items of a list say no kind, and are of the first one then."""
    raw = _object(raw)
    metadata = _object(raw.get("metadata"))
    kind = raw.get("kind") or kinds[0]
    name = _text(metadata.get("name"))
    component = _text(_object(metadata.get("labels")).get(_COMPONENT))
    if kind not in kinds or not name or not component:
        return None
    return ObjectRef(kind, _text(metadata.get("namespace")), name), component


def _condition(status: Json, wanted: str) -> Json | None:
    for each in _objects(status.get("conditions")):
        if each.get("type") == wanted:
            return {key: _text(each.get(key)) for key in _CONDITION_FIELDS}
    return None


def _pod_failure(status: Json) -> Failure | None:
    """The first container that doesn't run, else the first that failed before it ran again."""
    states = [
        *_objects(status.get("initContainerStatuses")),
        *_objects(status.get("containerStatuses")),
    ]
    found = [failure for each in states if (failure := _failure(each)) is not None]
    return next((each for each in found if not each.is_past), found[0] if found else None)


def _failure(container: Json) -> Failure | None:
    name, state = _text(container.get("name")), _object(container.get("state"))
    ended = _object(state.get("terminated"))
    if ended:
        return _ending(name, ended) if ended.get("exitCode") != 0 else None
    last = _object(_object(container.get("lastState")).get("terminated"))
    waiting = _object(state.get("waiting"))
    reason = _text(waiting.get("reason"))
    if reason == _CRASHES:
        return _ending(name, last) if last else Failure(name, _CRASHES, _end(waiting))
    if reason in _NO_IMAGE:
        image = _text(container.get("image"))
        return Failure(name, "ImagePullBackOff", f'can\'t pull image "{image}"')
    if reason in _NO_START:
        return Failure(name, reason, _end(waiting))
    if last and last.get("exitCode") != 0 and container.get("ready") is not True:
        return _ending(name, last, is_past=True)
    return None


def _ending(name: str, ended: Json, *, is_past: bool = False) -> Failure:
    return Failure(
        name,
        _text(ended.get("reason")) or "Error",
        _end(ended),
        _exit_code(ended.get("exitCode")),
        _time(ended.get("finishedAt")),
        is_past,
    )


def _exit_code(value: Any) -> int:
    """An exit code; one that isn't told, or is none, is some failure."""
    known = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31
    return value if known else 1


def _end(state: Json) -> str:
    return _text(state.get("message")).strip()[-_LONGEST_MESSAGE:]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Json]:
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(value: Any) -> str:
    return value if is_time(value) else ""


def _count(value: Any) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if known else None
