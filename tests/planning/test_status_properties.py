"""What holds of every status: it is valid, it stays as it is, and nothing makes reporting fail."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from ome.api import InferenceService, ObjectRef, parse
from ome.api.crds import crds
from ome.planning.live import Failure, Live, PodFacts, Scaler, Workload
from ome.planning.plan import Event, Plan
from ome.planning.status import report_service
from ome.planning.stored import settled_status
from ome.snapshot import Config
from ome.testing.builders import ENTRY, model, plan_of, runtime, service

Json = dict[str, Any]

CONFIG = {"runner": {"name": "ome-container", "image": "x:1"}}
VIRTUAL = {"annotations": {"ome.io/deploymentMode": "VirtualDeployment"}}
LOCAL = {"labels": {"networking.knative.dev/visibility": "cluster-local"}}
SPECS: tuple[Json, ...] = (
    {},
    {"model": {"name": "m"}},
    {"model": {"name": "m", "overlays": [{"name": "o"}, {"name": "gone"}]}, "decoder": {}},
    {"model": {"name": "m"}, "runtime": None, "router": {}},
    {"runtime": {"name": "gone"}, "router": {}},
    {"runtime": {"name": "rt", "autoSync": False}},
    {"runtime": {"name": "rt", "autoSync": False, "revision": "gone"}},
    {"engine": {"minReplicas": 5, "maxReplicas": 1}, "decoder": {}},
    {"metadata": VIRTUAL},
    {"metadata": LOCAL, "engine": {"autoscaler": {"class": "External"}}},
)


@cache
def planned(at: int) -> tuple[InferenceService, Plan]:
    spec = copy.deepcopy(SPECS[at])
    metadata = {"generation": at + 1, **spec.pop("metadata", {})}
    target = service(metadata=metadata, **spec)
    assert isinstance(target, InferenceService)
    formats = [{**ENTRY, "autoSelect": True}]
    rt = runtime(CONFIG, decoderConfig=CONFIG, routerConfig=CONFIG, supportedModelFormats=formats)
    return target, plan_of(rt, model(), model("o"), target)


@cache
def validator() -> jsonschema.Draft7Validator:
    (found,) = (each for each in crds() if each["spec"]["names"]["kind"] == "InferenceService")
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    return jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())


NAMES = st.sampled_from(["engine", "decoder", "router"])
TEXTS = st.sampled_from(["", "True", "False", "Unknown", "Odd", "Error", "2026-12-02T10:00:00Z"])
SAID = st.none() | st.fixed_dictionaries({"status": TEXTS, "reason": TEXTS, "message": TEXTS})
FAILURES = st.builds(
    Failure,
    container=TEXTS,
    reason=TEXTS,
    message=TEXTS,
    exit_code=st.none() | st.integers(-1, 255),
    time=st.sampled_from(["", "2026-12-02T10:00:00Z"]),
    is_past=st.booleans(),
)
PODS = st.builds(
    PodFacts,
    name=st.sampled_from("abc"),
    component=NAMES,
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    ready=st.booleans(),
    terminating=st.booleans(),
    failure=st.none() | FAILURES,
    revision=st.sampled_from("12"),
)
COUNTS = st.none() | st.integers(0, 3)


@st.composite
def lives(draw: st.DrawFn) -> Live:
    workloads, scalers = {}, {}
    for name in draw(st.sets(NAMES)):
        ref = ObjectRef("Deployment", "demo", f"chat-{name}")
        said = draw(st.tuples(SAID, SAID, SAID))
        workloads[name] = Workload(
            name, ref, available=said[0], progressing=said[1], refused=said[2]
        )
        ref = ObjectRef("HorizontalPodAutoscaler", "demo", f"chat-{name}")
        scalers[name] = Scaler(name, ref, draw(COUNTS), draw(COUNTS), draw(TEXTS))
    return Live(workloads, tuple(draw(st.lists(PODS, max_size=4))), scalers)


FIELDS = (
    "conditions components modelStatus url address reportedEvents runtimeSelection mountedOverlays "
    "observedGeneration pinnedRevisionName addresses annotations traffic rollout theirs "
    "engine decoder router autoscaler type status reason message lastTransitionTime severity class "
    "managedBy transitionStatus modelRevisionStates activeModelState lastFailureInfo time exitCode "
    "modelCopies failedCopies selectedAccelerator acceleratorClass name"
).split()
KINDS = st.sampled_from(
    "Ready EngineReady IngressReady RuntimeReady RuntimeDrifted OverlaysReady Mine".split()
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), TEXTS, KINDS
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=25,
)
CONDITIONS = st.lists(
    VALUES
    | st.fixed_dictionaries(
        {"type": KINDS, "status": TEXTS},
        optional={"reason": VALUES, "lastTransitionTime": VALUES, "message": VALUES},
    ),
    max_size=6,
)
STATUSES = VALUES | st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(FIELDS[:15], VALUES),
        "conditions": CONDITIONS | VALUES,
        "components": st.dictionaries(NAMES, VALUES) | VALUES,
    },
)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
CASES = st.integers(0, len(SPECS) - 1)
EVENTS = st.lists(st.builds(Event, st.just("Warning"), TEXTS, TEXTS), max_size=3)


def with_status(target: InferenceService, status: Any) -> InferenceService:
    copied = target.model_copy()
    copied._raw = {**target.raw, "status": status}
    return copied


@given(case=CASES, live=lives(), status=STATUSES, now=MOMENTS, later=MOMENTS, events=EVENTS)
def test_reporting_again_changes_nothing(
    case: int, live: Live, status: Any, now: datetime, later: datetime, events: list[Event]
) -> None:
    target, plan = planned(case)
    plan = Plan(
        plan.service,
        plan.actions,
        conditions=plan.conditions,
        events=(*plan.events, *events),
        decision=plan.decision,
        status=plan.status,
        autoscalers=plan.autoscalers,
        overlays=plan.overlays,
    )
    before = json.dumps(status)
    first = report_service(with_status(target, status), plan, live, Config(), now)
    assert json.dumps(status) == before
    validator().validate(first.status)
    parse({**target.raw, "status": dict(first.status)})
    stored = json.loads(json.dumps(first.status))
    second = report_service(with_status(target, stored), plan, live, Config(), later)
    assert second.status == first.status
    assert second.events == ()


@given(status=STATUSES)
def test_what_is_kept_of_a_status_is_valid_and_settled(status: Any) -> None:
    kept = settled_status(status)
    validator().validate(kept)
    assert settled_status(kept) == kept


@given(case=CASES, live=lives(), now=MOMENTS)
def test_ready_follows_the_engine_and_the_ingress(case: int, live: Live, now: datetime) -> None:
    target, plan = planned(case)
    found = report_service(target, plan, live, Config(), now)
    said = {each["type"]: each["status"] for each in found.status["conditions"]}
    counting = {said.get("EngineReady", "True"), said.get("IngressReady", "True")}
    assert (said["Ready"] == "True") == (counting == {"True"})
    assert (said["Ready"] == "False") == ("False" in counting)


@given(case=st.sampled_from([0, 1, 2, 3, 9]), live=lives(), now=MOMENTS, later=MOMENTS)
def test_a_refusal_leaves_a_serving_service_ready(
    case: int, live: Live, now: datetime, later: datetime
) -> None:
    """The same workloads, once with a plan that applies and then with one that is refused."""
    ref = ObjectRef("Deployment", "demo", "chat-engine")
    engine = Workload("engine", ref, available={"status": "True", "reason": "r", "message": "m"})
    live = Live({**live.workloads, "engine": engine}, live.pods, live.scalers)
    target, plan = planned(case)
    served = report_service(target, plan, live, Config(), now)
    refused = plan_of(target)
    assert next(refused.refusals(), None) is not None
    found = report_service(with_status(target, served.status), refused, live, Config(), later)
    counting = ("Ready", "EngineReady", "IngressReady")
    before, after = (
        [each for each in status["conditions"] if each["type"] in counting]
        for status in (served.status, found.status)
    )
    assert [each["status"] for each in before] == ["True"] * 3
    assert after == before
    assert found.status.get("url") == served.status.get("url")
    assert "InferenceServiceNotReady" not in {each.reason for each in found.events}
