"""Chains, effective specs and the reach of a change."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ome.api import ObjectRef
from ome.snapshot import BrokenChain, Lineage, Runtime, Snapshot
from ome.testing.builders import obj

NAMES = ("a", "b", "c", "d")
REFS = tuple(
    ObjectRef(kind, namespace, name)
    for kind, namespace in (
        ("ClusterServingRuntime", ""),
        ("ServingRuntime", "one"),
        ("ServingRuntime", "two"),
    )
    for name in NAMES
)


def a_runtime(ref: ObjectRef, parent: str = "", image: str = "", **metadata: Any) -> Runtime:
    annotations = {"ome.io/inherit-from": parent} if parent else {}
    spec = {"schedulerName": image} if image else {"disabled": False}
    made: Any = obj(
        ref.kind, ref.name, spec, namespace=ref.namespace, annotations=annotations, **metadata
    )
    return made  # type: ignore[no-any-return]


def cluster(name: str, parent: str = "", image: str = "", **metadata: Any) -> Runtime:
    return a_runtime(ObjectRef("ClusterServingRuntime", "", name), parent, image, **metadata)


changes = st.lists(
    st.tuples(
        st.sampled_from(REFS),
        st.none() | st.tuples(st.sampled_from(("", *NAMES)), st.sampled_from(("", "x", "y"))),
    ),
    min_size=1,
    max_size=14,
)


def state(runtimes: dict[ObjectRef, Runtime]) -> dict[ObjectRef, Any]:
    """What a fresh lineage says of every runtime: chain, fault and specs."""
    fresh = Lineage(runtimes.values())
    return {
        ref: (
            [each.raw["spec"] for each in fresh.effective(ref).chain],
            [each.ref for each in fresh.effective(ref).chain],
            fresh.effective(ref).broken,
            fresh.effective(ref).spec,
        )
        for ref in runtimes
    }


@given(changes)
def test_a_lineage_that_was_kept_up_says_what_a_fresh_one_says(
    edits: list[tuple[ObjectRef, tuple[str, str] | None]],
) -> None:
    """Every result is right after every change, and each runtime whose result changed was named."""
    runtimes: dict[ObjectRef, Runtime] = {}
    kept = Lineage()
    for ref, edit in edits:
        before = state(runtimes)
        if edit is None:
            runtimes.pop(ref, None)
            changed = kept.remove(ref)
        else:
            runtimes[ref] = a_runtime(ref, *edit)
            changed = kept.put(runtimes[ref])
        after = state(runtimes)
        for each in runtimes:
            effective = kept.effective(each)
            assert [member.ref for member in effective.chain] == after[each][1]
            assert (effective.broken, effective.spec) == after[each][2:]
        differing = {each for each in {*before, *after} if before.get(each) != after.get(each)}
        assert differing <= changed


@given(changes)
def test_reach_is_what_the_chains_say(
    edits: list[tuple[ObjectRef, tuple[str, str] | None]],
) -> None:
    runtimes = {ref: a_runtime(ref, *edit) for ref, edit in edits if edit is not None}
    lineage = Lineage(runtimes.values())
    for ref in REFS:
        through = {
            each
            for each in runtimes
            if ref in [member.ref for member in lineage.effective(each).chain]
        }
        assert lineage.reaches(ref) == through


def test_an_effective_spec_is_merged_once_for_all_that_ask() -> None:
    snapshot = Snapshot.of([cluster("a", image="x"), cluster("b", "a")])
    ref = ObjectRef("ClusterServingRuntime", "", "b")
    assert snapshot.lineage.effective(ref).spec is snapshot.lineage.effective(ref).spec


def test_a_change_that_no_plan_reads_changes_nothing() -> None:
    lineage = Lineage([cluster("a", image="x"), cluster("b", "a")])
    assert lineage.put(cluster("a", image="x", labels={"team": "z"})) == frozenset()
    assert lineage.effective(REFS[1]).chain[0].labels == {"team": "z"}


def test_a_namespaced_parent_takes_over_for_its_namespace_alone() -> None:
    local = ObjectRef("ServingRuntime", "one", "child")
    other = ObjectRef("ServingRuntime", "two", "child")
    lineage = Lineage([cluster("a", image="x"), a_runtime(local, "a"), a_runtime(other, "a")])
    parent = a_runtime(ObjectRef("ServingRuntime", "one", "a"), image="y")
    assert lineage.put(parent) == {parent.ref, local}
    assert lineage.effective(local).spec["schedulerName"] == "y"
    assert lineage.remove(parent.ref) == {parent.ref, local}
    assert lineage.effective(local).spec["schedulerName"] == "x"


def test_creating_the_missing_parent_mends_the_chain() -> None:
    child = cluster("b", "a")
    lineage = Lineage([child, cluster("c", "b")])
    text = 'inherit-from parent "a" not found (chain so far: [b])'
    assert lineage.effective(child.ref).broken == BrokenChain("ParentNotFound", text)
    names = {each.name for each in lineage.put(cluster("a"))}
    assert names == {"a", "b", "c"}
    assert lineage.effective(child.ref).broken is None
