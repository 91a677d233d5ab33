"""What is read of live objects, and that nothing they hold makes a reader fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import ObjectRef
from ome.planning.live import (
    Failure,
    Live,
    PodFacts,
    Scaler,
    Workload,
    is_time,
    read_pod,
    read_scaler,
    read_workload,
)

Json = dict[str, Any]
ENDED = "2026-12-02T09:00:00Z"


def live(kind: str, status: Any = None, **metadata: Any) -> Json:
    base = {"name": "chat-engine", "namespace": "demo", "labels": {"component": "engine"}}
    return {"kind": kind, "metadata": {**base, **metadata}, "status": status}


def ended(code: Any = 1, **more: Any) -> Json:
    return {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": ENDED, **more}}


def waits(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


def container(state: Any, last: Any = None, **more: Any) -> Json:
    return {"name": "ome-container", "image": "e:1", "state": state, "lastState": last, **more}


def test_a_workload() -> None:
    conditions = [
        "odd",
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        {
            "type": "Available",
            "status": "False",
            "reason": "MinimumReplicasUnavailable",
            "message": "Deployment does not have minimum availability.",
            "lastUpdateTime": ENDED,
        },
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"},
    ]
    status = {
        "observedGeneration": 3,
        "replicas": 4,
        "readyReplicas": 2,
        "updatedReplicas": 1,
        "conditions": conditions,
    }
    annotations = {"deployment.kubernetes.io/revision": "7"}
    raw = live("Deployment", status, generation=4, annotations=annotations)
    raw["spec"] = {"paused": True}
    assert read_workload(raw, ("volumes[x]",)) == Workload(
        component="engine",
        ref=ObjectRef("Deployment", "demo", "chat-engine"),
        generation=4,
        observed_generation=3,
        available={
            "status": "False",
            "reason": "MinimumReplicasUnavailable",
            "message": "Deployment does not have minimum availability.",
        },
        progressing={"status": "True", "reason": "NewReplicaSetAvailable", "message": ""},
        refused={"status": "True", "reason": "FailedCreate", "message": "quota"},
        revision="7",
        replicas=4,
        ready=2,
        updated=1,
        paused=True,
        altered=("volumes[x]",),
    )


def test_a_workload_that_says_nothing_yet() -> None:
    fresh = Workload("engine", ObjectRef("Deployment", "demo", "chat-engine"))
    odd = {"replicas": True, "readyReplicas": -1, "updatedReplicas": "2", "conditions": {}}
    assert read_workload(live("Deployment")) == fresh
    assert read_workload(live("Deployment", odd, generation=1.5)) == fresh
    over = {"conditions": [{"type": "ReplicaFailure", "status": "False"}]}
    assert read_workload(live("Deployment", over)) == fresh


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (read_workload, None),
        (read_workload, []),
        (read_workload, {}),
        (read_workload, {"metadata": 3}),
        (read_workload, live("StatefulSet")),
        (read_workload, live("Deployment", labels=None)),
        (read_workload, live("Deployment", labels={"component": 5})),
        (read_workload, live("Deployment", name=None)),
        (read_pod, live("Deployment")),
        (read_pod, live("Pod", labels={})),
        (read_scaler, live("Pod")),
        (read_scaler, live("HorizontalPodAutoscaler", labels={"app": "x"})),
    ],
)
def test_what_belongs_to_no_component_is_not_read(read: Callable[[Any], Any], raw: Any) -> None:
    assert read(raw) is None


def test_a_pod() -> None:
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [container({"running": {}}, ended(), ready=True)],
    }
    labels = {"component": "decoder", "pod-template-hash": "abc"}
    raw = live("Pod", status, name="p", labels=labels, deletionTimestamp=ENDED)
    assert read_pod(raw) == PodFacts("p", "decoder", "Running", True, True, None, "abc")
    assert read_pod({**live("Pod"), "kind": None}) == PodFacts("chat-engine", "engine")


@pytest.mark.parametrize(
    ("pod", "counts"),
    [
        (PodFacts("p", "engine", "Pending"), True),
        (PodFacts("p", "engine"), True),
        (PodFacts("p", "engine", "Failed"), False),
        (PodFacts("p", "engine", "Succeeded"), False),
        (PodFacts("p", "engine", "Running", terminating=True), False),
    ],
)
def test_pods_that_are_over_do_not_count(pod: PodFacts, counts: bool) -> None:
    assert pod.counts is counts


ERROR = Failure("ome-container", "Error", "", 1, ENDED)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (container({"running": {}}), None),
        (container({"running": {}}, ended(), ready=True), None),
        (container(ended(0)), None),
        (container({"running": {}}, ended(0)), None),
        (container(waits("ContainerCreating")), None),
        (container(None), None),
        (container(ended()), ERROR),
        (container(waits("CrashLoopBackOff", "back-off 10s"), ended()), ERROR),
        (container(waits("CrashLoopBackOff"), ended(0, reason="Completed")), Failure("ome-container", "Completed", "", 0, ENDED)),
        (container(waits("CrashLoopBackOff", "back-off")), Failure("ome-container", "CrashLoopBackOff", "back-off")),
        (container(ended(137, reason="OOMKilled", message=" x\n")), Failure("ome-container", "OOMKilled", "x", 137, ENDED)),
        (container(ended("odd", reason=None, finishedAt="then")), Failure("ome-container", "Error", "", 1)),
        (container(ended(2**40)), ERROR),
        (container({"running": {}}, ended()), Failure("ome-container", "Error", "", 1, ENDED, True)),
        (container(waits("PodInitializing"), ended()), Failure("ome-container", "Error", "", 1, ENDED, True)),
        (container(waits("ErrImagePull", "long")), Failure("ome-container", "ImagePullBackOff", 'can\'t pull image "e:1"')),
        (container(waits("ImagePullBackOff")), Failure("ome-container", "ImagePullBackOff", 'can\'t pull image "e:1"')),
        (container(waits("CreateContainerConfigError", 'secret "s" not found')), Failure("ome-container", "CreateContainerConfigError", 'secret "s" not found')),
    ],
)  # fmt: skip
def test_failures(status: Json, failure: Failure | None) -> None:
    found = read_pod(live("Pod", {"containerStatuses": [status]}))
    assert found is not None
    assert found.failure == failure


def test_the_failure_that_stands_is_told_before_one_that_is_past() -> None:
    past, now = container({"running": {}}, ended(2)), container(ended(3))
    status = {"initContainerStatuses": [past], "containerStatuses": ["odd", now]}
    found = read_pod(live("Pod", status))
    assert found is not None
    assert found.failure == Failure("ome-container", "Error", "", 3, ENDED)


def test_of_a_long_message_the_end_is_kept() -> None:
    found = read_pod(
        live("Pod", {"containerStatuses": [container(ended(message="a" * 9000 + "end"))]})
    )
    assert found is not None
    assert found.failure is not None
    assert found.failure.message == "a" * 509 + "end"


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (
            "HorizontalPodAutoscaler",
            {"currentReplicas": 2, "desiredReplicas": 3, "lastScaleTime": ENDED},
            (2, 3, ENDED),
        ),
        ("HorizontalPodAutoscaler", None, (None, None, "")),
        (
            "HorizontalPodAutoscaler",
            {"currentReplicas": "2", "desiredReplicas": True, "lastScaleTime": 5},
            (None, None, ""),
        ),
        (
            "ScaledObject",
            {"lastActiveTime": "2026-12-02T09:58:59Z"},
            (None, None, "2026-12-02T09:50:00Z"),
        ),
        (
            "ScaledObject",
            {"lastActiveTime": "2026-12-02T09:58:59.25+01:00"},
            (None, None, "2026-12-02T09:50:00+01:00"),
        ),
        ("ScaledObject", {}, (None, None, "")),
    ],
)
def test_scalers(kind: str, status: Any, expected: tuple[Any, ...]) -> None:
    ref = ObjectRef(kind, "demo", "chat-engine")
    assert read_scaler(live(kind, status)) == Scaler("engine", ref, *expected)


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (ENDED, True),
        ("2026-12-02T09:00:00.123456789+05:30", True),
        ("2026-13-02T09:00:00Z", False),
        ("2026-12-02 09:00:00Z", False),
        ("2026-12-02T09:00:00", False),
        ("", False),
        (None, False),
        (5, False),
    ],
)
def test_times(value: Any, known: bool) -> None:
    assert is_time(value) is known


def test_nothing_runs_by_default() -> None:
    assert Live() == Live({}, (), {})


_KEYS = st.sampled_from(
    "kind metadata status labels annotations name namespace component conditions type phase state "
    "lastState terminated waiting reason message exitCode finishedAt initContainerStatuses generation "
    "containerStatuses replicas currentReplicas lastActiveTime image ready deletionTimestamp".split()
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.sampled_from(
        "engine Ready True Available CrashLoopBackOff ErrImagePull InvalidImageName".split()
    ),
    st.text(max_size=3),
)
_ANY = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=5)),
    max_leaves=20,
)


@given(
    kind=st.sampled_from(["Deployment", "Pod", "HorizontalPodAutoscaler", "ScaledObject"]),
    metadata=st.dictionaries(_KEYS, _ANY, max_size=3),
    status=_ANY,
    raw=_ANY,
)
def test_nothing_makes_a_reader_fail(kind: str, metadata: Json, status: Any, raw: Any) -> None:
    named = {"name": "n", "labels": {"component": "engine"}, **metadata}
    for read in (read_workload, read_pod, read_scaler):
        read(raw)
        read({"kind": kind, "metadata": named, "status": status})
