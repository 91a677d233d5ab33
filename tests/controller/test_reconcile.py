"""Reconciling a service: what is written, told and raised, when something comes in between."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ome.api import ApiObject, ObjectRef
from ome.controller.client import ApiError, Unreachable
from ome.controller.reconcile import Failed, ServiceReconciler, Waiting
from ome.controller.telemetry import Metrics
from ome.controller.workqueue import Urgency
from ome.controller.world import World
from ome.controller.writing import Writer
from ome.engines.engines import Engines
from ome.snapshot import EVERY_API
from ome.testing.builders import model, runtime, service
from tests.controller.conftest import WritingApi, in_loop

Json = dict[str, Any]
NOW = datetime(2026, 12, 2, 10, 0, 0, tzinfo=UTC)
CHAT = ObjectRef("InferenceService", "demo", "chat")
ENGINE = ObjectRef("Deployment", "demo", "chat-engine")
FINALIZER = "inferenceservice.finalizers"


class Case:
    """A controller's insides with these objects, and an API server that has them too."""

    def __init__(self, *objects: ApiObject) -> None:
        self.api = WritingApi()
        self.due: list[ObjectRef] = []
        self.world = World(ome_namespace="ome", plugins=[], due=self._note)
        self.world.owned = self.api.owned
        self.world.set_served(EVERY_API)
        api: Any = self.api
        self.reconciler = ServiceReconciler(
            api,
            self.world,
            Writer(api, self.world.owned, {}),
            Engines([]),
            metrics=Metrics(),
            clock=lambda: NOW,
        )
        for each in objects:
            self.put(each)

    def _note(self, ref: ObjectRef, urgency: Urgency, wait: float = 0.0, /) -> None:
        self.due.append(ref)

    def put(self, item: ApiObject, **metadata: Any) -> None:
        """Somebody writes an object, and the watch tells."""
        raw: Json = json.loads(json.dumps(item.raw))
        raw["metadata"] = {"uid": f"uid-{item.name}", **raw["metadata"], **metadata}
        if known := self.api.objects.get(item.ref):
            raw["status"] = known.get("status")
        self.world.put(json.loads(json.dumps(self.api.has(raw, watched=False))))

    async def reconcile(self) -> str:
        return await self.reconciler.reconcile(CHAT)

    @property
    def status(self) -> Json:
        found: Json = self.api.objects[CHAT].get("status") or {}
        return found

    def condition(self, kind: str) -> tuple[str, str, str] | None:
        for each in self.status.get("conditions", ()):
            if each["type"] == kind:
                return each["status"], each.get("reason", ""), each.get("message", "")
        return None

    def events(self) -> list[tuple[str, int]]:
        """Reasons and counts."""
        return [
            (raw["reason"], raw["count"])
            for ref, raw in self.api.objects.items()
            if ref.kind == "Event"
        ]

    def fail(self, verb: str, error: Exception, times: int = 1) -> None:
        """Let requests of a verb fail."""
        left = [error] * times

        async def before(found: str) -> None:
            if found == verb and left:
                raise left.pop()

        self.api.before = before


@in_loop
async def test_a_service_is_served_and_then_left_alone() -> None:
    case = Case(runtime(), service())
    assert await case.reconcile() == "ok"
    assert ENGINE in case.api.objects
    assert case.condition("WorkloadApplied") is None
    assert case.status["components"]
    case.api.calls.clear()
    assert await case.reconcile() == "ok"
    assert case.api.calls == []


@in_loop
async def test_a_refusal_has_a_status_at_once_and_no_objects() -> None:
    case = Case(service())
    assert await case.reconcile() == "held"
    ready = case.condition("RuntimeReady")
    assert ready is not None
    assert ready[:2] == ("False", "RuntimeNotFound")
    assert {call[0] for call in case.api.calls} == {"create", "patch"}
    assert {ref.kind for ref in case.api.objects} == {"InferenceService", "Event"}


