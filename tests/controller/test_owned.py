"""What services own: whether a field manager owns what is desired, and what stays known of an object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ome.api import ObjectRef
from ome.controller.fields import covers, foreign_paths
from ome.controller.owned import APPLIED_HASH, OwnedObjects, desired_hash

Json = dict[str, Any]
OWNS: Json = {}
OWNER_UID = 'k:{"uid":"u1"}'
OWNER: Json = {
    "apiVersion": "ome.io/v1beta1",
    "kind": "InferenceService",
    "name": "chat",
    "uid": "u1",
    "controller": True,
}


def container(**fields: Any) -> Json:
    return {"spec": {"containers": [{"name": "main", **fields}]}}


def owns_container(**fields: Any) -> Json:
    item = {".": {}, "f:name": {}, **{f"f:{key}": value for key, value in fields.items()}}
    return {"f:spec": {"f:containers": {'k:{"name":"main"}': item}}}


TCP, UDP = '"protocol":"TCP"', '"protocol":"UDP"'


def port(protocol: str, *names: str) -> Json:
    fields: Json = {".": {}, **{f"f:{name}": {} for name in names}}
    return {f'k:{{"containerPort":80,{protocol}}}': fields}


# What our manager owns (`fieldsV1` as an API server writes it), what is desired, whether it covers it.
COVERED: dict[str, tuple[Json, Json, bool]] = {
    "nothing of nothing": ({}, {}, True),
    "a value": ({"f:spec": {"f:replicas": {}}}, {"spec": {"replicas": 1}}, True),
    "a value lost": (
        {"f:spec": {"f:paused": {}}},
        {"spec": {"paused": True, "replicas": 1}},
        False,
    ),
    "the last value lost": ({"f:metadata": {"f:labels": {"f:a": {}}}}, {"spec": {"x": 1}}, False),
    "more than is desired": ({"f:spec": {"f:a": {}, "f:b": {}}}, {"spec": {"a": 1}}, True),
    "kind and status are nobody's": (
        {"f:spec": {"f:a": {}}},
        {"apiVersion": "v1", "kind": "X", "status": {"b": 1}, "spec": {"a": 1}},
        True,
    ),
    "labels": (
        {"f:metadata": {"f:labels": {"f:a": {}, "f:b/c": {}}}},
        {"metadata": {"name": "x", "namespace": "y", "labels": {"a": "1", "b/c": "2"}}},
        True,
    ),
    "a label lost": (
        {"f:metadata": {"f:labels": {"f:a": {}}}},
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
        False,
    ),
    "all labels lost": ({"f:spec": {"f:a": {}}}, {"metadata": {"labels": {"a": "1"}}}, False),
    "no labels": ({"f:spec": {"f:a": {}}}, {"metadata": {"labels": {}}, "spec": {"a": 1}}, True),
    "an owner": (
        {"f:metadata": {"f:ownerReferences": {OWNER_UID: {}}}},
        {"metadata": {"ownerReferences": [OWNER]}},
        True,
    ),
    "another owner": (
        {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u2"}': {}}}},
        {"metadata": {"ownerReferences": [OWNER]}},
        False,
    ),
    "an item by its key": (owns_container(image=OWNS), container(image="i"), True),
    "a field of an item lost": (owns_container(), container(image="i"), False),
    "an item lost": (
        {"f:spec": {"f:containers": {'k:{"name":"other"}': OWNS}}},
        container(image="i"),
        False,
    ),
    "only the item, not its fields": (
        {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}}}}},
        container(image="i"),
        False,
    ),
    "one of two items": (
        owns_container(),
        {"spec": {"containers": [{"name": "main"}, {"name": "side"}]}},
        False,
    ),
    "a key that the server fills in": (
        owns_container(ports=port(TCP, "containerPort")),
        container(ports=[{"containerPort": 80}]),
        True,
    ),
    "a filled key isn't another one's": (
        owns_container(ports=port(UDP, "containerPort", "protocol")),
        container(ports=[{"containerPort": 80}]),
        False,
    ),
    "one port by two protocols": (
        owns_container(ports=port(TCP, "containerPort") | port(UDP, "containerPort", "protocol")),
        container(ports=[{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80}]),
        True,
    ),
    "a name of a port lost": (
        owns_container(ports=port(TCP, "containerPort")),
        container(ports=[{"containerPort": 80, "name": "http"}]),
        False,
    ),
    "a list owned whole": (owns_container(args=OWNS), container(args=["a", "b"]), True),
    "a map owned whole": (owns_container(emptyDir=OWNS), container(emptyDir={}), True),
    "a map of values owned whole": (
        {"f:spec": {"f:selector": OWNS}},
        {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        True,
    ),
    "a set": (
        {"f:metadata": {"f:finalizers": OWNS}, "f:spec": {"f:set": {'v:"a"': {}, "v:1": {}}}},
        {"spec": {"set": ["a", 1]}},
        True,
    ),
    "a value of a set lost": (
        {"f:spec": {"f:set": {'v:"a"': {}}}},
        {"spec": {"set": ["a", "b"]}},
        False,
    ),
    "a value of a set as Go writes it": (
        {"f:spec": {"f:set": {'v:"é<"': {}}}},
        {"spec": {"set": ["é<"]}},
        True,
    ),
    "nothing where nothing is": (
        {"f:spec": {"f:a": {}}},
        {"spec": {"a": 1, "b": None, "c": {}, "d": []}},
        True,
    ),
    "false is something": ({"f:spec": {"f:a": {}}}, {"spec": {"a": 1, "b": False}}, False),
}


@pytest.mark.parametrize("name", COVERED)
def test_covers(name: str) -> None:
    fields, desired, covered = COVERED[name]
    assert covers(fields, desired) is covered


def _managed(*entries: tuple[str, str, Json]) -> Json:
    """Metadata with what managers own of a spec."""
    names = ("manager", "operation", "fieldsV1")
    found = [dict(zip(names, (*each[:2], {"f:spec": each[2]}), strict=True)) for each in entries]
    return {"managedFields": found}


def _pod(**fields: Any) -> Json:
    return {"f:template": {"f:spec": fields}}


def _item(key: Any, **fields: Any) -> Json:
    return {f"k:{json.dumps(key)}": {".": {}, **{f"f:{k}": v for k, v in fields.items()}}}


_OURS: Json = _pod(**{"f:containers": _item({"name": "main"}, name={}, image={})})
# What others own of a pod, and the paths of what OME doesn't.
FOREIGN: dict[str, tuple[list[tuple[str, str, Json]], tuple[str, ...]]] = {
    "nothing": ([], ()),
    "what OME owns, too": ([("kubectl", "Update", _OURS)], ()),
    "a container": (
        [("edit", "Update", _pod(**{"f:containers": _item({"name": "mine"}, image={})}))],
        ("containers[mine]",),
    ),
    "fields of ours": (
        [
            (
                "edit",
                "Update",
                _pod(
                    **{
                        "f:containers": _item(
                            {"name": "main"}, args={}, ports=_item({"containerPort": 1})
                        ),
                        "f:hostNetwork": {},
                    }
                ),
            )
        ],
        ("containers[main].args", "containers[main].ports", "hostNetwork"),
    ),
    "by two": (
        [
            ("a", "Apply", _pod(**{"f:volumes": _item({"name": "x"})})),
            ("b", "Update", _pod(**{"f:volumes": _item({"name": "x"}), "f:y": {"v:1": {}}})),
        ],
        ("volumes", "y"),
    ),
    "a count, and what is no pod": ([("scale", "Update", {"f:replicas": {}, "f:x": {}})], ()),
    "what mending left": ([("ome-controller-mending", "Update", _pod(**{"f:x": {}}))], ()),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_paths(name: str) -> None:
    others, paths = FOREIGN[name]
    metadata = _managed(("ome-controller", "Apply", _OURS), *others)
    assert foreign_paths(metadata, "template", "spec") == paths


def test_foreign_paths_of_what_ome_has_not_applied() -> None:
    metadata = _managed(("edit", "Update", {"f:x": {"v:1": {}}, "f:replicas": {}}))
    assert foreign_paths(metadata) == ("x",)


DESIRED: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "chat-engine",
        "namespace": "demo",
        "labels": {"ome.io/inferenceservice": "chat", "component": "engine"},
        "ownerReferences": [OWNER],
    },
    "spec": {"paused": False},
}
REF = ObjectRef("Deployment", "demo", "chat-engine")
WANTED = desired_hash(DESIRED)
ALL: Json = {
    "f:metadata": {
        "f:labels": {"f:ome.io/inferenceservice": {}, "f:component": {}},
        "f:annotations": {f"f:{APPLIED_HASH}": {}},
        "f:ownerReferences": {OWNER_UID: {}},
    },
    "f:spec": {"f:paused": {}},
}
LOST: Json = {**ALL, "f:spec": {"f:minReadySeconds": {}}}


def live(
    version: int, fields: Json = ALL, *, uid: str = "d1", applied: str = WANTED, **spec: Any
) -> Json:
    """The Deployment as the API server has it."""
    metadata = {
        **DESIRED["metadata"],
        "uid": uid,
        "resourceVersion": str(version),
        "annotations": {APPLIED_HASH: applied},
        "managedFields": [
            {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:x": {}}}},
            {"manager": "ome-controller", "operation": "Update", "fieldsV1": {}},
            {
                "manager": "ome-controller",
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {},
            },
            {"manager": "ome-controller", "operation": "Apply", "fieldsV1": fields},
        ],
    }
    return {**DESIRED, "metadata": metadata, "spec": {**DESIRED["spec"], **spec}}


def known(*states: Json) -> OwnedObjects:
    store = OwnedObjects()
    for raw in states:
        store.put(raw)
    return store


def holds(store: OwnedObjects, wanted: str = WANTED) -> bool:
    found = store.get(REF)
    assert found is not None
    return found.is_as(DESIRED, wanted)


def test_what_is_read() -> None:
    store = known(live(5, replicas=3))
    found = store.get(REF)
    assert found is not None
    assert (found.ref, found.uid, found.version) == (REF, "d1", 5)
    assert (found.owner, found.service, found.component) == ("u1", "chat", "engine")
    assert (found.applied, found.replicas, found.owns_replicas) == (WANTED, 3, False)
    assert found.workload is not None
    assert found.scaler is None
    assert (len(store), store.known("Deployment"), store.known("Service")) == (1, [REF], [])
    owner = known(live(5, {"f:spec": {"f:replicas": {}}})).get(REF)
    assert owner is not None
    assert owner.owns_replicas


def test_what_nobody_controls() -> None:
    raw = live(5)
    raw["metadata"]["ownerReferences"] = [
        {**OWNER, "controller": False},
        {**OWNER, "kind": "Deployment"},
    ]
    del raw["metadata"]["annotations"], raw["metadata"]["managedFields"]
    store = known(raw)
    found = store.get(REF)
    assert found is not None
    # Its label tells of a service; that doesn't control it.
    assert (found.owner, found.service, found.applied, found.fields) == ("", "chat", "", {})
    assert list(store.of("u1")) == []
    assert not holds(store)


# The states that are taken in, one after the other, into a fresh store: what a restart sees, and later.
STATES: dict[str, tuple[list[Json], bool]] = {
    "as applied": ([live(5)], True),
    "another hash": ([live(5, applied="0" * 16)], False),
    "a field lost": ([live(5, LOST)], False),
    "a field lost later": ([live(5), live(6, LOST)], False),
    "a field got back": ([live(5), live(6, LOST), live(7)], True),
    "a stale state without the field": ([live(7), live(6, LOST)], True),
    "the same state again": ([live(7), live(7, LOST)], True),
    "somebody else's field": ([live(5), live(6, replicas=9)], True),
    "another object of the name": ([live(9), live(4, LOST, uid="d2")], False),
}


@pytest.mark.parametrize("asked", [False, True], ids=["asked at the end", "asked each time"])
@pytest.mark.parametrize("name", STATES)
def test_whether_it_holds(name: str, asked: bool) -> None:
    states, held = STATES[name]
    store = OwnedObjects()
    for raw in states:
        store.put(raw)
        if asked:
            holds(store)
    assert holds(store) is held


def test_a_stale_state_is_told() -> None:
    store = known(live(5))
    assert store.put(live(5)) is None
    assert store.put(live(4)) is None
    assert store.put(live(6)) is store.get(REF)


def test_an_answer_does_not_vouch_for_a_later_state() -> None:
    """Somebody took a field of ours in the moment after our write, and the watch told first."""
    store = known(live(7, LOST))
    store.applied(live(6), WANTED)
    assert not holds(store)


def test_what_was_applied_holds_whatever_the_fields_say() -> None:
    """The API server may own fields in another form than we know: its answer to an apply is enough."""
    store = OwnedObjects()
    store.applied(live(5, LOST), WANTED)
    assert holds(store)
    # A foreign field changes nothing, a field of ours does.
    store.put(live(6, LOST, replicas=4))
    assert holds(store)
    store.put(live(7, {**ALL, "f:spec": {}}))
    assert holds(store)
    store.put(live(8, {"f:metadata": ALL["f:metadata"]}))
    assert not holds(store)
    store.applied(live(9, LOST), WANTED)
    assert holds(store)


def test_the_answer_to_an_apply_may_come_after_its_event() -> None:
    store = known(live(5, LOST, applied="0" * 16))
    store.put(live(6, LOST))
    assert not holds(store)
    store.applied(live(6, LOST), WANTED)
    assert holds(store)


def test_an_answer_that_is_older_than_what_is_known() -> None:
    store = known(live(7, LOST, applied="0" * 16))
    store.applied(live(6), WANTED)
    assert not holds(store)


def test_what_another_leader_applied_holds() -> None:
    """An apply that isn't ours, or whose answer was lost, is known by its fields."""
    store = known(live(5))
    assert holds(store)
    other: Json = {**DESIRED, "spec": {"paused": True}}
    wanted = desired_hash(other)
    store.put(live(6, applied=wanted, paused=True))
    found = store.get(REF)
    assert found is not None
    assert found.is_as(other, wanted)
    assert not holds(store)


