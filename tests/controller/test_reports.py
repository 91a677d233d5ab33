"""The status of runtimes and accelerator classes, as it is written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ome.api import ApiObject, ObjectRef
from ome.controller.reports import ClassReporter, RuntimeReporter
from ome.controller.world import World
from ome.testing.builders import obj, runtime
from tests.controller.conftest import WritingApi, in_loop

Json = dict[str, Any]
NOW = datetime(2026, 12, 2, 10, 0, 0, tzinfo=UTC)
RUNTIME = ObjectRef("ClusterServingRuntime", "", "rt")
CLASS = ObjectRef("AcceleratorClass", "", "h100")
SPEC: Json = {"discovery": {"nodeSelector": {"gpu": "h100"}}, "capabilities": {}}
INHERITS = {"annotations": {"ome.io/inherit-from": "parent"}}


class Case:
    """A world with these objects, and an API server that has them too."""

    def __init__(self, *items: ApiObject) -> None:
        self.api = WritingApi()
        self.world = World(ome_namespace="ome", plugins=[], due=lambda *_: None)
        api: Any = self.api
        self.runtimes = RuntimeReporter(api, self.world, lambda: NOW)
        self.classes = ClassReporter(api, self.world, lambda: NOW)
        for each in items:
            self.put(each)

    def put(self, item: ApiObject, **fields: Any) -> None:
        raw: Json = {**json.loads(json.dumps(item.raw)), **fields}
        raw["metadata"].setdefault("uid", f"uid-{item.name}")
        self.world.put(json.loads(json.dumps(self.api.has(raw, watched=False))))

    def node(self, name: str, gpu: str) -> None:
        self.world.put_node({"metadata": {"name": name, "labels": {"gpu": gpu}}, "status": {}})

    def status(self, ref: ObjectRef) -> Json:
        found: Json = self.api.objects[ref].get("status") or {}
        return found


@in_loop
async def test_a_chain_and_then_nothing() -> None:
    case = Case(runtime(name="parent"), runtime(metadata=INHERITS))
    assert await case.runtimes.reconcile(RUNTIME) == "ok"
    status = case.status(RUNTIME)
    assert status["inheritanceChain"] == ["parent", "rt"]
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("InheritanceReady", "True")
    case.api.calls.clear()
    assert (await case.runtimes.reconcile(RUNTIME), case.api.calls) == ("ok", [])


@in_loop
async def test_what_others_say_of_a_runtime_stays() -> None:
    case = Case()
    theirs = {"type": "Audited", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    case.put(runtime(), status={"conditions": [theirs]})
    assert await case.runtimes.reconcile(RUNTIME) == "ok"
    conditions = case.status(RUNTIME)["conditions"]
    assert [each["type"] for each in conditions] == ["Audited", "InheritanceReady"]
    assert conditions[0] == theirs
    case.api.calls.clear()
    assert (await case.runtimes.reconcile(RUNTIME), case.api.calls) == ("ok", [])


@in_loop
async def test_a_chain_that_breaks_is_told_once() -> None:
    case = Case(runtime(metadata=INHERITS))
    for _ in range(2):
        assert await case.runtimes.reconcile(RUNTIME) == "held"
    events = [raw for ref, raw in case.api.objects.items() if ref.kind == "Event"]
    assert [(each["reason"], each["count"]) for each in events] == [("ParentNotFound", 1)]


@in_loop
async def test_a_runtime_that_is_deleted_while_it_is_reported() -> None:
    case = Case(runtime())

    async def delete(verb: str) -> None:
        case.world.remove(RUNTIME)

    case.api.before = delete
    await case.runtimes.reconcile(RUNTIME)
    assert case.world.runtime(RUNTIME) is None
    assert await case.runtimes.reconcile(RUNTIME) == "gone"


@in_loop
async def test_the_nodes_of_a_class() -> None:
    case = Case(obj("AcceleratorClass", "h100", SPEC))
    case.node("b", "h100")
    case.node("a", "h100")
    case.node("c", "a100")
    assert await case.classes.reconcile(CLASS) == "ok"
    assert case.status(CLASS) == {
        "nodes": ["a", "b"],
        "availableNodes": 2,
        "lastUpdated": "2026-12-02T10:00:00Z",
    }
    case.api.calls.clear()
    assert (await case.classes.reconcile(CLASS), case.api.calls) == ("ok", [])
    assert await case.classes.reconcile(ObjectRef("AcceleratorClass", "", "x")) == "gone"


@in_loop
async def test_nodes_that_are_not_known_are_not_gone() -> None:
    case = Case()
    case.put(obj("AcceleratorClass", "h100", SPEC), status={"nodes": ["a"], "availableNodes": 1})
    case.world.unknown = frozenset({"Node"})
    assert (await case.classes.reconcile(CLASS), case.api.calls) == ("held", [])


@in_loop
async def test_a_class_that_ends() -> None:
    case = Case()
    patches: list[Any] = []

    async def patch(*args: Any, **_: Any) -> Json:
        patches.append(args[3])
        return {}

    case.api.patch = patch  # type: ignore[method-assign]
    ending = {
        "deletionTimestamp": "2026-12-02T09:00:00Z",
        "finalizers": ["acceleratorclasses.ome.io/finalizer"],
    }
    case.put(obj("AcceleratorClass", "h100", SPEC, **ending))
    assert await case.classes.reconcile(CLASS) == "gone"
    assert [each[1] for each in patches] == [{"op": "remove", "path": "/metadata/finalizers/0"}]