@in_loop
async def test_events_are_sent_once_though_the_status_has_to_be_written_again() -> None:
    case = Case(service())
    case.fail("patch", ApiError(409, "Conflict", "the object has been modified"), times=2)
    for _ in range(2):
        with pytest.raises(ApiError, match="modified"):
            await case.reconcile()
    assert await case.reconcile() == "held"
    assert [count for _, count in case.events()] == [1] * len(case.events())
    assert case.events()


@in_loop
async def test_a_status_that_is_refused_is_told_by_an_event() -> None:
    case = Case(runtime(), service())
    case.fail("patch", ApiError(422, "Invalid", "too long"))
    with pytest.raises(ApiError, match="too long"):
        await case.reconcile()
    texts = [raw["message"] for ref, raw in case.api.objects.items() if ref.kind == "Event"]
    assert 'Failed to update status for InferenceService "chat": too long' in texts


@in_loop
async def test_a_write_that_fails_is_told_and_tried_again() -> None:
    case = Case(runtime(), service())
    case.fail("apply new", ApiError(422, "Invalid", "spec.x: no"))
    with pytest.raises(Failed, match=r"spec\.x: no"):
        await case.reconcile()
    assert case.condition("WorkloadApplied") == ("False", "Invalid", "spec.x: no")
    assert ("InternalError", 1) in case.events()
    assert await case.reconcile() == "ok"
    assert case.condition("WorkloadApplied") is None


@in_loop
async def test_what_a_namesake_has_left_is_told_and_waited_for() -> None:
    case = Case(runtime(), service(metadata={"uid": "uid-old"}))
    await case.reconcile()
    case.world.remove(CHAT)
    del case.api.objects[CHAT]
    case.put(service())
    for _ in range(2):
        with pytest.raises(Waiting, match="belongs to a deleted InferenceService of this name"):
            await case.reconcile()
    applied = case.condition("WorkloadApplied")
    assert applied is not None
    assert applied[:2] == ("False", "WaitingForDeletion")
    assert "InternalError" not in dict(case.events())
    for ref in [
        each for each in case.api.objects if each.kind not in ("InferenceService", "Event")
    ]:
        if case.api.owned.get(ref):
            case.api.loses(ref)
    assert await case.reconcile() == "ok"
    assert case.condition("WorkloadApplied") is None


FAULTS: dict[str, tuple[str, Exception]] = {
    "no answer to a write": ("apply new", Unreachable("cut")),
    "no answer to a status": ("patch", Unreachable("cut")),
    "a conflict": ("patch", ApiError(409, "Conflict", "modified")),
}


@pytest.mark.parametrize("name", FAULTS)
@in_loop
async def test_what_is_interrupted_is_finished_the_next_time(name: str) -> None:
    verb, error = FAULTS[name]
    case, whole = (Case(runtime(), service()) for _ in range(2))
    await whole.reconcile()
    case.fail(verb, error)
    with pytest.raises(type(error)):
        await case.reconcile()
    await case.reconcile()
    assert set(case.api.objects) == set(whole.api.objects)
    assert case.status == whole.status
    assert case.events() == whole.events()


@in_loop
async def test_an_event_that_could_not_be_sent_is_sent_later() -> None:
    case = Case(service())
    case.fail("create", Unreachable("cut"))
    with pytest.raises(Unreachable):
        await case.reconcile()
    assert (case.events(), case.status) == ([], {})
    await case.reconcile()
    assert case.events() == [("RuntimeNotFound", 1)]
    await case.reconcile()
    assert case.events() == [("RuntimeNotFound", 1)]


@in_loop
async def test_revisions_come_before_what_is_served_from_them() -> None:
    case = Case(runtime(), service(runtime={"name": "rt", "autoSync": False}))
    case.fail("create", ApiError(403, "Forbidden", "you may not create revisions"))
    with pytest.raises(Failed, match="you may not create revisions"):
        await case.reconcile()
    assert ENGINE not in case.api.objects
    assert case.condition("WorkloadApplied") == (
        "False",
        "Forbidden",
        "you may not create revisions",
    )
    assert await case.reconcile() == "ok"
    (revision,) = case.world.revisions()
    assert case.status["pinnedRevisionName"] == revision.name
    assert ENGINE in case.api.objects