def test_owners() -> None:
    store = known(live(5))
    service: Json = {
        "kind": "Service",
        "metadata": {**live(6)["metadata"], "name": "a", "uid": "s"},
    }
    store.put(service)
    assert [each.ref for each in store.of("u1")] == [REF, ObjectRef("Service", "demo", "a")]
    moved = live(7)
    moved["metadata"]["ownerReferences"] = [{**OWNER, "uid": "u2"}]
    store.put(moved)
    assert [each.ref.kind for each in store.of("u1")] == ["Service"]
    assert [each.ref.kind for each in store.of("u2")] == ["Deployment"]


KUBECTL: Json = {
    "manager": "kubectl",
    "operation": "Update",
    "time": "2026-12-02T10:00:00Z",
    "fieldsV1": {"f:spec": {"f:template": {}}},
}
SCALES: Json = {
    "manager": "kubectl",
    "operation": "Update",
    "subresource": "scale",
    "fieldsV1": {"f:spec": {"f:replicas": {}}},
}
STATUS: Json = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "subresource": "status",
    "time": "2026-12-02T11:00:00Z",
    "fieldsV1": {"f:metadata": {"f:annotations": {}}, "f:status": {}},
}
LABELS: Json = {**KUBECTL, "fieldsV1": {"f:metadata": {"f:labels": {}}}}
# What managers have to say of a Deployment beside us, and whether that is somebody's doing.
DOINGS: dict[str, tuple[Json, bool]] = {
    "another value": ({**KUBECTL, "time": "2026-12-02T10:00:01Z"}, True),
    "another field": ({**KUBECTL, "fieldsV1": {"f:spec": {"f:paused": {}}}}, True),
    "another manager": ({**KUBECTL, "manager": "edit"}, True),
    "a count": (SCALES, False),
    "a status": (STATUS, False),
    "a label": (LABELS, False),
}


