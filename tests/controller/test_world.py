"""What the controller knows: whom each change concerns, and how urgently."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ome.api import ApiObject, ObjectRef
from ome.controller.workqueue import Urgency
from ome.controller.world import World
from ome.engines.engines import Engines
from ome.planning.planner import plan
from ome.snapshot import EVERY_API, PluginVersion
from ome.testing.builders import model, obj, revision, runtime, service

Json = dict[str, Any]
NOW = datetime(2026, 12, 2, 10, 0, 0, tzinfo=UTC)
USER, CHANGE, RESYNC = Urgency.USER, Urgency.CHANGE, Urgency.RESYNC
When = Urgency | tuple[Urgency, float]
SOON: When = (CHANGE, 0.2)
SOME_TIME: When = (CHANGE, 1.0)
INHERITS = "ome.io/inherit-from"
MODEL = ObjectRef("ClusterBaseModel", "", "m")
CLASS = ObjectRef("AcceleratorClass", "", "h100")
RUNTIME = ObjectRef("ClusterServingRuntime", "", "rt")
OWN = ObjectRef("ServingRuntime", "demo", "own")
CHAT = ObjectRef("InferenceService", "demo", "chat")
PODS_LABELS = {"ome.io/inferenceservice": "chat", "component": "engine"}


def stored(item: ApiObject | Json, version: int, uid: str = "", **metadata: Any) -> Json:
    """An object as the API server tells of it."""
    raw: Json = json.loads(json.dumps(item.raw if isinstance(item, ApiObject) else item))
    name = raw["metadata"]["name"]
    raw["metadata"] |= {"uid": uid or f"uid-{name}", "resourceVersion": str(version), **metadata}
    return raw


def deployment(version: int, owner: str = "chat", by: str = "", **spec: Any) -> Json:
    fields = {"f:spec": {f"f:{key}": {} for key in spec}}
    return {
        "kind": "Deployment",
        "metadata": {
            "name": "chat-engine",
            "namespace": "demo",
            "uid": "d1",
            "resourceVersion": str(version),
            "labels": PODS_LABELS,
            "managedFields": [{"manager": by, "operation": "Update", "fieldsV1": fields}],
            "ownerReferences": [
                {
                    "apiVersion": "ome.io/v1beta1",
                    "kind": "InferenceService",
                    "name": owner,
                    "uid": f"uid-{owner}",
                    "controller": True,
                }
            ],
        },
        "spec": spec,
    }


def pod(phase: str, name: str = "p", **labels: str) -> Json:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "demo", "labels": PODS_LABELS | labels},
        "status": {"phase": phase},
    }


def node(gpus: str = "8", **labels: str) -> Json:
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels, "resourceVersion": "1"},
        "status": {"capacity": {"nvidia.com/gpu": gpus}, "conditions": [{"at": "ever another"}]},
    }


REVISION = stored(revision({"a": 1}, name="cr-rt-1"), 1)
CLASSES = {"discovery": {"nodeSelector": {"gpu": "h100"}}, "capabilities": {}}


def runtime_spec(image: str) -> Json:
    return {"runner": {"name": "ome-container", "image": image}}


class Case:
    """A world with something of everything, and what is due since."""

    def __init__(self) -> None:
        self.due: set[tuple[str, When]] = set()
        self.world = World(ome_namespace="ome", plugins=[PluginVersion("x", "1")], due=self._note)
        put = self.world.put
        put(stored(runtime(), 1))
        put(stored(runtime(name="child", metadata={"annotations": {INHERITS: "rt"}}), 1))
        put(stored(runtime(name="own", kind="ServingRuntime"), 1))
        put(stored(model(), 1))
        put(stored(obj("AcceleratorClass", "h100", CLASSES), 1))
        put(stored(service("chat", model={"name": "m"}), 1))
        put(stored(service("heir", runtime={"name": "child"}), 1))
        put(stored(service("waits", runtime=None, model={"name": "m"}), 1))
        put(stored(service("waits", namespace="far", runtime=None), 1, "uid-far"))
        put(stored(service("pins", runtime={"name": "gone", "revision": "cr-rt-1"}), 1))
        self.planned("chat", {MODEL, CLASS}, held=False)
        self.planned("heir", set(), held=False)
        self.planned("waits", {MODEL}, held=True, chooses=True)
        self.planned("waits", set(), held=True, chooses=True, namespace="far")
        self.world.put_owned(deployment(5))
        self.world.put_pod(pod("Pending"))
        self.world.put_node(node())
        self.world.put_revision(REVISION)
        self.due.clear()

    def _note(self, ref: ObjectRef, urgency: Urgency, wait: float = 0.0, /) -> None:
        where = f"{ref.namespace}/" if ref.namespace not in ("", "demo") else ""
        self.due.add((f"{ref.kind} {where}{ref.name}", (urgency, wait) if wait else urgency))

    def planned(
        self,
        name: str,
        looked_up: set[ObjectRef],
        *,
        held: bool,
        chooses: bool = False,
        namespace: str = "demo",
    ) -> None:
        ref = ObjectRef("InferenceService", namespace, name)
        self.world.concerns.planned(ref, looked_up, held=held, chooses=chooses)


def services(when: When, *names: str) -> set[tuple[str, When]]:
    return {(f"InferenceService {name}", when) for name in names}


def runtimes(*names: str, kind: str = "ClusterServingRuntime") -> set[tuple[str, When]]:
    return {(f"{kind} {name}", RESYNC) for name in names}


THE_CLASS: set[tuple[str, When]] = {("AcceleratorClass h100", RESYNC)}
BAD = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService"}
UNREADABLE = {**BAD, "metadata": {"name": "chat", "namespace": "demo"}, "spec": {"engine": 1}}
ALL = (
    services(RESYNC, "chat", "heir", "waits", "far/waits", "pins")
    | runtimes("rt", "child")
    | runtimes("own", kind="ServingRuntime")
    | THE_CLASS
)

Change = Callable[[World], None]

# What happens, and what is due then.
DUE: dict[str, tuple[Change, set[tuple[str, Urgency]]]] = {
    "a new service": (lambda w: w.put(stored(service("new"), 9)), services(USER, "new")),
    "a service's spec": (
        lambda w: w.put(stored(service("chat", model={"name": "other"}), 9)),
        services(USER, "chat"),
    ),
    "a service's label": (
        lambda w: w.put(stored(service("chat", model={"name": "m"}), 9, labels={"a": "b"})),
        services(USER, "chat"),
    ),
    "a service's deletion": (
        lambda w: w.put(
            stored(
                service("chat", model={"name": "m"}), 9, deletionTimestamp="2026-12-02T10:00:00Z"
            )
        ),
        services(USER, "chat"),
    ),
    "a service of its name, created anew": (
        lambda w: w.put(stored(service("chat", model={"name": "m"}), 1, "uid-2")),
        services(USER, "chat"),
    ),
    "a service's status": (
        lambda w: w.put({**stored(service("chat", model={"name": "m"}), 9), "status": {}}),
        services(CHANGE, "chat"),
    ),
    "our write of a status": (
        lambda w: w.wrote({**stored(service("chat", model={"name": "m"}), 9), "status": {}}),
        set(),
    ),
    "the same version again": (lambda w: w.put(stored(service("chat"), 1)), set()),
    "a stale version": (lambda w: w.put(stored(service("chat"), 0)), set()),
    "a service is gone": (lambda w: w.remove(CHAT), services(USER, "chat")),
    "what nobody knew is gone": (
        lambda w: w.remove(ObjectRef("InferenceService", "a", "b")),
        set(),
    ),
    "a service can't be read": (lambda w: w.put(stored(UNREADABLE, 9)), services(USER, "chat")),
    "a runtime's spec": (
        lambda w: w.put(stored(runtime(runtime_spec("v2")), 9)),
        runtimes("rt", "child") | services(CHANGE, "chat", "heir", "waits", "far/waits"),
    ),
    "a child's spec": (
        lambda w: w.put(
            stored(
                runtime(
                    runtime_spec("v2"), name="child", metadata={"annotations": {INHERITS: "rt"}}
                ),
                9,
            )
        ),
        runtimes("child") | services(CHANGE, "heir", "waits", "far/waits"),
    ),
    "a runtime's status": (
        lambda w: w.put({**stored(runtime(), 9), "status": {"conditions": []}}),
        runtimes("rt"),
    ),
    "a runtime is gone": (
        lambda w: w.remove(RUNTIME),
        runtimes("rt", "child") | services(CHANGE, "chat", "heir", "waits", "far/waits"),
    ),
    "a runtime of a namespace": (
        lambda w: w.put(stored(runtime(runtime_spec("v2"), name="own", kind="ServingRuntime"), 9)),
        runtimes("own", kind="ServingRuntime") | services(CHANGE, "waits"),
    ),
    "a runtime of a namespace is gone": (
        lambda w: w.remove(OWN),
        runtimes("own", kind="ServingRuntime") | services(CHANGE, "waits"),
    ),
    "a runtime that another comes before": (
        lambda w: w.put(stored(runtime(kind="ServingRuntime"), 9)),
        runtimes("rt", kind="ServingRuntime") | services(CHANGE, "waits"),
    ),
    "a runtime that somebody waits for": (
        lambda w: w.put(stored(runtime(name="gone"), 9)),
        runtimes("gone") | services(CHANGE, "pins", "waits", "far/waits"),
    ),
    "a model's spec": (
        lambda w: w.put(stored(model(modelParameterSize="7B"), 9)),
        services(CHANGE, "waits"),
    ),
    "a model's status": (lambda w: w.put({**stored(model(), 9), "status": {"a": 1}}), set()),
    "a model is gone": (lambda w: w.remove(MODEL), services(CHANGE, "waits")),
    "a model that nobody asks for": (lambda w: w.put(stored(model("x"), 9)), set()),
    "a class's spec": (
        lambda w: w.put(
            stored(obj("AcceleratorClass", "h100", {"discovery": {}, "capabilities": {}}), 9)
        ),
        THE_CLASS | services(CHANGE, "chat"),
    ),
    "a class's status": (
        lambda w: w.put({**stored(obj("AcceleratorClass", "h100", CLASSES), 9), "status": {}}),
        THE_CLASS,
    ),
    "a class is gone": (lambda w: w.remove(CLASS), THE_CLASS | services(CHANGE, "chat")),
    "an owned object": (
        lambda w: w.put_owned(deployment(6, by="kubectl", paused=True)),
        services(SOON, "chat"),
    ),
    "how an owned object fares": (
        lambda w: w.put_owned({**deployment(6), "status": {"readyReplicas": 1}}),
        services(SOME_TIME, "chat"),
    ),
    "an owned object, as it was but for what is written of it": (
        lambda w: w.put_owned(deployment(6)),
        set(),
    ),
    "a stale owned object": (lambda w: w.put_owned(deployment(4)), set()),
    "an owned object of another one": (
        lambda w: w.put_owned(deployment(6, "heir")),
        services(SOON, "chat", "heir"),
    ),
    "an owned object of nobody": (
        lambda w: w.put_owned(deployment(6, "nobody")),
        services(SOON, "chat"),
    ),
    "an owned object is gone": (
        lambda w: w.remove_owned(ObjectRef("Deployment", "demo", "chat-engine")),
        services(SOON, "chat"),
    ),
    "an unknown owned object is gone": (
        lambda w: w.remove_owned(ObjectRef("Deployment", "demo", "x")),
        set(),
    ),
    "a pod's phase": (lambda w: w.put_pod(pod("Running")), services(SOME_TIME, "chat")),
    "a pod of another service": (
        lambda w: w.put_pod(pod("Pending", **{"ome.io/inferenceservice": "heir"})),
        services(SOME_TIME, "chat", "heir"),
    ),
    "a pod, as it was": (lambda w: w.put_pod(pod("Pending")), set()),
    "a pod is gone": (
        lambda w: w.remove_pod(ObjectRef("Pod", "demo", "p")),
        services(SOME_TIME, "chat"),
    ),
    "a pod of no service": (
        lambda w: w.put_pod(pod("Running", "q", **{"ome.io/inferenceservice": "nobody"})),
        set(),
    ),
    "a node's labels": (lambda w: w.put_node(node(gpu="h100")), THE_CLASS),
    "a node's capacity": (lambda w: w.put_node(node("4")), THE_CLASS),
    "a node's heartbeat": (
        lambda w: w.put_node({**node(), "status": {"capacity": {"nvidia.com/gpu": "8"}}}),
        set(),
    ),
    "a node is gone": (lambda w: w.remove_node(ObjectRef("Node", "", "n1")), THE_CLASS),
    "an unknown node is gone": (lambda w: w.remove_node(ObjectRef("Node", "", "n2")), set()),
    "a revision, as it was": (lambda w: w.put_revision(REVISION), set()),
    "a revision's data": (
        lambda w: w.put_revision({**REVISION, "data": {"a": 2}}),
        services(CHANGE, "pins"),
    ),
    "a revision is gone": (
        lambda w: w.remove_revision(ObjectRef("ControllerRevision", "ome", "cr-rt-1")),
        services(CHANGE, "pins"),
    ),
    "a revision that nobody names": (
        lambda w: w.put_revision(stored(revision({"a": 3}, name="cr-rt-3"), 1)),
        set(),
    ),
    "an unknown revision is gone": (
        lambda w: w.remove_revision(ObjectRef("ControllerRevision", "ome", "x")),
        set(),
    ),
    "kinds that are served now": (lambda w: w.set_served(EVERY_API), ALL),
    "kinds as they were": (lambda w: w.set_served(frozenset()), set()),
    "a resync": (lambda w: w.resync(), ALL),
}


@pytest.mark.parametrize("name", DUE)
def test_due(name: str) -> None:
    change, due = DUE[name]
    case = Case()
    change(case.world)
    assert case.due == due


def test_unreadable_objects_are_as_if_not_there(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    case.world.put(stored(UNREADABLE, 9))
    assert case.world.service(CHAT) is None
    (problem,) = case.world.unread.problems(CHAT)
    assert caplog.messages == [f"unreadable object: {problem}"]
    assert "chat" in str(problem)
    # Told once, also when its status changes; and its events are followed.
    case.due.clear()
    case.world.put(stored(UNREADABLE, 9))
    assert case.due == set()
    case.world.wrote(stored(UNREADABLE, 10))
    case.world.put(stored(UNREADABLE, 10))
    assert case.due == set()
    case.world.put_owned({**deployment(6), "status": {"readyReplicas": 1}})
    assert case.due == services((CHANGE, 1.0), "chat")
    case.world.put(stored(UNREADABLE, 11))
    assert len(caplog.messages) == 1
    # It still is known to exist, and can be mended or go.
    assert CHAT in case.world.known("InferenceService")
    case.world.put(stored(service("chat"), 12))
    assert CHAT not in case.world.unread
    assert case.world.service(CHAT) is not None
    case.world.put(stored(UNREADABLE, 13))
    case.world.remove(CHAT)
    assert CHAT not in case.world.known("InferenceService")


def test_our_own_writes() -> None:
    case = Case()
    world = case.world

    def written(version: int, uid: str = "", **status: Any) -> None:
        world.wrote(
            {**stored(service("chat", model={"name": "m"}), version, uid), "status": status}
        )

    def status() -> Any:
        found = world.service(CHAT)
        assert found is not None
        return found.raw.get("status")

    written(9, pinnedRevisionName="cr-x")
    assert status() == {"pinnedRevisionName": "cr-x"}
    assert world.concerns.pinned_to("cr-x") == {CHAT}
    # The watch tells of it, too, and of nothing older.
    world.put(stored(service("chat"), 9))
    assert case.due == set()
    written(8)
    assert status() == {"pinnedRevisionName": "cr-x"}
    # The answer of a request about an object that is another one by now.
    world.put(stored(service("chat"), 2, "uid-2"))
    written(20, pinnedRevisionName="cr-y")
    assert status() is None
    world.remove(CHAT)
    written(30, "uid-2")
    assert world.service(CHAT) is None


def test_a_change_in_one_of_our_fields_alone_is_not_kept_with_managed_fields() -> None:
    case = Case()
    case.world.put(stored(service("chat"), 9, managedFields=[{"manager": "x"}]))
    found = case.world.service(CHAT)
    assert found is not None
    assert "managedFields" not in found.raw["metadata"]


def test_what_is_known() -> None:
    world = Case().world
    assert world.runtime(RUNTIME) is not None
    assert world.runtime(CHAT) is None
    assert world.service(RUNTIME) is None
    assert world.accelerator_class("h100") is not None
    assert world.accelerator_class("m") is None
    assert world.known("ServingRuntime") == [OWN]
    assert world.known_nodes() == [ObjectRef("Node", "", "n1")]
    assert world.known_revisions() == [ObjectRef("ControllerRevision", "ome", "cr-rt-1")]
    assert [each.name for each in world.revisions()] == ["cr-rt-1"]
    assert dict(world.counts()) == {
        "ClusterServingRuntime": 2,
        "ServingRuntime": 1,
        "BaseModel": 0,
        "ClusterBaseModel": 1,
        "AcceleratorClass": 1,
        "InferenceService": 5,
        "Owned": 1,
        "Pod": 1,
        "ControllerRevision": 1,
    }


def test_what_a_plan_asks_for_and_what_runs() -> None:
    world = Case().world
    chat = world.service(CHAT)
    assert chat is not None
    looked_up: set[ObjectRef] = set()
    plan(world.snapshot(NOW, chat, looked_up), chat, Engines())
    assert MODEL in looked_up
    assert {ref.kind for ref in looked_up} <= {"BaseModel", "ClusterBaseModel", "AcceleratorClass"}
    live = world.live(chat)
    assert list(live.workloads) == ["engine"]
    assert [each.name for each in live.pods] == ["p"]


def _deep(levels: int) -> Json:
    found: Json = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def test_what_is_nested_too_deeply_is_unreadable(caplog: pytest.LogCaptureFixture) -> None:
    """In a part that the schema leaves open; nothing of it may end the process."""
    case = Case()
    raw = stored(service("deep"), 9)
    raw["spec"]["engine"] = {"affinity": _deep(1200)}
    case.world.put(raw)
    deep = ObjectRef("InferenceService", "demo", "deep")
    assert [each.code for each in case.world.unread.problems(deep)] == ["TooDeep"]
    assert case.world.unread.service(deep) is not None
    child = stored(runtime(name="deep", kind="ServingRuntime"), 9)
    child["spec"]["engineConfig"] = {"runner": {"name": "r", "x": _deep(600), "$patch": "replace"}}
    case.world.put(child)
    assert ObjectRef("ServingRuntime", "demo", "deep") in case.world.unread
    assert len(caplog.messages) == 2


def test_an_answer_that_is_older_than_what_cannot_be_read() -> None:
    case = Case()
    written = stored(service("chat"), 5)
    case.world.put(stored(UNREADABLE, 6))
    case.world.wrote({**stored(UNREADABLE, 5), "spec": written["spec"]})
    assert not case.world.unread.put(CHAT, stored(UNREADABLE, 6), ())
    # Mended meanwhile, and the answer is of what couldn't be read.
    case.world.put(stored(service("chat"), 8))
    case.world.wrote(stored(UNREADABLE, 7))
    assert case.world.service(CHAT) is not None
