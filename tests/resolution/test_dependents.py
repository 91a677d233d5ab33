"""Which services a change of a runtime concerns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.api import ApiObject, InferenceService, ObjectRef
from ome.engines.engines import Engines
from ome.planning.planner import plan
from ome.resolution.dependents import Dependents
from ome.snapshot import Snapshot
from ome.testing.builders import obj, service

NO_ENGINES = Engines()


def a_runtime(kind: str, name: str, image: str, parent: str = "", namespace: str = "one") -> Any:
    annotations = {"ome.io/inherit-from": parent} if parent else {}
    runner = {"name": "ome-container", "image": image}
    spec = {"engineConfig": {"runner": runner}}
    return obj(kind, name, spec, namespace=namespace, annotations=annotations)


def a_service(name: str, kind: str | None, runtime: str, namespace: str) -> InferenceService:
    reference = {"name": runtime} if kind is None else {"name": runtime, "kind": kind}
    made = service(name, namespace=namespace, runtime=reference)
    assert isinstance(made, InferenceService)
    return made


SERVICES = [
    a_service(f"{runtime}-{str(kind)[:1].lower()}", kind, runtime, namespace)
    for runtime in ("a", "b")
    for kind in (None, "ClusterServingRuntime", "ServingRuntime")
    for namespace in ("one", "two")
]
KINDS = ("ClusterServingRuntime", "ServingRuntime")
edits = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(("a", "b")),
        st.none() | st.tuples(st.sampled_from(("v1", "v2")), st.sampled_from(("", "a", "b"))),
    ),
    min_size=1,
    max_size=8,
)


@given(edits)
def test_every_service_that_renders_differently_is_concerned(
    changes: list[tuple[str, str, tuple[str, str] | None]],
) -> None:
    dependents = Dependents(SERVICES)
    runtimes: dict[ObjectRef, ApiObject] = {}
    lineage = Snapshot.of().lineage
    before = Snapshot.of([*SERVICES])
    for kind, name, edit in changes:
        subject = a_runtime(kind, name, *(edit or ("v1", "")))
        if edit is None:
            runtimes.pop(subject.ref, None)
            reached = lineage.remove(subject.ref)
        else:
            runtimes[subject.ref] = subject
            reached = lineage.put(subject)
        after = Snapshot.of([*SERVICES, *runtimes.values()])
        differing = {
            each.ref
            for each in SERVICES
            if plan(before, each, NO_ENGINES) != plan(after, each, NO_ENGINES)
        }
        assert differing <= dependents.of(reached, after)
        before = after


CASES: list[tuple[str, tuple[str, str], list[tuple[str, str]], set[str]]] = [
    (
        "a cluster runtime: the services of every namespace that don't ask for a ServingRuntime",
        ("ClusterServingRuntime", "a"),
        [],
        {"one/a-n", "one/a-c", "two/a-n", "two/a-c"},
    ),
    (
        "a ServingRuntime: its namespace alone",
        ("ServingRuntime", "a"),
        [],
        {"one/a-n", "one/a-c", "one/a-s"},
    ),
    (
        "a ServingRuntime that a cluster runtime stands before",
        ("ServingRuntime", "a"),
        [("ClusterServingRuntime", "a")],
        {"one/a-s"},
    ),
    (
        "a parent: the services of the runtimes that inherit from it",
        ("ClusterServingRuntime", "root"),
        [("ClusterServingRuntime", "a"), ("ServingRuntime", "b")],
        {"one/a-n", "one/a-c", "two/a-n", "two/a-c", "one/b-n", "one/b-c", "one/b-s"},
    ),
]


@pytest.mark.parametrize(
    ("title", "changed", "others", "expected"), CASES, ids=[c[0] for c in CASES]
)
def test_which_services(
    title: str, changed: tuple[str, str], others: list[tuple[str, str]], expected: set[str]
) -> None:
    there = [a_runtime(*each, "v1", parent="root") for each in others]
    subject = a_runtime(*changed, "v2")
    snapshot = Snapshot.of([*SERVICES, *there, subject])
    lineage = Snapshot.of(there).lineage
    concerned = Dependents(SERVICES).of(lineage.put(subject), snapshot)
    assert {f"{ref.namespace}/{ref.name}" for ref in concerned} == expected


def test_services_come_and_go() -> None:
    dependents = Dependents(SERVICES)
    subject = a_runtime("ClusterServingRuntime", "a", "v1")
    snapshot = Snapshot.of([subject])
    moved = a_service("a-n", None, "b", "one")
    dependents.put(moved)
    dependents.remove(ObjectRef("InferenceService", "two", "a-n"))
    dependents.put(service("chosen", runtime=None, model={"name": "m"}))  # type: ignore[arg-type]
    found = {ref.name + "/" + ref.namespace for ref in dependents.of([subject.ref], snapshot)}
    assert found == {"a-c/one", "a-c/two"}
    for each in SERVICES:
        dependents.remove(each.ref)
    assert dependents.of([subject.ref], snapshot) == frozenset()
