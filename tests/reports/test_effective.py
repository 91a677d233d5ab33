"""The effective and history reports: every state, reason and code that files can produce."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import InferenceService, ObjectRef, parse
from ome.merging.canonical import content_hash, written_hash
from ome.reports.effective import EffectiveReport, effective
from ome.reports.evidence import Evidence, Issue, Listing
from ome.reports.history import HistoryReport, history
from ome.reports.revisions import relation
from ome.snapshot import Snapshot, read_revision
from ome.testing.builders import ENTRY, model, obj, revision, runtime, service

Json = dict[str, Any]
ENUMS = {
    case["name"]: case["values"]
    for case in json.loads((Path(__file__).parents[1] / "vectors/cli-enums.json").read_text())[
        "cases"
    ]
}


def image(tag: str) -> Json:
    return {"engineConfig": {"runner": {"name": "ome-container", "image": f"engine:{tag}"}}}


V1, V2 = image("v1"), image("v2")
# Two specs whose hashes start with the same eight digits: the short form can't tell them apart.
TWIN, OTHER_TWIN = image("v31672"), image("v56337")
LIVE = obj("ClusterServingRuntime", "rt", V2)
STORED = revision(V1)
NAME = STORED["metadata"]["name"]


def isvc(
    *, status: Json | None = None, generation: int = 1, annotations: Json | None = None, **spec: Any
) -> Any:
    made = service(**spec, metadata={"generation": generation, "annotations": annotations or {}})
    current = {"observedGeneration": 1} if status is None else status
    return parse({**made.raw, "status": current})


def named(**fields: Any) -> Json:
    return {"name": "rt", **fields}


def pinned(reported: str = NAME, **fields: Any) -> Any:
    status = {"observedGeneration": 1, **({"pinnedRevisionName": reported} if reported else {})}
    return isvc(runtime=named(autoSync=False, **fields), status=status)


def snapshot_of(*items: Any) -> tuple[Snapshot, InferenceService]:
    objects = [item for item in items if not isinstance(item, dict)]
    stored = [read_revision(item) for item in items if isinstance(item, dict)]
    snapshot = Snapshot.of(objects, revisions=[each for each in stored if each is not None])
    return snapshot, next(snapshot.services())


def report(*items: Any, evidence: Evidence | None = None) -> EffectiveReport:
    snapshot, target = snapshot_of(*items)
    return effective(snapshot, target, *([evidence] if evidence else []))


def codes(found: EffectiveReport | HistoryReport) -> list[str]:
    return [str(issue) for issue in found.issues()]


@pytest.mark.parametrize(
    ("target", "objects", "mode", "state", "active"),
    [
        (isvc(), [LIVE], "AutoSync", "NotApplicable", ""),
        (isvc(), [], "AutoSync", "Unavailable", "NotFound"),
        (isvc(runtime=named(autoSync=True)), [LIVE], "AutoSync", "NotApplicable", ""),
        (isvc(runtime=None), [LIVE], "AutoSync", "Unavailable", "NotConfigured"),
        (pinned(""), [LIVE], "ManagedPin", "AwaitingPin", ""),
        (pinned(""), [], "ManagedPin", "Unavailable", "NotFound"),
        (pinned(), [LIVE, STORED], "ManagedPin", "Resolved", ""),
        (pinned(), [STORED], "ManagedPin", "Resolved", ""),
        (pinned(), [LIVE], "ManagedPin", "RevisionMissing", "NotFound"),
        (
            pinned(),
            [LIVE, revision("x", name=NAME)],
            "ManagedPin",
            "RevisionInvalid",
            "MalformedPayload",
        ),
        (
            pinned(),
            [LIVE, revision({**V1, "disabled": True}, name=NAME)],
            "ManagedPin",
            "RevisionDisabled",
            "Disabled",
        ),
        (
            pinned(),
            [obj("ClusterServingRuntime", "rt", {**V1, "disabled": True}), STORED],
            "ManagedPin",
            "Unavailable",
            "Disabled",
        ),
        (pinned(revision=NAME), [LIVE, STORED], "ExplicitPin", "Resolved", ""),
        (pinned("", revision=NAME), [LIVE, STORED], "ExplicitPin", "Resolved", ""),
        (
            pinned("cr-rt-00000000", revision=NAME),
            [LIVE, STORED],
            "ExplicitPin",
            "DesiredReportedMismatch",
            "",
        ),
        (
            pinned(revision=NAME),
            [LIVE, revision(V1, name=NAME, runtime="other")],
            "ExplicitPin",
            "RevisionInvalid",
            "MalformedPayload",
        ),
        (pinned(revision="cr-rt-00000000"), [LIVE], "ExplicitPin", "RevisionMissing", "NotFound"),
        (pinned(kind="Foo"), [LIVE, STORED], "InvalidPin", "InvalidIntent", "MalformedPayload"),
        (pinned(kind=""), [LIVE, STORED], "InvalidPin", "InvalidIntent", "MalformedPayload"),
    ],
)
def test_pins(target: Any, objects: list[Any], mode: str, state: str, active: str) -> None:
    found = report(target, *objects)
    assert (found.pin.mode, found.pin.state, found.active.reason) == (mode, state, active)
    assert ("ActiveRevisionUnavailable" in codes(found)) == (bool(active) and mode != "AutoSync")


def chain(*parents: str) -> list[Any]:
    """ClusterServingRuntimes rt, r1, r2 … each of which inherits from the next name."""
    names = ["rt", *(f"r{at}" for at in range(1, len(parents)))]
    return [
        obj("ClusterServingRuntime", name, V1, annotations={"ome.io/inherit-from": parent})
        for name, parent in zip(names, parents, strict=True)
    ]


@pytest.mark.parametrize(
    ("target", "objects", "reason", "inheritance"),
    [
        (isvc(), [LIVE], "", ""),
        (isvc(), [], "NotFound", "NotFound"),
        (isvc(), chain("gone"), "Unreadable", "NotFound"),
        (isvc(), chain("r1", "rt"), "Unreadable", "Cycle"),
        (isvc(), chain("r1", "r2", "r3", "r4", "r5", "r6"), "Unreadable", "MaxDepthExceeded"),
        (isvc(), [runtime(disabled=True)], "Disabled", ""),
        (isvc(runtime=None), [], "NotConfigured", "NotConfigured"),
        (isvc(runtime=None, model={"name": "m"}), [], "NotFound", "NotFound"),
        (isvc(runtime=None, model={"name": "m"}), [model()], "NotFound", "NotFound"),
        (isvc(runtime=None, model={"name": "m"}), [model(disabled=True)], "Disabled", "Disabled"),
        (
            isvc(runtime=None, model={"name": "m"}),
            [model(modelFormat=None)],
            "Unreadable",
            "Unreadable",
        ),
        (isvc(runtime=named(kind="ServingRuntime")), [LIVE], "NotFound", "NotFound"),
    ],
)
def test_live(target: Any, objects: list[Any], reason: str, inheritance: str) -> None:
    found = report(target, *objects)
    assert (found.live.reason, found.resolved.chain_reason) == (reason, inheritance)
    assert ("LiveRuntimeUnavailable" in codes(found)) == (reason not in ("", "NotConfigured"))
    assert ("InheritanceUnavailable" in codes(found)) == bool(inheritance)
    assert found.relation == ("Unknown" if reason else "Equal")


def test_the_live_runtime_of_a_service_that_names_none() -> None:
    entry = runtime().raw["spec"]["supportedModelFormats"][0]
    child = runtime(
        name="best",
        supportedModelFormats=[{**entry, "autoSelect": True}],
        metadata={"annotations": {"ome.io/inherit-from": "gone"}},
    )
    found = report(isvc(runtime=None, model={"name": "m"}), model(), child)
    # It is used with its own spec, so that a broken chain takes nothing away.
    assert (found.resolved.selection, str(found.live.source)) == (
        "Selected",
        "ClusterServingRuntime/best",
    )
    assert (found.live.reason, found.resolved.chain_reason) == ("", "NotFound")
    assert codes(found) == ["InheritanceUnavailable"]
    assert found.live.hash == content_hash(child.raw["spec"])[:8]


@pytest.mark.parametrize(
    ("live", "stored", "expected"),
    [
        (V1, V1, "Equal"),
        (V2, V1, "Different"),
        (TWIN, OTHER_TWIN, "Ambiguous"),
        (None, V1, "Unknown"),
    ],
)
def test_live_relations(live: Json | None, stored: Json, expected: str) -> None:
    held = revision(stored)
    objects = [held] if live is None else [held, obj("ClusterServingRuntime", "rt", live)]
    found = report(pinned(held["metadata"]["name"]), *objects)
    assert (found.pin.state, found.relation) == ("Resolved", expected)


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_relations_know_no_sides(left: str, right: str) -> None:
    assert relation(left, right) == relation(right, left)
    assert (relation(left, right) == "Equal") == (left == right != "")


def test_equal_content_has_one_hash_whoever_wrote_it() -> None:
    """Revisions of another controller carry another hash for the same content."""
    foreign = revision(V2, name="cr-rt-3c18f4a0", labels={"ome.io/revision-hash": "3c18f4a0"})
    found = report(pinned(), LIVE, STORED, foreign)
    assert (found.live.hash, found.active.hash) == ("3c18f4a0", content_hash(V1)[:8])
    found = report(pinned("cr-rt-3c18f4a0"), LIVE, foreign, revision(V2))
    assert (found.live.hash, found.active.hash, found.relation) == (
        "3c18f4a0",
        "3c18f4a0",
        "Equal",
    )
    assert report(isvc(), LIVE).live.hash == content_hash(V2)[:8]
    # One whose label says nothing is known by its content.
    bare = revision(V2, labels={"ome.io/revision-hash": ""})
    assert report(isvc(), LIVE, bare).live.hash == content_hash(V2)[:8]


@pytest.mark.parametrize(
    ("generation", "observed", "expected"),
    [
        (3, None, "Unobserved"),
        (3, 0, "Unobserved"),
        (3, 3, "Current"),
        (3, 2, "Stale"),
        (3, 4, "Invalid"),
        (0, 1, "Invalid"),
    ],
)
def test_status(generation: int, observed: int | None, expected: str) -> None:
    found = report(isvc(status={"observedGeneration": observed}, generation=generation), LIVE)
    assert found.pin.freshness == expected
    issues = [] if expected == "Current" else [f"Status{expected}"]
    assert codes(found) == issues
    warnings = {"Current": set(), "Unobserved": {"PartialData"}}.get(
        expected, {"PartialData", "StaleEvidence"}
    )
    assert found.warnings() == warnings


def condition(status: str | None, reason: str | None = "RevisionMismatch") -> Json:
    return {"type": "RuntimeDrifted", "status": status, "reason": reason}


@pytest.mark.parametrize(
    ("conditions", "state", "cause"),
    [
        (None, "NotReported", ""),
        ([{"type": "Ready", "status": "True"}], "NotReported", ""),
        ([condition("True")], "ReportedTrue", "RevisionMismatch"),
        ([condition("True", "RevisionMissing")], "ReportedTrue", "RevisionMissing"),
        ([condition("True", "SourceRuntimeMissing")], "ReportedTrue", "SourceRuntimeMissing"),
        ([condition("True", "RuntimeMismatch")], "ReportedTrue", "RuntimeMismatch"),
        ([condition("False", "")], "ReportedFalse", "Other"),
        ([condition("Unknown", None)], "ReportedUnknown", "Other"),
        ([condition("true", "Odd")], "Malformed", "Other"),
        ([condition(None)], "Malformed", "RevisionMismatch"),
        ([condition("True"), condition("True")], "Malformed", ""),
    ],
)
def test_drift(conditions: list[Json] | None, state: str, cause: str) -> None:
    found = report(isvc(status={"observedGeneration": 1, "conditions": conditions}), LIVE)
    assert found.pin.drift == (state, cause)
    assert codes(found) == (["ReportedDriftConflict"] if state == "Malformed" else [])


@pytest.mark.parametrize(
    ("asked", "used", "expected"),
    [
        ("", None, "Absent"),
        ("", "t", "StatusOnly"),
        ("t", "t", "Acknowledged"),
        ("t", None, "Pending"),
        ("t", "u", "Pending"),
    ],
)
def test_sync(asked: str, used: str | None, expected: str) -> None:
    target = isvc(
        annotations={"ome.io/runtime-sync": asked},
        status={"observedGeneration": 1, "lastRuntimeSyncToken": used},
    )
    assert report(target, LIVE).pin.sync == expected


MODE = "ome.io/deploymentMode"


@pytest.mark.parametrize(
    ("target", "engine", "expected"),
    [
        (isvc(), {}, [("engine", "RawDeployment", "Default")]),
        (isvc(deploymentMode="OMENative"), {}, [("engine", "OMENative", "ServiceSpec")]),
        (isvc(), {"leader": {}, "worker": {}}, [("engine", "OMENative", "LeaderWorkerShape")]),
        (
            isvc(deploymentMode="RawDeployment"),
            {"annotations": {MODE: "MultiNode"}},
            [("engine", "MultiNode", "ComponentAnnotation")],
        ),
        (
            isvc(annotations={MODE: "VirtualDeployment"}, decoder={}),
            {"annotations": {MODE: "OMENative"}},
            [
                ("engine", "VirtualDeployment", "ServiceAnnotation"),
                ("decoder", "VirtualDeployment", "ServiceAnnotation"),
            ],
        ),
        (
            isvc(engine={"annotations": {MODE: "VirtualDeployment"}}, router={}),
            {},
            [
                ("engine", "VirtualDeployment", "ComponentAnnotation"),
                ("router", "RawDeployment", "Default"),
            ],
        ),
    ],
)
def test_component_modes(target: Any, engine: Json, expected: list[tuple[str, str, str]]) -> None:
    live = obj("ClusterServingRuntime", "rt", {"engineConfig": engine})
    found = report(target, live).live.components
    assert [(each.name, each.mode, each.source) for each in found] == expected


# What each revision code takes, on the revision that a service is pinned to.
REVISION_CODES: dict[str, list[Any]] = {
    "RevisionNotFound": [],
    "RevisionDisabled": [revision({**V1, "disabled": True}, name=NAME)],
    "RevisionNotOMEManaged": [revision(V1, annotations={})],
    "RevisionSourceMismatch": [
        revision(
            V1,
            labels={"ome.io/runtime-of-kind": "ServingRuntime", "ome.io/runtime-of-namespace": "x"},
        )
    ],
    "RevisionHashInvalid": [revision(V1, labels={"ome.io/revision-hash": "XYZ"})],
    "RevisionHashMismatch": [revision(V1, labels={"ome.io/revision-hash": "00000000"})],
    "RevisionNameMismatch": [revision(V2, name=NAME)],
    "RevisionOrdinalUnexpected": [revision(V1, revision=2)],
    "RevisionPayloadNonCanonical": [revision({**V1, "unknown": 1}, name=NAME)],
    "RevisionPayloadMalformed": [revision(["x"], name=NAME)],
    "DuplicateRevision": [STORED, STORED],
    "ConflictingRevision": [STORED, revision(V1, revision=2)],
    "DuplicateRevisionContent": [STORED, STORED],
    "RevisionHashCollision": [
        revision(TWIN, name=NAME),
        revision(OTHER_TWIN, name=NAME),
    ],
}
UNREACHABLE = {
    "RevisionUnavailable": "reading one revision fails only against a cluster",
    "RevisionDataObjectPresent": "no JSON or YAML can carry a typed object in `data`",
    "RevisionIdentityMismatch": "a file has no request that an answer could differ from",
    "HistoryTruncated": "files have no pages",
}
SERVICE_CODES: dict[str, tuple[Any, list[Any]]] = {
    "InvalidDeclaredKind": (isvc(runtime=named(kind="Foo")), [LIVE]),
    "DeclaredCompatibilityMismatch": (
        isvc(model={"name": "m"}),
        [model(), runtime(supportedModelFormats=[])],
    ),
    "InheritanceUnavailable": (isvc(), []),
    "LiveRuntimeUnavailable": (isvc(), []),
    "StatusUnobserved": (isvc(status={}), [LIVE]),
    "StatusStale": (isvc(generation=2), [LIVE]),
    "StatusInvalid": (isvc(generation=0), [LIVE]),
    "ReportedDriftConflict": (isvc(status={"conditions": [condition("")]}), [LIVE]),
    "ActiveRevisionUnreported": (pinned(""), [LIVE]),
    "ActiveRevisionUnavailable": (pinned(), [LIVE]),
}


def test_every_documented_code_is_in_a_table() -> None:
    assert list(SERVICE_CODES) == ENUMS["issue codes, service"]
    documented = ENUMS["issue codes, revision"] + ENUMS["issue codes, history only"]
    # test_history_without_a_runtime_name has the one that is left.
    assert {*REVISION_CODES, *UNREACHABLE, "HistoryUnavailable"} == set(documented)


@pytest.mark.parametrize("code", SERVICE_CODES)
def test_service_codes(code: str) -> None:
    target, objects = SERVICE_CODES[code]
    assert code in codes(report(target, *objects))


@pytest.mark.parametrize("code", REVISION_CODES)
def test_revision_codes(code: str) -> None:
    found = report(pinned(), LIVE, *REVISION_CODES[code])
    assert f"{code}({NAME})" in codes(found)
    listed = history(*snapshot_of(pinned(), LIVE, *REVISION_CODES[code]))
    if code == "RevisionNotFound":
        assert (codes(listed), listed.entries) == ([f"{code}({NAME})"], ())
        return
    assert codes(listed) == []
    assert all(code in entry.seen.issues for entry in listed.entries)
    assert {entry.seen.consistency for entry in listed.entries} == {"Inconsistent"}


def test_what_is_wrong_with_a_revision_is_all_that_is_told() -> None:
    """Each table entry has the codes that it must have, and no others."""
    also = {
        "RevisionDisabled": {"RevisionNameMismatch"},
        "RevisionPayloadNonCanonical": {"RevisionNameMismatch"},
        "DuplicateRevision": {"DuplicateRevisionContent"},
        "DuplicateRevisionContent": {"DuplicateRevision"},
        "ConflictingRevision": {"RevisionOrdinalUnexpected", "DuplicateRevisionContent"},
        "RevisionHashCollision": {"ConflictingRevision", "RevisionNameMismatch"},
    }
    for code, objects in REVISION_CODES.items():
        found = report(pinned(), LIVE, *objects)
        told = {issue.code for issue in found.issues() if issue.revision}
        assert told == {code, *also.get(code, set())}, code


def test_a_revision_that_can_not_be_read() -> None:
    ref = ObjectRef("ControllerRevision", "ome", NAME)
    found = report(pinned(), LIVE, evidence=Evidence(failed={ref: "Forbidden"}))
    assert codes(found) == ["ActiveRevisionUnavailable", f"RevisionUnavailable({NAME})"]
    assert (found.pin.state, found.active.reason) == ("Unavailable", "Forbidden")


@pytest.mark.parametrize(
    ("listing", "observation", "warnings"),
    [
        (Listing("Truncated", 2), "Partial", ["PartialData", "Truncated"]),
        (Listing("Unavailable", 1, 2), "Partial", ["PartialData"]),
        (Listing("Unavailable", 0, 1), "Unavailable", ["PartialData"]),
    ],
)
def test_a_list_that_is_not_complete(
    listing: Listing, observation: str, warnings: list[str]
) -> None:
    snapshot, target = snapshot_of(isvc(), LIVE, STORED)
    listed = history(snapshot, target, Evidence({"ControllerRevision": listing}))
    assert codes(listed) == [f"History{listing.status}"]
    assert (listed.observation, listed.completeness) == (observation, "Incomplete")
    assert [each["code"] for each in listed.as_json()["warnings"]] == warnings


def test_reads_that_fail_are_told_by_their_reason() -> None:
    ref = ObjectRef("ClusterServingRuntime", "", "rt")
    for reason in ("Forbidden", "UnsupportedAPI", "Unreadable"):
        found = report(isvc(), evidence=Evidence(failed={ref: reason}))
        assert (found.live.reason, found.pin.state) == (reason, "Unavailable")
        # What can't be read isn't missing: a pinned service isn't said to run without it.
        found = report(pinned(), STORED, evidence=Evidence(failed={ref: reason}))
        assert (found.pin.state, found.active.reason) == ("Unavailable", reason)
    cut = Evidence({"ServingRuntime": Listing("Truncated", 2)})
    found = report(isvc(runtime=None, model={"name": "m"}), model(), evidence=cut)
    assert found.live.reason == "Unreadable"


@pytest.mark.parametrize("data", ["x", ["x"], None, "", 5, {"engineConfig": "x"}])
def test_malformed_data(data: Any) -> None:
    held = revision(data, name=NAME)
    found = report(pinned(), LIVE, held)
    assert f"RevisionPayloadMalformed({NAME})" in codes(found)
    assert (found.pin.state, found.active.hash) == ("RevisionInvalid", "")
    (entry,) = history(*snapshot_of(pinned(), LIVE, held)).entries
    assert (entry.seen.consistency, entry.relation) == ("Inconsistent", "Unknown")


def test_what_is_not_as_ome_writes_it() -> None:
    for spec in ({**V1, "unknown": 1}, {**V1, "nodeSelector": None}, {**V1, "hostNetwork": False}):
        held = revision(spec)
        found = report(pinned(held["metadata"]["name"]), LIVE, held)
        assert codes(found) == [f"RevisionPayloadNonCanonical({held['metadata']['name']})"]
        assert found.pin.state == "Resolved"


def test_empty_data_is_a_spec() -> None:
    held = revision({})
    found = report(pinned(held["metadata"]["name"]), LIVE, held)
    assert (found.pin.state, codes(found)) == ("Resolved", [])


@pytest.mark.parametrize(
    ("spec", "consistency"),
    [
        (V1, "Consistent"),
        ({"disabled": False, **V1}, "Consistent"),
        ({**V1, "disabled": False}, "Unknown"),
    ],
)
def test_a_hash_of_upstream_is_checked_where_its_bytes_are_kept(
    spec: Json, consistency: str
) -> None:
    written = {"disabled": False, **V1} if "disabled" in spec else V1
    short = written_hash(written)[:8]
    assert short != content_hash(spec)[:8]
    held = revision(spec, name=f"cr-rt-{short}", labels={"ome.io/revision-hash": short})
    (entry,) = history(*snapshot_of(isvc(), LIVE, held)).entries
    assert (entry.seen.consistency, entry.seen.issues, entry.seen.hash) == (consistency, [], short)


def test_upstream_bytes_escape_as_go_does() -> None:
    text = r'{"b":"\u003c\u0026\u003e\u2028é","a":[1,true]}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert written_hash({"b": "<&>\u2028é", "a": [1, True]}) == digest


def test_history_lists_the_label_and_what_the_service_names() -> None:
    local = {"ome.io/runtime-of-kind": "ServingRuntime", "ome.io/runtime-of-namespace": "demo"}
    other = revision(V2, runtime="other")
    newer = revision(V2, creationTimestamp="2026-09-20T16:30:00+02:00")
    undated = revision(
        V1, name="r-demo-rt-" + content_hash(V1)[:8], labels=local, creationTimestamp="soon"
    )
    target = pinned(NAME, revision=other["metadata"]["name"])
    listed = history(*snapshot_of(target, LIVE, STORED, newer, other, undated))
    seen = [
        (each.seen.revision.name, each.roles, each.relation, each.seen.issues)
        for each in listed.entries
    ]
    duplicate = ["DuplicateRevisionContent"]
    assert seen == [
        (newer["metadata"]["name"], ("History",), "MatchesLive", duplicate),
        # Named by the service, and of another runtime: not in the list of its runtime.
        (
            other["metadata"]["name"],
            ("Requested",),
            "MatchesLive",
            [*duplicate, "RevisionSourceMismatch"],
        ),
        (NAME, ("Reported", "History"), "DiffersFromLive", duplicate),
        (
            undated["metadata"]["name"],
            ("History",),
            "DiffersFromLive",
            [*duplicate, "RevisionSourceMismatch"],
        ),
    ]


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_revisions_of_a_serving_runtime_that_is_found_by_the_default_kind(kind: str) -> None:
    """The name goes by the declared kind, the labels by the kind that was found."""
    labels = {"ome.io/runtime-of-kind": "ServingRuntime", "ome.io/runtime-of-namespace": "demo"}
    prefix = "cr-rt" if kind == "ClusterServingRuntime" else "r-demo-rt"
    held = revision(V1, name=f"{prefix}-{content_hash(V1)[:8]}", labels=labels)
    live = obj("ServingRuntime", "rt", V1)
    found = report(pinned(held["metadata"]["name"], kind=kind), live, held)
    assert (codes(found), str(found.active.source)) == ([], "ServingRuntime/demo/rt")
    assert found.relation == "Equal"


def test_history_without_a_runtime_name() -> None:
    listed = history(*snapshot_of(isvc(runtime=None), STORED))
    assert (listed.observation, listed.completeness) == ("Unavailable", "Incomplete")
    assert (listed.listing.pages, listed.listing.asked, listed.entries) == (0, 0, ())
    assert codes(listed) == ["HistoryUnavailable", "InheritanceUnavailable"]


def test_a_missing_runtime_with_a_revision() -> None:
    found = report(pinned(kind="ServingRuntime"), STORED)
    assert str(found.active.source) == "ServingRuntime/demo/rt"
    assert codes(found) == [
        "InheritanceUnavailable",
        "LiveRuntimeUnavailable",
        f"RevisionSourceMismatch({NAME})",
    ]
    assert found.content()["selection"]["runtime"] == {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ServingRuntime",
        "namespace": "demo",
        "name": "rt",
    }


def test_the_report_as_data() -> None:
    live = obj("ClusterServingRuntime", "rt", V2, uid="u-1", generation=4)
    held = revision(V1, uid="u-2")
    data = report(pinned(), live, held).as_json()
    assert data["metadata"] == {"namespace": "demo", "name": "chat"}
    assert data["sources"][0] == {
        "kind": "ClusterServingRuntime",
        "name": "rt",
        "uid": "u-1",
        "generation": 4,
        "evidence": "Observed",
        "collectedAt": "1970-01-01T00:00:00Z",
    }
    assert data["content"]["pin"] == {
        "mode": "ManagedPin",
        "state": "Resolved",
        "reportedRevision": NAME,
        "status": {"generation": 1, "observedGeneration": 1, "freshness": "Current"},
        "reportedDrift": {"state": "NotReported"},
        "syncState": "Absent",
    }
    assert data["content"]["active"] == {
        "state": "Available",
        "origin": "ControllerRevision",
        "source": {
            "apiVersion": "ome.io/v1beta1",
            "kind": "ClusterServingRuntime",
            "name": "rt",
            "uid": "u-1",
            "generation": 4,
        },
        "revision": {
            "namespace": "ome",
            "name": NAME,
            "uid": "u-2",
            "createdAt": "2026-09-01T08:00:00Z",
        },
        "hash": content_hash(V1)[:8],
        "components": [
            {
                "type": "engine",
                "deploymentMode": "RawDeployment",
                "deploymentModeSource": "Default",
            }
        ],
    }
    missing = report(pinned(), live).as_json()
    assert missing["sources"][1]["unavailableReason"] == "NotFound"
    assert [each["code"] for each in missing["warnings"]] == ["PartialData", "SourceUnavailable"]
    assert missing["content"]["issues"] == [
        {"code": "ActiveRevisionUnavailable"},
        {"code": "RevisionNotFound", "revision": NAME},
    ]


def test_shapes_of_the_enums() -> None:
    assert list(report(isvc(), LIVE).as_json()) == [
        name.removesuffix("[]") for name in ENUMS["report envelope"]
    ]
    content = report(pinned(), LIVE, STORED).content()
    assert list(content) == [
        "selection",
        "inheritance",
        "pin",
        "live",
        "active",
        "liveToActive",
        "issues",
    ]
    listed = history(*snapshot_of(pinned(), LIVE, STORED)).as_json()["content"]
    assert list(listed) == [
        *("runtime", "observation", "completeness", "requestedPages", "observedPages"),
        *("revisions", "issues"),
    ]
    assert list(listed["revisions"][0]) == [
        *("revision", "source", "hash", "roles", "consistency", "relationToLive", "issues")
    ]


def test_issues_are_shown_with_their_revision() -> None:
    assert str(Issue("A")) == "A"
    assert str(Issue("A", "r")) == "A(r)"


def test_a_disabled_runtime_still_has_a_chain() -> None:
    found = report(isvc(), runtime(disabled=True))
    assert [each.name for each in found.resolved.chain] == ["rt"]
    assert codes(found) == ["LiveRuntimeUnavailable"]


@pytest.mark.parametrize("asked", [{}, {"runtime": None, "model": {"name": "m"}}])
def test_a_runtime_without_the_preset_that_it_names_is_unreadable(asked: Json) -> None:
    """Its chain is known all the same."""
    unknown = {"annotations": {"ome.io/engine": "nobodys"}}
    entry = {**ENTRY, "autoSelect": True}
    item = runtime(metadata=unknown, supportedModelFormats=[entry])
    found = report(item, model(), isvc(**asked))
    data = found.as_json()["content"]
    assert (found.resolved.reason, found.resolved.chain_reason) == ("Unreadable", "")
    assert data["inheritance"]["state"] == "Observed"
    assert codes(found) == ["LiveRuntimeUnavailable"]
