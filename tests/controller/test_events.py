"""Sending Kubernetes events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ome.controller import events
from ome.controller.client import ApiError, Unreachable
from ome.planning.plan import Event
from ome.testing.builders import runtime, service
from tests.controller.conftest import FakeApi, in_loop

NOW = datetime(2026, 12, 2, 10, 0, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 2, 10, 5, 0, tzinfo=UTC)
EVENT = Event("Warning", "InternalError", "it broke")
ABOUT = service(metadata={"uid": "u1", "resourceVersion": "7"})


@in_loop
async def test_a_new_event() -> None:
    server = FakeApi()
    api: Any = server
    await events.send(api, ABOUT, EVENT, NOW)
    ((ref, raw),) = server.objects.items()
    assert (ref.kind, ref.namespace) == ("Event", "demo")
    assert ref.name.startswith("chat.")
    assert (raw["type"], raw["reason"], raw["message"]) == ("Warning", "InternalError", "it broke")
    assert raw["involvedObject"] == {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "name": "chat",
        "namespace": "demo",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert raw["source"] == {"component": "v1beta1Controllers"}
    assert (raw["count"], raw["firstTimestamp"], raw["lastTimestamp"]) == (
        1,
        "2026-12-02T10:00:00Z",
        "2026-12-02T10:00:00Z",
    )


@in_loop
async def test_one_that_was_sent_before_is_counted() -> None:
    server = FakeApi()
    api: Any = server
    for at in (NOW, LATER, LATER):
        await events.send(api, ABOUT, EVENT, at)
    (raw,) = server.objects.values()
    assert (raw["count"], raw["firstTimestamp"], raw["lastTimestamp"]) == (
        3,
        "2026-12-02T10:00:00Z",
        "2026-12-02T10:05:00Z",
    )


@in_loop
async def test_an_object_made_anew_has_events_of_its_own() -> None:
    server = FakeApi()
    api: Any = server
    await events.send(api, ABOUT, EVENT, NOW)
    await events.send(api, service(metadata={"uid": "u2"}), EVENT, NOW)
    found = [(raw["involvedObject"]["uid"], raw["count"]) for raw in server.objects.values()]
    assert found == [("u1", 1), ("u2", 1)]


@in_loop
async def test_one_that_expires_while_it_is_counted() -> None:
    server = FakeApi()
    api: Any = server
    await events.send(api, ABOUT, EVENT, NOW)

    async def expire(verb: str) -> None:
        if verb == "get":
            server.objects.clear()

    server.before = expire
    await events.send(api, ABOUT, EVENT, LATER)
    assert server.objects == {}


@in_loop
async def test_about_what_has_no_namespace() -> None:
    server = FakeApi()
    api: Any = server
    await events.send(api, runtime(), EVENT, NOW)
    ((ref, raw),) = server.objects.items()
    assert ref.namespace == "default"
    assert "namespace" not in raw["involvedObject"]


@pytest.mark.parametrize("text", ["é" * 2000, "x" * 1025])
@in_loop
async def test_a_long_message_is_cut(text: str) -> None:
    server = FakeApi()
    api: Any = server
    await events.send(api, ABOUT, Event("Normal", "R", text), NOW)
    (raw,) = server.objects.values()
    assert raw["message"].endswith(text[0] + " ...")
    assert 1022 <= len(raw["message"].encode()) <= 1024


@pytest.mark.parametrize(
    "text, level",
    [("you may not", "WARNING"), ("not in namespace x because it is being terminated", "DEBUG")],
)
@in_loop
async def test_a_refusal_is_told_and_holds_nothing_up(
    caplog: pytest.LogCaptureFixture, text: str, level: str
) -> None:
    caplog.set_level("DEBUG", "ome.controller.event")
    server = FakeApi()
    api: Any = server

    async def refuse(_: str) -> None:
        raise ApiError(403, "Forbidden", text)

    server.before = refuse
    await events.send(api, ABOUT, EVENT, NOW)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (level, "could not send an event")
    assert record.__dict__["fields"] == {
        "object": "InferenceService/demo/chat",
        "reason": "InternalError",
        "error": text,
    }


@in_loop
async def test_no_answer_is_raised() -> None:
    server = FakeApi()
    api: Any = server

    async def cut(_: str) -> None:
        raise Unreachable("cut")

    server.before = cut
    with pytest.raises(Unreachable):
        await events.send(api, ABOUT, EVENT, NOW)