@in_loop
async def test_a_service_that_is_gone() -> None:
    case = Case(runtime())
    assert (await case.reconcile(), case.api.calls) == ("gone", [])


BURN = "spec.engine.runner.$patch"


def _unreadable() -> ApiObject:
    """What the CustomResourceDefinition lets through."""
    item = service(decoder={})
    item.raw["spec"]["engine"] = {"runner": {"name": "r", "$patch": "burn"}}
    return item


ENDING: dict[str, tuple[Callable[[], ApiObject], list[str], list[str]]] = {
    "with upstream's finalizer": (service, [FINALIZER], ["patch"]),
    "with it and another": (service, ["x/y", FINALIZER], ["patch"]),
    "with another": (service, ["x/y"], []),
    "one that can't be read": (_unreadable, [FINALIZER], ["patch"]),
}


@pytest.mark.parametrize("name", ENDING)
@in_loop
async def test_a_service_that_ends(name: str) -> None:
    build, finalizers, calls = ENDING[name]
    case = Case(runtime())
    patches: list[Any] = []

    async def patch(*args: Any, **_: Any) -> Json:
        patches.append(args[3])
        return {}

    setter: Callable[..., Awaitable[Json]] = patch
    case.api.patch = setter  # type: ignore[method-assign]
    case.put(build(), finalizers=finalizers, deletionTimestamp="2026-12-02T09:00:00Z")
    assert await case.reconcile() == "gone"
    at = f"/metadata/finalizers/{finalizers.index(FINALIZER) if calls else 0}"
    assert patches == [
        [{"op": "test", "path": at, "value": FINALIZER}, {"op": "remove", "path": at}]
        for _ in calls
    ]


@in_loop
async def test_a_service_that_cannot_be_read_is_told_and_keeps_what_runs() -> None:
    case = Case(runtime(), service())
    assert await case.reconcile() == "ok"
    before = dict(case.api.objects)
    case.put(_unreadable())
    case.api.calls.clear()
    assert await case.reconcile() == "held"
    assert {call[0] for call in case.api.calls} == {"create", "patch"}
    (event,) = [ref for ref in case.api.objects if ref not in before]
    message = case.api.objects[event]["message"]
    assert message.startswith(f"the InferenceService can't be read: {BURN}: ")
    # The workload tells of itself, as in every refusal.
    assert case.condition("EngineReady") == (
        "Unknown",
        "Initializing",
        "engine component initializing",
    )
    case.api.calls.clear()
    assert await case.reconcile() == "held"
    assert case.api.calls == []
    # Mended, or gone.
    case.put(service())
    assert await case.reconcile() == "ok"
    case.put(_unreadable())
    case.world.remove(CHAT)
    assert await case.reconcile() == "gone"


@in_loop
async def test_a_new_service_that_cannot_be_read_has_a_status_at_once() -> None:
    case = Case(runtime(), _unreadable())
    assert await case.reconcile() == "held"
    found = case.condition("Ready")
    assert found is not None
    assert found[:2] == ("False", "DirectiveInvalid")
    assert found[2].startswith(f"the InferenceService can't be read: {BURN}: ")
    decoder = case.condition("DecoderReady")
    assert decoder == found
    assert ENGINE not in case.api.objects


@in_loop
async def test_of_what_is_junk_altogether_nothing_is_written() -> None:
    case = Case()
    bad = service()
    bad.raw["metadata"]["labels"] = 3
    case.put(bad)
    assert await case.reconcile() == "gone"
    assert case.api.calls == []


@in_loop
async def test_an_overlay_that_comes_later_is_noticed() -> None:
    served = service(model={"name": "m", "overlays": [{"name": "lora"}]})
    case = Case(runtime(), model(), served)
    assert await case.reconcile() == "ok"
    found = case.condition("OverlaysReady")
    assert found is not None
    assert found[:2] == ("False", "OverlaysSkipped")
    case.due.clear()
    case.put(model(name="lora"))
    assert CHAT in case.due