def _state(*entries: Json, **changes: Any) -> str:
    raw = live(5, **changes)
    ours = [each for each in raw["metadata"]["managedFields"] if each["manager"] != "kubectl"]
    raw["metadata"]["managedFields"] = [*ours, *entries]
    found = known(raw).get(REF)
    assert found is not None
    return found.state


@pytest.mark.parametrize("name", DOINGS)
def test_what_others_do_to_a_workload(name: str) -> None:
    entry, counts = DOINGS[name]
    assert (_state(KUBECTL, entry) != _state(KUBECTL)) == counts
    assert (_state(entry) != _state()) == counts
    # Whatever we write, and whatever an API server fills in, isn't theirs.
    assert _state(entry, fields=LOST, applied="0" * 16, paused=True) == _state(entry)


def test_an_answer_that_comes_after_the_end() -> None:
    """An object that was deleted, as its watch has told, isn't there again by an older answer."""
    seen = {"Deployment": 0}
    store = OwnedObjects(lambda kind: seen[kind])
    store.applied(live(5), WANTED)
    assert store.get(REF) is not None
    store.remove(REF)
    seen["Deployment"] = 7
    store.applied(live(6), WANTED)
    assert store.get(REF) is None
    store.applied(live(8), WANTED)
    assert holds(store)


def test_removed() -> None:
    store = known(live(5))
    assert store.remove(REF, "another") is None
    assert len(store) == 1
    removed = store.remove(REF, "d1")
    assert removed is not None
    assert removed.uid == "d1"
    assert (len(store), list(store.of("u1")), store.get(REF)) == (0, [], None)
    assert store.remove(REF) is None
    # After that an old version is news.
    assert store.put(live(2)) is not None


def test_the_hash() -> None:
    assert desired_hash({"b": 1, "a": {"d": "é", "c": []}}) == desired_hash(
        json.loads('{"a":{"c":[],"d":"é"},"b":1}')
    )
    assert desired_hash({"a": [1, 2]}) != desired_hash({"a": [2, 1]})
    assert len(WANTED) == 16
