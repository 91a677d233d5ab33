"""Garbage collection of revisions against an API server: marks, marks taken away, and deletions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ome.api import ObjectRef
from ome.controller.client import ApiError
from ome.controller.collecting import Collector
from ome.controller.resources import ref_of
from ome.controller.world import World
from ome.testing.builders import revision, service
from tests.controller.conftest import FakeApi, in_loop

Json = dict[str, Any]
NOW = datetime(2026, 12, 2, 10, 0, 0, tzinfo=UTC)
MARK = "ome.io/gc-eligible-since"
LONG_AGO, LATELY = "2026-11-30T10:00:00Z", "2026-12-02T09:59:00Z"


class Case:
    """OME's namespace with revisions of one runtime, the oldest first."""

    def __init__(self, *marks: str | None, keep: int = 1) -> None:
        self.api = FakeApi()
        self.world = World(ome_namespace="ome", plugins=[], due=lambda *_: None)
        for at, mark in enumerate(marks):
            raw = revision({"at": at}, name=f"cr-rt-0000000{at}")
            annotations = {
                **raw["metadata"].get("annotations", {}),
                **({MARK: mark} if mark else {}),
            }
            raw["metadata"] |= {
                "annotations": annotations,
                "creationTimestamp": f"2026-11-0{at + 1}T00:00:00Z",
                "uid": f"uid-{at}",
                "resourceVersion": "1",
            }
            self.api.objects[ref_of(raw)] = raw
            self.world.put_revision(raw)
        api: Any = self.api
        self.collector = Collector(
            api, self.world, lambda: NOW, keep=keep, grace=timedelta(hours=24)
        )

    def marks(self) -> dict[str, str | None]:
        """What there is, with the marks."""
        return {
            ref.name[-1]: raw["metadata"]["annotations"].get(MARK)
            for ref, raw in self.api.objects.items()
        }


@in_loop
async def test_marked_then_deleted() -> None:
    case = Case(None, LATELY, LONG_AGO, None)
    assert await case.collector.collect() == 2
    assert case.marks() == {"0": "2026-12-02T10:00:00Z", "1": LATELY, "3": None}
    assert {each.name[-1] for each in case.world.revisions()} == {"0", "1", "3"}
    # What is marked is known without the watch.
    case.api.calls.clear()
    assert (await case.collector.collect(), case.api.calls) == (0, [])


@in_loop
async def test_what_is_in_use_stays_and_loses_its_mark() -> None:
    case = Case(LONG_AGO, LONG_AGO, None)
    pinned = service(runtime={"name": "rt", "revision": "cr-rt-00000000"})
    pinned.raw["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    case.world.put(pinned.raw)
    assert await case.collector.collect() == 2
    assert case.marks() == {"0": None, "2": None}


@in_loop
async def test_what_comes_into_use_meanwhile_stays() -> None:
    case = Case(LONG_AGO, LONG_AGO, None)
    pinned = service(runtime={"name": "rt", "revision": "cr-rt-00000000"})
    pinned.raw["metadata"] |= {"uid": "u", "resourceVersion": "1"}

    async def pin(verb: str) -> None:
        case.world.put(pinned.raw)

    case.api.before = pin
    await case.collector.collect()
    assert case.marks() == {"0": LONG_AGO, "2": None}


@in_loop
async def test_what_a_service_needs_that_cannot_be_read_stays() -> None:
    case = Case(LONG_AGO, None)
    pinned = service(runtime={"name": "rt", "revision": "cr-rt-00000000"})
    raw = {**pinned.raw, "spec": {**pinned.raw["spec"], "engine": 1}}
    raw["metadata"] = {**raw["metadata"], "uid": "u", "resourceVersion": "1"}
    case.world.put(raw)
    assert list(case.world.unread) == [pinned.ref]
    await case.collector.collect()
    assert case.marks() == {"0": None, "1": None}
    # Until it is gone.
    case.world.remove(pinned.ref)
    await case.collector.collect()
    assert case.marks()["0"] == "2026-12-02T10:00:00Z"


@in_loop
async def test_one_that_is_gone_or_another_by_now() -> None:
    case = Case(LONG_AGO, LONG_AGO, None)
    del case.api.objects[ObjectRef("ControllerRevision", "ome", "cr-rt-00000001")]
    assert await case.collector.collect() == 1
    assert case.marks() == {"2": None}


@in_loop
async def test_a_refusal_is_raised() -> None:
    case = Case(LONG_AGO, None)

    async def refuse(_: str) -> None:
        raise ApiError(403, "Forbidden", "no")

    case.api.before = refuse
    with pytest.raises(ApiError, match="no"):
        await case.collector.collect()
    assert len(case.world.revisions()) == 2
