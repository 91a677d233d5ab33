"""Pinned revisions: names, hashes, every row of the documented table, and garbage collection."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import ApiObject, parse
from ome.engines.engines import Engines
from ome.merging.canonical import content_hash
from ome.planning.plan import Hold, Plan
from ome.planning.planner import plan
from ome.resolution.revisions import (
    collect_revisions,
    in_use,
    revision_name,
    revision_name_fits,
)
from ome.snapshot import Revision, Snapshot, read_revision
from ome.testing.builders import ENTRY, deployment, model, obj, runtime, service

CASES = json.loads((Path(__file__).parents[1] / "vectors/revision-pinning.json").read_text())[
    "cases"
]
SPEC = {"engineConfig": {"runner": {"name": "ome-container", "image": "engine:v1"}}}


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["check"] == "name"], ids=lambda c: c["name"]
)
def test_documented_names(case: dict[str, Any]) -> None:
    kind = case["kind"] or "ClusterServingRuntime"
    made = revision_name(kind, case.get("namespace", ""), case["runtime"], case["hash"] + "0" * 56)
    assert made == case["name"]
    assert revision_name_fits(made, kind, case.get("namespace", ""), case["runtime"])


@pytest.mark.parametrize(
    "name", ["cr-rt-XYZ", "cr-rt-1234567", "r-demo-rt-12345678", "cr-rtx12345678"]
)
def test_names_of_another_form(name: str) -> None:
    assert not revision_name_fits(name, "ClusterServingRuntime", "demo", "rt")


specs = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "é"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "ports", "modelFormat"]), inner, max_size=4)
    ),
    max_leaves=15,
)


def shuffled(value: Any, seed: int) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        random.Random(seed).shuffle(items)
        return {key: shuffled(item, seed) for key, item in items}
    return [shuffled(item, seed) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), specs), st.integers(0, 9))
def test_the_hash_knows_no_key_order_and_nothing_unset(spec: Any, seed: int) -> None:
    assert content_hash(shuffled(spec, seed)) == content_hash(spec)
    assert content_hash({**spec, "zzz": None, "yyy": [], "xxx": ""}) == content_hash(spec)
    assert content_hash({**spec, "zzz": 7}) != content_hash(spec)


def test_the_hash_knows_no_defaults_of_the_api_server() -> None:
    bare = {
        "supportedModelFormats": [{"modelFormat": {"name": "f"}, "modelFramework": {"name": "w"}}],
        "engineConfig": {"runner": {"ports": [{"containerPort": 1}]}},
    }
    served = {
        "supportedModelFormats": [
            {
                "modelFormat": {"name": "f", "operator": "Equal", "weight": 1},
                "modelFramework": {"name": "w", "operator": "Equal", "weight": 1},
            }
        ],
        "engineConfig": {"runner": {"ports": [{"containerPort": 1, "protocol": "TCP"}]}},
    }
    assert content_hash(bare) == content_hash(served)
    assert content_hash({"a": {"emptyDir": {}}}) != content_hash({"a": {}})


def test_the_canonical_form_is_frozen() -> None:
    """A change of this digest renames every revision in every cluster: never change it."""
    digest = "1cf3c3e324ff09b5f588965567fabf2bdff07f7e50a79915ea8a283585219ca1"
    assert content_hash(SPEC) == digest


def stored(
    name: str = "cr-rt-0000000a", spec: dict[str, Any] | None = None, **changes: Any
) -> Revision:
    values: dict[str, Any] = {
        "name": name,
        "runtime": "rt",
        "kind": "ClusterServingRuntime",
        "namespace": "",
        "spec": SPEC if spec is None else spec,
        "created": "2026-01-01T00:00:00Z",
        "created_by": "ome-controller",
        "annotations": {},
    }
    return Revision(**{**values, **changes})


OTHER = {"engineConfig": {"runner": {"name": "ome-container", "image": "engine:v2"}}}
LIVE = obj("ClusterServingRuntime", "rt", OTHER)
SAME = obj("ClusterServingRuntime", "rt", SPEC)
PINNED = "cr-rt-0000000a"


def pinned(
    *,
    revision: str = "",
    status: dict[str, Any] | None = None,
    token: str = "",
    kind: str = "ClusterServingRuntime",
    **spec: Any,
) -> ApiObject:
    reference: dict[str, Any] = {"name": "rt", "kind": kind, "autoSync": False}
    if revision:
        reference["revision"] = revision
    annotations = {"ome.io/runtime-sync": token} if token else {}
    made = service(runtime=reference, metadata={"annotations": annotations}, **spec)
    return parse({**made.raw, "status": status or {}})


def planned(
    target: ApiObject, *objects: ApiObject, revisions: list[Revision] | None = None
) -> Plan:
    snapshot = Snapshot.of([target, *objects], revisions=revisions or [])
    (found,) = snapshot.services()
    return plan(snapshot, found, Engines(), provenance=True)


def image(rendered: Plan) -> str:
    text: str = deployment(rendered)["spec"]["template"]["spec"]["containers"][0]["image"]
    return text


def drift(rendered: Plan) -> tuple[str, str] | None:
    found = [item for item in rendered.conditions if item["type"] == "RuntimeDrifted"]
    return (found[0]["reason"], found[0]["message"]) if found else None


def test_never_pinned_writes_a_revision_first() -> None:
    rendered = planned(pinned(token="t1"), LIVE)
    (effect,) = rendered.effects
    name = revision_name("ClusterServingRuntime", "demo", "rt", content_hash(OTHER))
    assert rendered.status == {"pinnedRevisionName": name, "lastRuntimeSyncToken": "t1"}
    assert effect == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": "ome",
            "labels": {
                "ome.io/runtime-of": "rt",
                "ome.io/runtime-of-kind": "ClusterServingRuntime",
                "ome.io/runtime-of-namespace": "",
                "ome.io/revision-hash": content_hash(OTHER)[:8],
            },
            "annotations": {"ome.io/created-by": "ome-controller"},
        },
        "data": OTHER,
        "revision": 1,
    }
    assert image(rendered) == "engine:v2"
    read = read_revision(effect)
    assert read is not None
    assert (read.name, read.spec) == (name, OTHER)


def test_a_revision_of_the_same_content_is_found_whoever_made_it() -> None:
    rendered = planned(pinned(), SAME, revisions=[stored("cr-rt-ffffffff")])
    assert rendered.status == {"pinnedRevisionName": "cr-rt-ffffffff"}
    assert not rendered.effects
    foreign = stored("cr-rt-ffffffff", kind="ServingRuntime", namespace="demo")
    assert planned(pinned(), SAME, revisions=[foreign]).effects


def test_a_pinned_service_stays_while_the_live_spec_is_the_same() -> None:
    status = {"pinnedRevisionName": PINNED, "lastRuntimeSyncToken": "t1"}
    rendered = planned(pinned(status=status, token="t2"), SAME, revisions=[stored()])
    assert (image(rendered), drift(rendered), rendered.status) == ("engine:v1", None, status)
    layers = {layer for _, layer in rendered.provenance["engine"].values()}
    assert f"ControllerRevision/{PINNED}" in layers


def test_a_changed_runtime_freezes_the_workload_until_the_token_is_bumped() -> None:
    status = {"pinnedRevisionName": PINNED, "lastRuntimeSyncToken": "t1"}
    for token in ("", "t1"):
        held = planned(pinned(status=status, token=token), LIVE, revisions=[stored()])
        assert isinstance(held.actions["engine"], Hold)
        assert drift(held) == (
            "RevisionMismatch",
            f"pinned {PINNED}, live spec differs; bump ome.io/runtime-sync annotation to advance",
        )
        assert held.status == status
    moved = planned(pinned(status=status, token="t2"), LIVE, revisions=[stored()])
    assert (image(moved), drift(moved)) == ("engine:v2", None)
    assert moved.status["lastRuntimeSyncToken"] == "t2"
    assert moved.status["pinnedRevisionName"] != PINNED


def test_an_explicit_revision_ignores_the_live_runtime_and_the_token() -> None:
    rendered = planned(pinned(revision=PINNED, token="t3"), LIVE, revisions=[stored()])
    assert (image(rendered), drift(rendered)) == ("engine:v1", None)
    assert rendered.status == {"pinnedRevisionName": PINNED}


@pytest.mark.parametrize(
    ("target", "revisions", "reason", "message"),
    [
        (
            pinned(revision=PINNED),
            [],
            "RevisionMissing",
            f"explicit pin {PINNED} not found in namespace ome",
        ),
        (
            pinned(revision=PINNED),
            [stored(runtime="other")],
            "RuntimeMismatch",
            f'revision {PINNED} belongs to runtime "other" but ISVC references "rt"',
        ),
        (
            pinned(status={"pinnedRevisionName": PINNED}),
            [],
            "RevisionMissing",
            f"pinned revision {PINNED} missing from ome",
        ),
        # What is no spec can't be served, and differs from every spec.
        (
            pinned(status={"pinnedRevisionName": PINNED}),
            [stored(spec={"engineConfig": "x"})],
            "RevisionMismatch",
            f"pinned {PINNED}, live spec differs; bump ome.io/runtime-sync annotation to advance",
        ),
    ],
)
def test_what_freezes(target: Any, revisions: list[Revision], reason: str, message: str) -> None:
    rendered = planned(target, LIVE, revisions=revisions)
    assert isinstance(rendered.actions["engine"], Hold)
    assert drift(rendered) == (reason, message)
    assert not rendered.events


@pytest.mark.parametrize(
    "target", [pinned(revision=PINNED), pinned(status={"pinnedRevisionName": PINNED})]
)
def test_a_runtime_that_is_gone_is_served_from_its_revision(target: ApiObject) -> None:
    rendered = planned(target, revisions=[stored()])
    found = drift(rendered)
    assert found is not None
    assert (image(rendered), found[0]) == ("engine:v1", "SourceRuntimeMissing")
    assert deployment(rendered)["metadata"]["labels"]["serving-runtime"] == "rt"


@pytest.mark.parametrize(
    ("objects", "revisions", "message"),
    [
        (
            [],
            [],
            "resolve live runtime rt: runtime rt not found in namespace demo or at cluster scope",
        ),
        (
            [runtime(metadata={"annotations": {"ome.io/inherit-from": "gone"}})],
            [stored()],
            'resolve live runtime rt: inherit-from parent "gone" not found (chain so far: [rt])',
        ),
    ],
)
def test_nothing_to_serve_from(objects: list[Any], revisions: list[Revision], message: str) -> None:
    rendered = planned(pinned(), *objects, revisions=revisions)
    assert [(event.reason, event.message) for event in rendered.events] == [
        ("RuntimePinError", message)
    ]


def test_a_pinned_spec_that_is_disabled_is_refused_in_the_same_words_with_a_model() -> None:
    off = stored(spec={**SPEC, "disabled": True})
    for target in (pinned(revision=PINNED), pinned(revision=PINNED, model={"name": "m"})):
        rendered = planned(target, SAME, model(), revisions=[off])
        assert [(event.reason, event.message) for event in rendered.events] == [
            (
                "RuntimeValidationError",
                "Runtime rt failed validation: cluster-scoped runtime rt is disabled",
            )
        ]
        assert rendered.denial is None  # admission looks at the live runtime


NAMED = "cr-rt-" + content_hash(OTHER)[:8]
ELSEWHERE: dict[str, Any] = {"kind": "ServingRuntime", "namespace": "far"}


@pytest.mark.parametrize(
    ("status", "step"),
    [({}, "create initial pin"), ({"pinnedRevisionName": PINNED}, "advance pin")],
)
def test_a_name_that_is_taken(status: dict[str, Any], step: str) -> None:
    """ServingRuntimes of two namespaces, named without their kind, share revision names."""
    target = pinned(status=status, token="t2")
    same = stored(NAMED, OTHER, **ELSEWHERE)
    rendered = planned(target, LIVE, revisions=[stored(), same])
    assert (rendered.status["pinnedRevisionName"], rendered.effects) == (NAMED, ())
    assert image(rendered) == "engine:v2"
    for taken in (stored(NAMED, SPEC), stored(NAMED, OTHER, runtime="other")):
        rendered = planned(target, LIVE, revisions=[stored(spec={"disabled": True}), taken])
        assert isinstance(rendered.actions["engine"], Hold)
        assert (rendered.status, rendered.effects) == ({}, ())
        assert [(event.reason, event.message) for event in rendered.events] == [
            ("RuntimePinError", f"{step} for rt: revision {NAMED} exists and holds something else")
        ]


def test_a_runtime_whose_name_no_label_holds() -> None:
    name = "r" * 64
    target = service(runtime={"name": name, "autoSync": False})
    rendered = planned(target, runtime(name=name))
    assert [event.message for event in rendered.events] == [
        f"create initial pin for {name}: its name has 64 characters; the label ome.io/runtime-of holds 63"
    ]


@pytest.mark.parametrize(
    "target", [pinned(revision=PINNED), pinned(status={"pinnedRevisionName": PINNED})]
)
def test_a_revision_that_holds_no_runtime(target: ApiObject) -> None:
    """Anybody can write a ControllerRevision."""
    bad = stored(spec={"engineConfig": {"runner": "x"}})
    message = (
        f'decode revision {PINNED}: data.engineConfig.runner: must be an object, not a string ("x")'
    )
    for objects in ([], [LIVE]):
        rendered = planned(target, *objects, revisions=[bad])
        assert not list(rendered.objects())
        told = [event.message for event in rendered.events]
        if objects and target.raw["status"]:  # what differs isn't read
            assert drift(rendered) is not None
        else:
            assert told == [message]


@pytest.mark.parametrize("data", [None, "text", ["a"], 5])
def test_a_revision_whose_data_is_no_object(data: object) -> None:
    raw = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": PINNED, "labels": {"ome.io/runtime-of": "rt"}},
        "data": data,
    }
    bad = read_revision(raw)
    assert bad is not None
    own = {"runner": {"name": "ome-container", "image": "mine"}}
    target = pinned(revision=PINNED)
    target.raw["spec"]["engine"] = own
    rendered = planned(target, LIVE, revisions=[bad])
    assert not list(rendered.objects())
    assert [(event.reason, event.message) for event in rendered.events] == [
        ("RuntimePinError", f"decode revision {PINNED}: data: it is no object")
    ]


FROZEN = {
    "type": "RuntimeDrifted",
    "status": "True",
    "reason": "RevisionMismatch",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("target", "objects"),
    [
        (service(), [LIVE]),
        (service(), []),
        (service(runtime={"name": "rt", "autoSync": False}), []),
        (service(metadata={"annotations": {"ome.io/deploymentMode": "VirtualDeployment"}}), []),
    ],
    ids=["follows", "not found", "not pinnable", "virtual"],
)
def test_drift_stays_while_nothing_is_decided_about_the_pin(
    target: ApiObject, objects: list[ApiObject]
) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}, FROZEN]}
    rendered = planned(parse({**target.raw, "status": status}), *objects)
    assert [item for item in rendered.conditions if item["type"] == "RuntimeDrifted"] == [FROZEN]
    assert rendered.status == {}


def test_stopping_keeps_the_pin_and_starting_again_resumes_from_it() -> None:
    status = {"pinnedRevisionName": PINNED}
    made = service(runtime={"name": "rt"})
    following = planned(parse({**made.raw, "status": status}), LIVE, revisions=[stored()])
    assert (image(following), following.status) == ("engine:v2", {})
    again = planned(pinned(status=status), LIVE, revisions=[stored()])
    assert drift(again) == (
        "RevisionMismatch",
        f"pinned {PINNED}, live spec differs; bump ome.io/runtime-sync annotation to advance",
    )


def test_removing_only_the_revision_stays_on_it_and_compares_again() -> None:
    status = {"pinnedRevisionName": PINNED}
    assert drift(planned(pinned(status=status), SAME, revisions=[stored()])) is None
    held = planned(pinned(status=status), LIVE, revisions=[stored()])
    assert (drift(held) or ("",))[0] == "RevisionMismatch"


def test_a_token_set_early_waits_and_fires_at_the_next_change_without_drift() -> None:
    status = {"pinnedRevisionName": PINNED}
    waiting = planned(pinned(status=status, token="early"), SAME, revisions=[stored()])
    assert waiting.status == status
    fired = planned(pinned(status=status, token="early"), LIVE, revisions=[stored()])
    assert (image(fired), drift(fired)) == ("engine:v2", None)
    assert fired.status == {"pinnedRevisionName": NAMED, "lastRuntimeSyncToken": "early"}


GONE = "runtime rt not found in namespace demo or at cluster scope"


@pytest.mark.parametrize(
    ("objects", "cause"),
    [
        ([], GONE),
        ([LIVE], None),
        (
            [obj("ClusterServingRuntime", "rt", {**OTHER, "disabled": True})],
            "cluster-scoped runtime rt is disabled",
        ),
        (
            [runtime(metadata={"annotations": {"ome.io/inherit-from": "gone"}})],
            'inherit-from parent "gone" not found (chain so far: [rt])',
        ),
    ],
)
@pytest.mark.parametrize("revision", ["", PINNED])
def test_admission_looks_at_the_live_runtime_of_a_pinned_service_with_a_model(
    objects: list[ApiObject], cause: str | None, revision: str
) -> None:
    status = {"pinnedRevisionName": PINNED}
    target = pinned(revision=revision, status=status, model={"name": "m"})
    rendered = planned(target, *objects, model(), revisions=[stored()])
    told = None if cause is None else f"runtime rt does not support model m: {cause}"
    assert rendered.denial == told
    bare = pinned(revision=revision, status=status)
    assert planned(bare, *objects, revisions=[stored()]).denial is None


def test_support_is_declared_by_the_live_runtime_of_a_pinned_service() -> None:
    entry = {"supportedModelFormats": [ENTRY]}
    target = pinned(revision=PINNED, model={"name": "m"})
    live = obj("ClusterServingRuntime", "rt", {**OTHER, **entry})
    assert not planned(target, live, model(), revisions=[stored()]).warnings
    rendered = planned(target, LIVE, model(), revisions=[stored(spec={**SPEC, **entry})])
    assert [each.code for each in rendered.warnings] == ["NotDeclared"]
    assert not rendered.events


def test_what_services_use_whether_or_not_they_follow_it() -> None:
    followed = parse({**service().raw, "status": {"pinnedRevisionName": "kept"}})
    services: Any = [pinned(revision="named", status={"pinnedRevisionName": "was"}), followed]
    assert in_use([each.raw for each in [*services, service(runtime=None)]]) == {
        "named",
        "was",
        "kept",
    }


NOW = datetime(2026, 12, 1, tzinfo=UTC)


def aged(count: int, **changes: Any) -> list[Revision]:
    """Revisions, newest first."""
    times = [(NOW - timedelta(days=at)).isoformat() for at in range(count)]
    return [stored(f"cr-rt-{at:08x}", created=when, **changes) for at, when in enumerate(times)]


def collected(revisions: list[Revision], in_use: set[str] | None = None) -> dict[str, str]:
    found = collect_revisions(revisions, frozenset(in_use or ()), NOW)
    return {each.revision: each.action for each in found}


def test_the_newest_are_so_by_time_however_it_is_written() -> None:
    times = ["2026-01-01T12:00:00+14:00", "2026-01-01T00:00:00.500Z", "2026-01-01T00:00:00Z", ""]
    revisions = [stored(f"cr-rt-{at:08x}", created=when) for at, when in enumerate(times)]
    found = collect_revisions(revisions, frozenset(), NOW, keep=2)
    assert sorted(each.revision for each in found) == ["cr-rt-00000000", "cr-rt-00000003"]


def test_the_ten_newest_and_those_in_use_stay() -> None:
    twelve = aged(12)
    assert collected(twelve) == {twelve[10].name: "Mark", twelve[11].name: "Mark"}
    assert collected(twelve, {twelve[11].name}) == {twelve[10].name: "Mark"}
    others = aged(12, namespace="demo", kind="ServingRuntime")
    assert collected(twelve[:6] + others[:6]) == {}
    assert collected(aged(12, created_by="somebody")) == {}


@pytest.mark.parametrize(
    ("mark", "action"),
    [
        ((NOW - timedelta(hours=23)).isoformat(), None),
        ((NOW - timedelta(hours=24)).isoformat(), "Delete"),
        ("yesterday", "Mark"),
        ("2026-01-01T00:00:00", "Mark"),
    ],
)
def test_marks(mark: str, action: str | None) -> None:
    marked = stored(
        "cr-rt-eeeeeeee", created="2020", annotations={"ome.io/gc-eligible-since": mark}
    )
    found = collected([*aged(10), marked])
    assert found.get(marked.name) == action
    assert collected([*aged(3), marked])[marked.name] == "Unmark"


@given(
    st.integers(0, 14),
    st.sets(st.integers(0, 13)),
    st.lists(st.sampled_from([None, 1, 23, 25, 100]), min_size=14, max_size=14),
)
def test_nothing_in_use_is_ever_deleted(
    count: int, used: set[int], hours: list[int | None]
) -> None:
    revisions = [
        stored(
            f"cr-rt-{at:08x}",
            created=(NOW - timedelta(days=at)).isoformat(),
            annotations={}
            if hours[at] is None
            else {"ome.io/gc-eligible-since": (NOW - timedelta(hours=hours[at] or 0)).isoformat()},
        )
        for at in range(count)
    ]
    in_use = {f"cr-rt-{at:08x}" for at in used}
    deleted = {name for name, action in collected(revisions, in_use).items() if action == "Delete"}
    assert not deleted & in_use
    assert not deleted & {each.name for each in revisions[:10]}
