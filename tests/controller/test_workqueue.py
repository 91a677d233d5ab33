"""The work queue against tables and against a model."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ome.controller.workqueue import Urgency, WorkQueue
from tests.controller.conftest import in_loop, until

USER, CHANGE, RESYNC = Urgency.USER, Urgency.CHANGE, Urgency.RESYNC


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def queue(clock: Clock | None = None, **waits: float) -> WorkQueue[str]:
    """A queue whose keys are `<namespace>/<name>`."""
    return WorkQueue(lambda key: key.partition("/")[0], clock=clock or Clock(), **waits)


async def taken(work: WorkQueue[str], count: int = 100) -> list[str]:
    """The next keys, each done before the next one is taken."""
    found: list[str] = []
    while len(found) < count and len(work):
        key = await work.get()
        found.append(key)
        work.done(key)
    return found


# What is added, and the order in which it comes.
ORDERS: dict[str, tuple[list[tuple[str, Urgency]], list[str]]] = {
    "first in, first out": ([("a/1", CHANGE), ("a/2", CHANGE)], ["a/1", "a/2"]),
    "each once": ([("a/1", CHANGE), ("a/2", CHANGE), ("a/1", CHANGE)], ["a/1", "a/2"]),
    "users first, resyncs last": (
        [("a/1", RESYNC), ("a/2", CHANGE), ("a/3", USER)],
        ["a/3", "a/2", "a/1"],
    ),
    "more urgent when it comes again": (
        [("a/1", CHANGE), ("a/2", RESYNC), ("a/2", USER)],
        ["a/2", "a/1"],
    ),
    "never less urgent": ([("a/1", USER), ("a/2", USER), ("a/1", RESYNC)], ["a/1", "a/2"]),
    "namespaces take turns": (
        [*((f"a/{n}", CHANGE) for n in range(4)), ("b/1", CHANGE), ("c/1", CHANGE)],
        ["a/0", "b/1", "c/1", "a/1", "a/2", "a/3"],
    ),
    "turns are by urgency": (
        [("a/1", USER), ("a/2", USER), ("b/1", USER), ("a/3", CHANGE), ("b/2", CHANGE)],
        ["a/1", "b/1", "a/2", "a/3", "b/2"],
    ),
}


@pytest.mark.parametrize("name", ORDERS)
@in_loop
async def test_order(name: str) -> None:
    added, order = ORDERS[name]
    work = queue()
    for key, urgency in added:
        work.add(key, urgency)
    assert len(work) == len(order)
    assert await taken(work) == order
    assert work.is_idle
    assert len(work) == 0


@in_loop
async def test_nothing_starves() -> None:
    work = queue()
    work.add("r/1", RESYNC)
    work.add("r/2", RESYNC)
    work.add("c/1", CHANGE)
    work.add("c/2", CHANGE)
    found = []
    for number in range(40):
        # Users never stop.
        work.add(f"u/{number}", USER)
        found += await taken(work, 1)
    less = {place: key for place, key in enumerate(found, 1) if not key.startswith("u/")}
    assert less == {8: "r/1", 16: "c/1", 24: "r/2", 32: "c/2"}


@in_loop
async def test_nothing_starves_by_failures() -> None:
    """Keys that fail, and come again at once, are no reason to forget the others."""
    clock = Clock()
    work = queue(clock)
    work.add("r/1", RESYNC)
    for number in range(4):
        work.add(f"u/{number}", USER)
    found = []
    for _ in range(12):
        key = await work.get()
        found.append(key)
        if key != "r/1":
            work.retry(key)
            clock.now += 1000.0
            work.add(key, USER)
        work.done(key)
    assert "r/1" in found


@in_loop
async def test_a_key_is_worked_on_by_one() -> None:
    work = queue()
    work.add("a/1")
    assert await work.get() == "a/1"
    work.add("a/1", RESYNC)
    work.add("a/1", USER)
    work.add("a/2", CHANGE)
    assert await work.get() == "a/2"
    waiting = asyncio.create_task(work.get())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert (len(work), work.is_idle) == (1, False)
    work.done("a/1")
    assert await waiting == "a/1"
    work.done("a/1")
    work.done("a/2")
    assert work.is_idle


@in_loop
async def test_what_comes_again_keeps_its_urgency() -> None:
    work = queue()
    work.add("a/1")
    await work.get()
    work.add("a/1", RESYNC)
    work.add("b/1", CHANGE)
    work.done("a/1")
    assert await taken(work) == ["b/1", "a/1"]


@in_loop
async def test_workers_wait_and_are_woken() -> None:
    work = queue()
    workers = [asyncio.create_task(work.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in ("a/1", "a/2", "a/3"):
        work.add(key)
    assert sorted(await asyncio.gather(*workers)) == ["a/1", "a/2", "a/3"]


@in_loop
async def test_a_worker_that_is_cancelled_takes_nothing_along() -> None:
    work = queue()
    worker = asyncio.create_task(work.get())
    await asyncio.sleep(0)
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
    work.add("a/1")
    assert await work.get() == "a/1"


async def ripe(work: WorkQueue[str], clock: Clock, now: float) -> list[str]:
    """What is due at a time."""
    clock.now = now
    work.add("probe/1", USER)
    return [key for key in await taken_all(work) if key != "probe/1"]


async def taken_all(work: WorkQueue[str]) -> list[str]:
    found = [await work.get()]
    work.done(found[0])
    return found + await taken(work)


@in_loop
async def test_later_is_not_now() -> None:
    clock = Clock()
    work = queue(clock)
    work.add("a/1", wait=5.0)
    work.add("a/2", wait=3.0)
    assert (len(work), work.is_idle) == (0, True)
    assert await ripe(work, clock, 2.9) == []
    assert await ripe(work, clock, 3.0) == ["a/2"]
    assert await ripe(work, clock, 5.0) == ["a/1"]
    assert await ripe(work, clock, 99.0) == []


# Seconds that are set one after the other, and the only one that counts.
EARLIEST = [([5.0, 3.0], 3.0), ([3.0, 5.0], 3.0), ([4.0, 4.0], 4.0), ([9.0, 1.0, 5.0], 1.0)]


@pytest.mark.parametrize("seconds, at", EARLIEST)
@in_loop
async def test_the_earliest_time_counts(seconds: list[float], at: float) -> None:
    clock = Clock()
    work = queue(clock)
    for each in seconds:
        work.add("a/1", wait=each)
    assert await ripe(work, clock, at - 0.1) == []
    assert await ripe(work, clock, at) == ["a/1"]
    assert await ripe(work, clock, 99.0) == []


@in_loop
async def test_later_wakes_a_worker_that_waits() -> None:
    clock = Clock()
    work = queue(clock)
    worker = asyncio.create_task(work.get())
    await asyncio.sleep(0)
    work.add("a/1", USER, 0.001)
    clock.now = 1.0
    assert await worker == "a/1"


@in_loop
async def test_a_worker_wakes_when_the_time_has_come() -> None:
    clock = Clock()
    work = queue(clock)
    work.add("a/1", wait=0.001)
    worker = asyncio.create_task(work.get())
    for _ in range(5):
        await asyncio.sleep(0.002)
    assert not worker.done()
    clock.now = 1.0
    await until(worker.done)
    assert worker.result() == "a/1"


@in_loop
async def test_later_while_worked_on() -> None:
    clock = Clock()
    work = queue(clock)
    work.add("a/1")
    await work.get()
    work.add("a/1", wait=1.0)
    work.add("b/1", USER)
    clock.now = 2.0
    assert await work.get() == "b/1"
    assert len(work) == 1
    work.done("a/1")
    assert await taken(work) == ["a/1"]


@in_loop
async def test_waits_grow_and_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    clock = Clock()
    work = queue(clock, first_wait=0.2, longest_wait=1.0)
    assert [work.retry("a/1") for _ in range(4)] == [0.2, 0.4, 0.8, 1.0]
    # Each key has waits of its own, and the first time that was set stays.
    assert work.retry("a/2") == 0.2
    assert await ripe(work, clock, 0.2) == ["a/1", "a/2"]
    assert work.retry("a/1") == 1.0
    work.succeeded("a/1")
    assert work.retry("a/1") == 0.2
    assert work.retry("a/2") == 0.4


@in_loop
async def test_a_turn_that_comes_before_the_time_is_the_time() -> None:
    clock = Clock()
    work = queue(clock)
    work.add("a/1", wait=5.0)
    work.add("a/1")
    assert await ripe(work, clock, 1.0) == ["a/1"]
    assert await ripe(work, clock, 99.0) == []


@in_loop
async def test_a_time_that_is_set_at_work_stays_after_success() -> None:
    clock = Clock()
    work = queue(clock)
    work.add("a/1")
    await work.get()
    work.add("a/1", wait=5.0)
    work.succeeded("a/1")
    work.done("a/1")
    assert await ripe(work, clock, 4.9) == []
    assert await ripe(work, clock, 5.0) == ["a/1"]


KEYS = st.sampled_from([f"{namespace}/{name}" for namespace in "ab" for name in range(3)])


@in_loop
async def test_closed() -> None:
    """What waits is given to nobody any more, and who waits is told."""
    work = queue()
    worker = asyncio.create_task(work.get())
    await asyncio.sleep(0)
    work.close()
    assert await worker is None
    work.add("a/1")
    assert await work.get() is None
    assert len(work) == 1


@in_loop
async def test_a_cancellation_is_never_lost() -> None:
    """Whenever it comes, and whatever happens at the same moment."""
    for ticks in range(6):
        work = queue()
        work.add("b/1", wait=60.0)
        workers = [asyncio.create_task(work.get()) for _ in range(3)]
        await asyncio.sleep(0.001)
        work.add("a/1")
        work.add("a/1", USER)
        for _ in range(ticks):
            await asyncio.sleep(0)
        for each in workers:
            each.cancel()
        done, pending = await asyncio.wait(workers, timeout=1.0)
        assert not pending
        assert sum(not each.cancelled() for each in done) <= 1


class QueueMachine(RuleBasedStateMachine):
    """The queue against a model of sets: what waits, what is worked on, what comes again, what is later."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.queue = queue(self.clock)
        self.waiting: dict[str, Urgency] = {}
        self.working: set[str] = set()
        self.again: dict[str, Urgency] = {}
        self.later: dict[str, tuple[float, Urgency]] = {}
        self.since_others = 0

    def teardown(self) -> None:
        self.loop.close()

    def _model_add(self, key: str, urgency: Urgency) -> None:
        into = self.again if key in self.working else self.waiting
        into[key] = min(urgency, into.get(key, urgency))

    def _model_ripen(self) -> None:
        for key, (at, urgency) in list(self.later.items()):
            if at <= self.clock.now:
                del self.later[key]
                self._model_add(key, urgency)

    @rule(key=KEYS, urgency=st.sampled_from(Urgency))
    def add(self, key: str, urgency: Urgency) -> None:
        self.queue.add(key, urgency)
        self._model_add(key, urgency)

    @rule(key=KEYS, seconds=st.integers(1, 9), urgency=st.sampled_from(Urgency))
    def add_with_a_wait(self, key: str, seconds: int, urgency: Urgency) -> None:
        self.queue.add(key, urgency, seconds)
        at = self.clock.now + seconds
        if key not in self.later or at < self.later[key][0]:
            self.later[key] = (at, urgency)

    @rule(seconds=st.integers(1, 5))
    def pass_time(self, seconds: int) -> None:
        self.clock.now += seconds

    @precondition(lambda self: self._has_work())
    @rule()
    def get(self) -> None:
        self._model_ripen()
        key = self.loop.run_until_complete(asyncio.wait_for(self.queue.get(), 5.0))
        urgency = self.waiting.pop(key)
        # A turn that comes before a time is that time.
        self.later.pop(key, None)
        assert key not in self.working
        self.working.add(key)
        # The most urgent, but for every eighth.
        most = min([urgency, *self.waiting.values()])
        if urgency == most:
            self.since_others += 1
        else:
            assert self.since_others >= 7
            self.since_others = 0

    def _has_work(self) -> bool:
        ripe = any(
            at <= self.clock.now and key not in self.working for key, (at, _) in self.later.items()
        )
        return bool(self.waiting) or ripe

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key)
        self.working.discard(key)
        if key in self.again:
            self._model_add(key, self.again.pop(key))

    @rule(key=KEYS)
    def succeeded(self, key: str) -> None:
        self.queue.succeeded(key)

    @invariant()
    def counts(self) -> None:
        assert len(self.queue) == len(self.waiting) + len(self.again)
        is_soon = any(at < self.clock.now + 1.5 for at, _ in self.later.values())
        assert self.queue.is_idle == (not self.waiting and not self.working and not is_soon)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=100, stateful_step_count=60)
