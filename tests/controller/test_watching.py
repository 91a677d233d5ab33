"""A watcher against an API server: every way in which a list or a watch ends, and what follows."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from ome.api import ObjectRef
from ome.controller.client import Api
from ome.controller.resources import BY_KIND, ref_of
from ome.controller.telemetry import Metrics
from ome.controller.watching import Backoff, Selection, State, Watcher
from tests.controller.conftest import (
    Asked,
    Endless,
    Reply,
    Server,
    Stream,
    api_server,
    event,
    in_loop,
    item,
    page,
    problem,
    until,
)

Json = dict[str, Any]
DEPLOYMENTS = BY_KIND["Deployment"]
PATH = "/apis/apps/v1/deployments"
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


class Store:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.objects: dict[ObjectRef, Json] = {}
        self.log: list[str] = []

    def put(self, raw: Json) -> None:
        self.log.append(f"put {raw['metadata']['name']}")
        self.objects[ref_of(raw)] = raw

    def remove(self, ref: ObjectRef) -> None:
        self.log.append(f"remove {ref.name}")
        self.objects.pop(ref, None)

    def known(self) -> list[ObjectRef]:
        return list(self.objects)

    def names(self) -> list[str]:
        return sorted(ref.name for ref in self.objects)


class Doubling(Backoff):
    """1, 2, 4 … without chance."""

    def __init__(self) -> None:
        super().__init__(1.0, 64.0)

    def next(self) -> float:
        super().next()
        return 2.0 ** (self.failures - 1)


class Patient(Watcher):
    """A watcher that writes down its waits instead of waiting."""

    pauses: list[float]

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


@dataclass
class Case:
    server: Server
    store: Store
    watcher: Patient
    metrics: Metrics
    states: list[tuple[State, str]] = field(default_factory=list)
    # Whether the watcher was ready, at each request.
    ready: list[bool] = field(default_factory=list)

    def lists(self) -> list[Asked]:
        return [each for each in self.server.requests if not each.is_watch]

    def watches(self) -> list[str]:
        """Where each watch began."""
        return [each.query["resourceVersion"] for each in self.server.requests if each.is_watch]

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def watching(
    *answers: Reply | Stream,
    selection: Selection | None = None,
    idle: float = 60.0,
    seconds: Iterable[float] | None = None,
    can_be_missing: bool = True,
) -> AsyncIterator[Case]:
    """A watcher that runs against these answers."""
    async with api_server(*answers) as (server, client):
        store, metrics = Store(), Metrics()
        states: list[tuple[State, str]] = []
        watcher = Patient(
            Api(client),
            DEPLOYMENTS,
            store,
            selection=selection or Selection(),
            metrics=metrics,
            changed=lambda: states.append((watcher.state, watcher.problem)),
            idle=idle,
            backoff=Doubling(),
            can_be_missing=lambda: can_be_missing,
            clock=time.monotonic if seconds is None else partial(next, iter(seconds)),
        )
        watcher.pauses = []
        case = Case(server, store, watcher, metrics, states)
        server.saw = lambda: case.ready.append(watcher.is_ready)
        task = asyncio.create_task(watcher.run())
        try:
            yield case
            assert not task.done() or task.exception() is None
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@in_loop
async def test_lists_in_pages_and_watches_from_there() -> None:
    selection = Selection("demo", labels="a=b", fields="metadata.name=x")
    first = page(item("a", 3), item("b", 4), version=10, more="token&1")
    async with watching(
        first, page(item("c", 5), version=10), Endless, selection=selection
    ) as case:
        await case.server.asked(3)
        list1, list2, watch = case.server.requests
        path = "/apis/apps/v1/namespaces/demo/deployments"
        assert [each.path for each in case.server.requests] == [path] * 3
        assert [each.method for each in case.server.requests] == ["GET"] * 3
        chosen = {"labelSelector": "a=b", "fieldSelector": "metadata.name=x"}
        assert list1.query == {**chosen, "limit": "100"}
        assert list2.query == {**chosen, "limit": "100", "continue": "token&1"}
        seconds = int(watch.query["timeoutSeconds"])
        assert 300 <= seconds <= 600
        assert watch.query == {
            **chosen,
            "watch": "true",
            "resourceVersion": "10",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        assert {each.headers["Accept"] for each in case.server.requests} == {"application/json"}
        assert case.store.log == ["put a", "put b", "put c"]
        # A list's items don't say what they are; the watcher does.
        kinds = {(each["kind"], each["apiVersion"]) for each in case.store.objects.values()}
        assert kinds == {("Deployment", "apps/v1")}
        assert case.watcher.is_ready
        assert case.states == [(State.SYNCED, "")]
        assert case.watcher.pauses == []


@in_loop
async def test_only_metadata() -> None:
    async with watching(page(version=1), selection=Selection(metadata_only=True)) as case:
        await case.server.asked(2)
        end = "v=v1;g=meta.k8s.io"
        assert [each.headers["Accept"] for each in case.server.requests] == [
            f"application/json;as=PartialObjectMetadataList;{end}",
            f"application/json;as=PartialObjectMetadata;{end}",
        ]


@in_loop
async def test_takes_in_what_a_watch_tells() -> None:
    lines = [
        event("ADDED", item("b", 11)),
        event("MODIFIED", item("a", 12, spec={"replicas": 2})),
        event("DELETED", item("b", 13)),
        b"\n",
        event("BOOKMARK", {"metadata": {"resourceVersion": "50"}}),
    ]
    async with watching(page(item("a", 3), version=10), Stream(b"".join(lines)), Endless) as case:
        await case.server.asked(3)
        assert case.store.log == ["put a", "put b", "put a", "remove b"]
        (raw,) = case.store.objects.values()
        assert (raw["kind"], raw["spec"]) == ("Deployment", {"replicas": 2})
        assert case.watches() == ["10", "50"]
        assert len(case.lists()) == 1
        assert case.watcher.pauses == []
        assert case.metric("ome_watch_events_total", resource="deployments") == 3
        assert case.metric("ome_watch_lists_total", resource="deployments") == 1


WHOLE = event("ADDED", item("b", 12))
GARBAGE = {
    "html": HTML + b"\n",
    "not a line of JSON": b'{"type":"ADDED","object":{"metad\n',
    "no object": b'{"type":"ADDED"}\n',
    "no type": b'{"object":{}}\n',
    "a list": b"[1]\n",
    "no metadata": b'{"type":"ADDED","object":{}}\n',
    "no version": b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n',
    "no name": b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"13"}}}\n',
    "a bookmark without a version": b'{"type":"BOOKMARK","object":{"metadata":{}}}\n',
}
CUT_SHORT = event("ADDED", item("c", 13))[:-20]

# The second watch, the waits after it, and the reason that is counted.
INTERRUPTIONS: dict[str, tuple[Reply | Stream, list[float], str]] = {
    "ends": (Stream(event("BOOKMARK", item("", 12))), [], ""),
    "ends at once": (Stream(), [1.0], "unreachable"),
    "ends within a line": (Stream(CUT_SHORT), [1.0], "unreachable"),
    "is cut within a line": (Stream(CUT_SHORT, "cut"), [1.0], "unreachable"),
    "is cut after a line": (Stream(event("BOOKMARK", item("", 12)), "cut"), [1.0], "unreachable"),
    "is 429": (problem(429, "TooManyRequests", "later", Retry_After="7"), [7.0], "TooManyRequests"),
    "is 429 for a year": (
        problem(429, "TooManyRequests", "later", Retry_After="31536000"),
        [30.0],
        "TooManyRequests",
    ),
    "is 500": (problem(500, "InternalError", "etcd is away"), [1.0], "InternalError"),
    "is 502 in HTML": (Reply(HTML, 502), [1.0], "BadGateway"),
    "is 200 in HTML": (Reply(HTML), [1.0], "unreachable"),
    "tells an error": (
        Stream(event("ERROR", {"kind": "Status", "code": 500, "reason": "Oops", "message": "m"})),
        [1.0],
        "Oops",
    ),
    "tells an error of no kind": (Stream(event("ERROR", {})), [1.0], "500"),
    **{
        f"tells {name}": (Stream(line, "hang"), [1.0], "unreachable")
        for name, line in GARBAGE.items()
    },
}


@pytest.mark.parametrize("name", INTERRUPTIONS)
@in_loop
async def test_an_interrupted_watch_goes_on_from_where_it_was(name: str) -> None:
    answer, pauses, reason = INTERRUPTIONS[name]
    async with watching(page(item("a", 3), version=10), Stream(WHOLE), answer, Endless) as case:
        await case.server.asked(4)
        assert case.watches() == ["10", "12", "12"]
        assert len(case.lists()) == 1
        assert case.store.log == ["put a", "put b"]
        assert case.watcher.pauses == pauses
        assert case.watcher.is_ready
        assert case.states == [(State.SYNCED, "")]
        if reason:
            labels = {"resource": "deployments", "reason": reason}
            assert case.metric("ome_watch_errors_total", **labels) == 1


@in_loop
async def test_silence_is_a_lost_connection() -> None:
    async with watching(page(version=10), Stream(WHOLE, "hang"), Endless, idle=0.05) as case:
        await case.server.asked(3)
        assert case.watches()[:2] == ["10", "12"]
        assert case.watcher.pauses[0] == 1.0
        assert len(case.lists()) == 1


@in_loop
async def test_waits_grow_until_a_watch_tells_something() -> None:
    down = problem(500, "InternalError", "down")
    answers = [page(version=10), down, down, down, Stream(WHOLE), down, Endless]
    async with watching(*answers) as case:
        await case.server.asked(7)
        assert case.watcher.pauses == [1.0, 2.0, 4.0, 1.0]


GONE = {
    "by its status": problem(410, "Expired", "too old resource version"),
    "by an event": Stream(
        event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    ),
}


@pytest.mark.parametrize("how", GONE)
@in_loop
async def test_a_gap_is_bridged_by_a_list(how: str) -> None:
    before = page(item("a", 3), item("b", 4), version=10)
    after = page(item("b", 4), item("c", 20), version=30)
    async with watching(before, GONE[how], after, Endless) as case:
        await case.server.asked(4)
        assert case.store.log == ["put a", "put b", "put b", "put c", "remove a"]
        assert case.watches() == ["10", "30"]
        assert "resourceVersion" not in case.lists()[1].query
        assert case.watcher.pauses == [1.0]
        assert case.states == [(State.SYNCED, "")]


@in_loop
async def test_gaps_without_end_are_bridged_ever_more_slowly() -> None:
    gone = GONE["by its status"]
    async with watching(
        page(version=1), gone, page(version=2), gone, page(version=3), gone
    ) as case:
        await case.server.asked(7)
        assert case.watcher.pauses == [1.0, 2.0, 4.0]


@in_loop
async def test_a_list_whose_token_expires_begins_anew() -> None:
    expired = problem(410, "Expired", "The provided continue parameter is too old")
    async with watching(
        page(item("a", 3), version=10, more="c1"),
        expired,
        page(item("b", 4), version=20, more="c2"),
        page(item("c", 5), version=20),
        Endless,
    ) as case:
        await case.server.asked(5)
        assert case.ready == [False, False, False, False, True]
        tokens = [each.query.get("continue") for each in case.lists()]
        assert tokens == [None, "c1", None, "c2"]
        # What the first page had and the new list hasn't is gone.
        assert case.store.names() == ["b", "c"]
        assert case.watches() == ["20"]


NO_LISTS = {
    "is 500": (problem(500, "InternalError", "etcd is away"), "etcd is away"),
    "is 502 in HTML": (Reply(HTML, 502), HTML.decode()),
    "is 503 with nothing": (Reply(b"", 503), "Service Unavailable"),
    "is HTML": (Reply(HTML), f"an answer that is no JSON object: {HTML.decode()}"),
    "is nothing": (Reply(b""), "an answer that is no JSON object: "),
    "is a list of JSON": (Reply([]), "an answer that is no JSON object: []"),
    "has no metadata": (Reply({"items": []}), "an answer without metadata.resourceVersion"),
    "has no version": (Reply({"metadata": {}}), "an answer without metadata.resourceVersion"),
    "has odd items": (
        Reply({"metadata": {"resourceVersion": "1"}, "items": [{}]}),
        "an answer without metadata.name",
    ),
}


@pytest.mark.parametrize("name", NO_LISTS)
@in_loop
async def test_a_list_that_fails_is_told_and_tried_again(name: str) -> None:
    answer, message = NO_LISTS[name]
    async with watching(answer, page(item("a", 3), version=10), Endless) as case:
        await case.server.asked(3)
        assert case.states == [(State.STARTING, message), (State.SYNCED, "")]
        assert case.watcher.pauses == [1.0]
        assert case.store.names() == ["a"]


@in_loop
async def test_a_list_that_goes_on_failing_is_no_hiccup() -> None:
    down = problem(500, "InternalError", "down")
    async with watching(*[down] * 8, page(version=1), Endless) as case:
        await case.server.asked(10)
        assert case.states == [
            (State.STARTING, "down"),
            (State.FAILING, "down"),
            (State.SYNCED, ""),
        ]
        assert case.watcher.pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]


def test_a_watch_that_is_cut_off_for_long_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """And its end, too; one or two failures are nothing to tell of."""
    cut_off = "cut off, older states are known: "

    @in_loop
    async def run() -> None:
        down, end = problem(503, "ServiceUnavailable", "down"), Stream()
        told = Stream(event("MODIFIED", item("a", 5)))
        replies = [page(version=1), down, end, told, end, down, down, down, told, Endless]
        async with watching(*replies) as case:
            await case.server.asked(len(replies))
            assert case.states == [
                (State.SYNCED, ""),
                (State.SYNCED, f"{cut_off}down"),
                (State.SYNCED, ""),
            ]

    with caplog.at_level("INFO", "ome.controller.watch"):
        run()
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("ERROR", f"cannot watch deployments.apps: {cut_off}down"),
        ("INFO", "watching deployments.apps again"),
    ]


@in_loop
async def test_a_watch_that_held_for_a_while_was_good_though_it_told_nothing() -> None:
    """As where a proxy ends what is idle for a while."""
    end = Stream()
    async with watching(
        page(version=1), end, end, end, Endless, seconds=[0, 5, 0, 15, 0, 5, 0, 0]
    ) as case:
        await case.server.asked(5)
        assert case.watcher.pauses == [1.0, 1.0]


@in_loop
async def test_a_404_of_what_must_be_there_is_a_cut() -> None:
    missing = problem(404, "NotFound", "no such page")
    async with watching(
        page(item("a", 3), version=10), missing, Endless, can_be_missing=False
    ) as case:
        await case.server.asked(3)
        assert (case.store.names(), case.watcher.is_ready) == (["a"], True)
        assert case.watches() == ["10", "10"]


@in_loop
async def test_what_is_not_served_does_not_exist() -> None:
    missing = problem(404, "NotFound", "the server could not find the requested resource")
    async with watching(
        page(item("a", 3), version=10), missing, missing, page(item("b", 20), version=21), Endless
    ) as case:
        await case.server.asked(5)
        assert case.ready == [False, True, False, False, True]
        assert case.store.log == ["put a", "remove a", "put b"]
        assert case.states == [(State.SYNCED, ""), (State.NOT_SERVED, ""), (State.SYNCED, "")]
        assert case.watches() == ["10", "21"]
        assert case.watcher.pauses == [1.0, 2.0]


@pytest.mark.parametrize("status, reason", [(403, "Forbidden"), (401, "Unauthorized")])
@in_loop
async def test_what_may_not_be_read_is_told_and_tried_again(status: int, reason: str) -> None:
    refused = problem(status, reason, 'deployments.apps is forbidden: User "u" cannot list')
    async with watching(refused, page(item("a", 3), version=10), refused, Endless) as case:
        await case.server.asked(4)
        forbidden = (State.FORBIDDEN, 'deployments.apps is forbidden: User "u" cannot list')
        await until(lambda: case.watcher.state is State.SYNCED)
        # What was seen while it could be stays known while it can't.
        assert case.states == [forbidden, (State.SYNCED, ""), forbidden, (State.SYNCED, "")]
        assert case.store.log == ["put a"]
        assert case.watches() == ["10", "10"]


@in_loop
async def test_lines_of_any_length() -> None:
    big = item("big", 12, data="x" * 3_000_000)
    lines = event("ADDED", big) + event("ADDED", item("small", 13))
    async with watching(page(version=10), Stream(lines), Endless) as case:
        await case.server.asked(3)
        assert case.store.names() == ["big", "small"]
        assert len(case.store.objects[ObjectRef("Deployment", "demo", "big")]["data"]) == 3_000_000
        assert case.watches() == ["10", "13"]


@in_loop
async def test_a_fault_of_the_sink_is_no_fault_of_the_server() -> None:
    class Broken(Store):
        def put(self, raw: Json) -> None:
            raise KeyError("a fault")

    async with api_server(page(item("a", 3), version=10)) as (_, client):
        with pytest.raises(KeyError, match="a fault"):
            await Watcher(Api(client), DEPLOYMENTS, Broken()).run()


@in_loop
async def test_forgotten_is_not_served() -> None:
    async with watching(page(item("a", 3), version=10), Endless) as case:
        await case.server.asked(2)
        case.watcher.forget()
        assert case.store.log == ["put a", "remove a"]
        assert case.states[-1] == (State.NOT_SERVED, "")
        assert not case.watcher.is_ready


def test_waits_grow_to_a_limit_and_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    backoff = Backoff(0.5, 3.0)
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    monkeypatch.setattr(random, "uniform", lambda low, high: low)
    assert [backoff.next() for _ in range(5)] == [0.25, 0.5, 1.0, 1.5, 1.5]
    for _ in range(2000):
        assert backoff.next() == 1.5


def test_problems_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    @in_loop
    async def failing() -> None:
        down = problem(500, "InternalError", "down")
        async with watching(down, down, page(version=1)) as case:
            await case.server.asked(4)

    failing()
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [
        "cannot watch deployments.apps: down"
    ]
    assert json.dumps(caplog.records[0].__dict__["fields"]) == (
        '{"resource": "deployments.apps", "state": "Starting"}'
    )
