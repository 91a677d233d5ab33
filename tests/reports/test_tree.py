"""The tree report: paths, contexts, issues, attribution, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import ApiObject
from ome.reports.evidence import Evidence, Listing
from ome.reports.tree import NoTree, Path, TreeReport, find_target, tree
from ome.snapshot import Snapshot
from ome.testing.builders import obj, service


def runtimes(**parents: str) -> list[ApiObject]:
    """Runtimes by name and parent; `sr_x` is the ServingRuntime x of namespace demo."""
    made = []
    for key, parent in parents.items():
        local = key.startswith("sr_")
        kind = "ServingRuntime" if local else "ClusterServingRuntime"
        inherits = {"ome.io/inherit-from": parent} if parent else {}
        made.append(obj(kind, key.removeprefix("sr_"), {}, annotations=inherits))
    return made


def report(
    *objects: ApiObject, name: str, kind: str = "", evidence: Evidence | None = None
) -> TreeReport:
    snapshot = Snapshot.of(objects)
    target = find_target(snapshot, "demo", name, kind)
    return tree(snapshot, target, *([evidence] if evidence else []))


def shown(path: Path) -> str:
    steps = " ".join(
        f"{step.ref.name}<{step.resolved.name if step.resolved else ''}" for step in path.steps
    )
    issue = path.issue
    if issue is None:
        return steps
    trail = ",".join(ref.name for ref in issue.path)
    return f"{steps} {issue.code}:{issue.subject.name}:{issue.parent}:{trail}"


@pytest.mark.parametrize(
    ("objects", "name", "expected"),
    [
        (runtimes(a="", b="a", c="b"), "b", ["a< b<a", "a< b<a c<b"]),
        (runtimes(a="gone"), "a", ["a< ParentMissing:a:gone:a"]),
        (
            runtimes(a="b", b="gone"),
            "b",
            ["b< ParentMissing:b:gone:b", "b< a<b ParentMissing:a:gone:a,b"],
        ),
        (
            runtimes(a="b", b="a"),
            "a",
            ["b<a a<b CycleDetected:a:a:a,b,a", "a<b b<a CycleDetected:b:b:b,a,b"],
        ),
        (runtimes(a="a"), "a", ["a<a CycleDetected:a:a:a,a"]),
        (
            runtimes(a="", b="a", c="b", d="c", e="d", f="e"),
            "f",
            ["b< c<b d<c e<d f<e MaxDepthExceeded:f:a:f,e,d,c,b"],
        ),
        # The walk of f ends before it reaches a.
        (
            runtimes(a="", b="a", c="b", d="c", e="d", f="e"),
            "a",
            ["a<", "a< b<a", "a< b<a c<b", "a< b<a c<b d<c", "a< b<a c<b d<c e<d"],
        ),
        # A ServingRuntime's parents are looked for beside it, then at cluster scope.
        (runtimes(base="", sr_base="", sr_x="base"), "x", ["base< x<base"]),
        (
            runtimes(base="", mid="base", sr_x="mid"),
            "mid",
            ["base< mid<base", "base< mid<base x<mid"],
        ),
        # A name may appear once, so that this is a cycle.
        (
            runtimes(same="", sr_same="same"),
            "same",
            ["same<same CycleDetected:same:same:same,same"],
        ),
    ],
)
def test_paths(objects: list[ApiObject], name: str, expected: list[str]) -> None:
    kind = "ServingRuntime" if expected[0].startswith("same") else ""
    found = report(*objects, name=name, kind=kind)
    assert [shown(path) for context in found.contexts for path in context.paths] == expected


def test_the_shadowing_parent_is_the_one_that_counts() -> None:
    found = report(*runtimes(base="", sr_base="", sr_x="base"), name="x")
    (context,) = found.contexts
    assert str(context.paths[0].steps[0].ref) == "ServingRuntime/demo/base"
    # … so that the ClusterServingRuntime of the name has no path to x.
    found = report(
        *runtimes(base="", sr_base="", sr_x="base"), name="base", kind="ClusterServingRuntime"
    )
    assert [context.mode for context in found.contexts] == ["Cluster"]


def test_the_target_comes_first_then_kinds_and_names() -> None:
    elsewhere = obj(
        "ServingRuntime", "a", {}, namespace="zoo", annotations={"ome.io/inherit-from": "m"}
    )
    found = report(*runtimes(z="m", a="m", m="", sr_b="m"), elsewhere, name="m")
    assert [
        (context.mode, context.namespace, [path.head.name for path in context.paths])
        for context in found.contexts
    ] == [
        ("Cluster", "", ["m", "a", "z"]),
        ("Namespaced", "demo", ["b"]),
        ("Namespaced", "zoo", ["a"]),
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (None, "ClusterServingRuntime/rt"),
        ("ClusterServingRuntime", "ClusterServingRuntime/rt"),
        ("ServingRuntime", "ServingRuntime/demo/rt"),
        ("Other", "ServingRuntime/demo/rt"),
    ],
)
def test_a_reference_is_resolved_as_it_is_served(kind: str | None, expected: str) -> None:
    named = {"name": "rt", **({"kind": kind} if kind else {})}
    objects = [*runtimes(rt="", sr_rt=""), service(runtime=named)]
    holders = []
    for each in ("ServingRuntime", "ClusterServingRuntime"):
        found = report(*objects, name="rt", kind=each)
        holders += [
            str(path.head)
            for context in found.contexts
            for path in context.paths
            if path.dependents
        ]
    assert holders == [expected]


def test_services_that_are_attributed_to_no_runtime() -> None:
    services = [
        service("a", runtime=None, model={"name": "m"}),
        service("b", runtime={"name": "gone"}),
        service("c", runtime={"name": "Not Valid"}),
        service("d", runtime={"name": "rt"}),
        service("e", namespace="other", runtime=None),
    ]
    found = report(*runtimes(rt=""), *services, name="rt")
    assert [
        (each.service.name, each.state, each.reason, each.declared) for each in found.unattributed
    ] == [
        ("a", "Unresolved", "AutomaticSelection", ""),
        ("b", "Unresolved", "RuntimeNotFound", "gone"),
        ("c", "Invalid", "InvalidRuntimeName", ""),
        ("e", "Unresolved", "AutomaticSelection", ""),
    ]
    data = found.as_json(show_unattributed=True)["content"]["unattributedUsers"]
    assert data[1] == {
        "kind": "InferenceService",
        "namespace": "demo",
        "name": "b",
        "state": "Unresolved",
        "reason": "RuntimeNotFound",
        "declaredRuntime": "gone",
    }
    assert "unattributedUsers" not in found.as_json()["content"]
    # A ServingRuntime's tree looks no further than its namespace.
    local = report(*runtimes(sr_rt=""), *services, name="rt")
    assert [each.service.name for each in local.unattributed] == ["a", "b", "c"]
    assert [each.items for each in local.collections] == [0, 1, 4]


@pytest.mark.parametrize(
    ("objects", "name", "kind", "message"),
    [
        (
            runtimes(rt="", sr_rt=""),
            "rt",
            "",
            'runtime "rt" is ambiguous; pass --kind ServingRuntime or --kind ClusterServingRuntime: runtime '
            'target is ambiguous: "rt" matched 2 runtimes',
        ),
        ([], "rt", "", 'project runtime inheritance tree: runtime target was not found: "rt"'),
        (
            runtimes(rt=""),
            "rt",
            "ServingRuntime",
            'project runtime inheritance tree: runtime target was not found: "rt"',
        ),
    ],
)
def test_targets_that_are_refused(
    objects: list[ApiObject], name: str, kind: str, message: str
) -> None:
    with pytest.raises(NoTree) as refused:
        report(*objects, name=name, kind=kind)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("kind", "listing", "items", "what"),
    [
        ("ClusterServingRuntime", Listing("Truncated", 2), 1, "truncated (pages=2 items=1)"),
        ("ServingRuntime", Listing("Unavailable", 0, 1), 0, "unavailable (pages=0 items=0)"),
    ],
)
def test_lists_of_runtimes_must_be_complete(
    kind: str, listing: Listing, items: int, what: str
) -> None:
    with pytest.raises(NoTree) as refused:
        report(*runtimes(rt=""), name="rt", evidence=Evidence({kind: listing}))
    assert str(refused.value) == (
        f"runtime tree requires complete runtime evidence: {kind} collection is {what}; restore list "
        "access or narrow the runtime scope, then retry"
    )


@pytest.mark.parametrize(
    ("listing", "warnings"),
    [
        (Listing("Truncated", 2), ["PartialData", "Truncated"]),
        (Listing("Unavailable", 0, 1), ["PartialData", "SourceUnavailable"]),
    ],
)
def test_a_list_of_services_may_be_partial(listing: Listing, warnings: list[str]) -> None:
    evidence = Evidence({"InferenceService": listing})
    found = report(*runtimes(rt=""), name="rt", evidence=evidence)
    assert (found.completeness, found.warnings()) == ("Partial", warnings)
    assert found.as_json()["warnings"] == [{"code": code} for code in warnings]


def test_the_report_as_data() -> None:
    data = report(*runtimes(a="b", b="a"), service(runtime={"name": "a"}), name="a").as_json()
    assert data["metadata"] == {"name": "a"}
    assert data["content"]["target"] == {"kind": "ClusterServingRuntime", "name": "a"}
    path = data["content"]["contexts"][0]["paths"][0]
    a, b = ({"kind": "ClusterServingRuntime", "name": name} for name in "ab")
    assert path == {
        "head": a,
        "runtimes": [
            {"identity": b, "parentName": "a", "resolvedParent": a},
            {"identity": a, "parentName": "b", "resolvedParent": b},
        ],
        "dependents": [{"kind": "InferenceService", "namespace": "demo", "name": "chat"}],
        "issue": {"code": "CycleDetected", "subject": a, "parentName": "a", "path": [a, b, a]},
    }


def test_more_runtimes_than_upstream_reads() -> None:
    many: Any = [obj("ClusterServingRuntime", f"rt-{at}", {}) for at in range(1001)]
    found = report(*many, name="rt-1000")
    assert (found.collections[0].items, found.completeness) == (1001, "Complete")


@given(st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from(["", *"abcdefg"]), min_size=1))
def test_every_runtime_heads_a_path_of_its_own_tree(parents: dict[str, str]) -> None:
    objects = runtimes(**parents)
    for name in parents:
        paths = report(*objects, name=name).contexts[0].paths
        assert paths[0].head.name == name
        for path in paths:
            names = [step.ref.name for step in path.steps]
            assert names[-1] == path.head.name
            assert name in names
            assert len(names) == len(set(names)) <= 5
            assert (path.issue is None) == (parents[names[0]] == "")


def test_a_preset_that_nobody_supplies_is_no_fault_of_the_chain() -> None:
    root = obj("ClusterServingRuntime", "a", {}, annotations={"ome.io/engine": "nobodys"})
    found = report(root, *runtimes(b="a"), name="b")
    shown_paths = [shown(path) for context in found.contexts for path in context.paths]
    assert shown_paths == ["a< b<a"]
