"""The election, with a Lease in memory and a clock that tests move on."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ome.api import ObjectRef
from ome.controller.client import Api, ApiError, Unreachable
from ome.controller.leading import LEASE_NAME, Election, Times
from tests.controller.conftest import FakeApi, in_loop

Json = dict[str, Any]
LEASE = ObjectRef("Lease", "ome", LEASE_NAME)


class Time:
    """A clock and its sleepers."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self.check: Any = lambda: None

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass: everything that is due by then happens, each at its time."""
        end = self.now + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self.now = max(self.now, at)
            self.check()
            if not woken.done():
                woken.set_result(None)
            await self._settle()
        self.now = end
        self.check()

    async def _settle(self) -> None:
        for _ in range(12):
            await asyncio.sleep(0)
        self.check()


class Link:
    """One candidate's way to the API server: it can be slow, be down, or lose an answer."""

    def __init__(self, shared: FakeApi, time: Time) -> None:
        self._shared = shared
        self._time = time
        self.down = False
        self.loses_answers = False
        self.latency = 0.0

    def __getattr__(self, verb: str) -> Any:
        async def call(*args: Any) -> Any:
            if self.latency:
                await self._time.sleep(self.latency)
            if self.down:
                raise Unreachable("connection refused")
            result = await getattr(self._shared, verb)(*args)
            if self.latency:
                await self._time.sleep(self.latency)
            if self.loses_answers:
                raise Unreachable("connection reset")
            return result

        return call


@dataclass
class Candidate:
    link: Link
    election: Election
    told: list[bool]
    task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.election.run())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


@dataclass
class Stage:
    """What a test of the election happens on."""

    time: Time = field(default_factory=Time)
    api: FakeApi = field(default_factory=FakeApi)
    candidates: list[Candidate] = field(default_factory=list)

    def candidate(self, name: str, times: Times | None = None) -> Candidate:
        link, told = Link(self.api, self.time), list[bool]()
        election = Election(
            cast(Api, link),
            "ome",
            name,
            times=times or Times(),
            changed=told.append,
            clock=self.time,
            sleep=self.time.sleep,
        )
        self.candidates.append(Candidate(link, election, told))
        self.candidates[-1].start()
        return self.candidates[-1]

    @property
    def spec(self) -> Json:
        found: Json = self.api.objects[LEASE]["spec"]
        return found

    def hold(self, holder: str, **spec: Any) -> None:
        """Somebody else writes the Lease."""
        body = {
            "kind": "Lease",
            "metadata": {"name": LEASE_NAME, "namespace": "ome"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
        }
        self.api._store(body)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    found = Stage()
    try:
        yield found
    finally:
        for each in found.candidates:
            await each.stop()


@in_loop
async def test_takes_a_lease_that_nobody_has_and_renews_it() -> None:
    async with stage() as on:
        one = on.candidate("one")
        await on.time.advance(0.0)
        assert one.election.time_to_write() > 0
        assert one.told == [True]
        first = dict(on.spec)
        assert (first["holderIdentity"], first["leaseDurationSeconds"]) == ("one", 15)
        assert first["acquireTime"] == first["renewTime"]
        assert first["leaseTransitions"] == 0
        await on.time.advance(60.0)
        assert one.election.time_to_write() > 0
        assert one.told == [True]
        assert on.spec["acquireTime"] == first["acquireTime"]
        assert on.spec["renewTime"] > first["renewTime"]
        assert on.spec["leaseTransitions"] == 0
        # A get and a write every two seconds, the first one at once.
        assert [call[0] for call in on.api.calls] == ["get", "create"] + ["get", "replace"] * 30


@in_loop
async def test_writes_until_ten_seconds_after_the_last_renewal_began() -> None:
    async with stage() as on:
        one = on.candidate("one")
        await on.time.advance(0.0)
        one.link.down = True
        await on.time.advance(9.9)
        assert one.election.time_to_write() > 0
        assert one.told == [True]
        await on.time.advance(0.1)
        assert one.election.time_to_write() == 0
        assert one.told == [True, False]
        one.link.down = False
        await on.time.advance(2.0)
        assert one.election.time_to_write() > 0
        assert one.told == [True, False, True]
        assert on.spec["leaseTransitions"] == 0


@in_loop
async def test_a_slow_renewal_counts_from_when_it_began() -> None:
    async with stage() as on:
        one = on.candidate("one")
        one.link.latency = 1.5
        await on.time.advance(7.0)
        # A get and a create, 1.5 s to and fro each: told at 6 s, good until 10 s.
        assert one.election.time_to_write() > 0
        one.link.down = True
        await on.time.advance(2.9)
        assert one.election.time_to_write() > 0
        await on.time.advance(0.2)
        assert one.election.time_to_write() == 0


# What the other's renewTime says plays no part.
SKEWS = ["2000-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z", None]


@pytest.mark.parametrize("renewed", SKEWS)
@in_loop
async def test_takes_over_only_what_stays_unchanged_for_its_duration(renewed: str | None) -> None:
    async with stage() as on:
        on.hold("other", leaseDurationSeconds=20, renewTime=renewed, leaseTransitions=6)
        one = on.candidate("one")
        await on.time.advance(20.0)
        assert one.election.time_to_write() == 0
        assert on.spec["holderIdentity"] == "other"
        await on.time.advance(2.0)
        assert one.election.time_to_write() > 0
        assert (on.spec["holderIdentity"], on.spec["leaseTransitions"]) == ("one", 7)
        assert on.spec["leaseDurationSeconds"] == 15


@in_loop
async def test_a_renewal_of_the_other_begins_the_wait_anew() -> None:
    async with stage() as on:
        one = on.candidate("one")
        one.link.down = True
        for number in range(5):
            on.hold("other", renewTime=f"{number}")
            one.link.down = False
            await on.time.advance(14.0)
        assert one.told == []
        # Another holder is a change, too, whatever time it writes.
        on.hold("third", renewTime="4")
        await on.time.advance(14.0)
        assert one.told == []
        await on.time.advance(4.0)
        assert one.told == [True]


@in_loop
async def test_a_lease_without_duration_holds_for_ours() -> None:
    async with stage() as on:
        on.hold("other", leaseDurationSeconds=None)
        one = on.candidate("one")
        await on.time.advance(15.0)
        assert one.told == []
        await on.time.advance(2.0)
        assert one.told == [True]


@pytest.mark.parametrize("spec", [{"holderIdentity": ""}, {"holderIdentity": None}, {}, None])
@in_loop
async def test_a_lease_that_was_given_up_is_taken_at_once(spec: Json | None) -> None:
    async with stage() as on:
        on.hold("other")
        on.api.objects[LEASE]["spec"] = spec
        one = on.candidate("one")
        await on.time.advance(0.0)
        assert one.told == [True]
        assert on.spec["holderIdentity"] == "one"


@in_loop
async def test_loses_a_lease_that_somebody_else_has() -> None:
    async with stage() as on:
        one = on.candidate("one")
        await on.time.advance(0.0)
        on.hold("other", renewTime="now")
        await on.time.advance(2.0)
        assert one.election.time_to_write() == 0
        assert one.told == [True, False]


@pytest.mark.parametrize("verb", ["create", "replace"])
@in_loop
async def test_who_comes_second_does_not_lead(verb: str) -> None:
    async with stage() as on:
        if verb == "replace":
            on.hold("")

        async def before(called: str) -> None:
            if called == verb:
                on.api.before = None
                on.hold("other", renewTime="now")

        on.api.before = before
        one = on.candidate("one")
        await on.time.advance(0.0)
        assert one.told == []
        assert on.spec["holderIdentity"] == "other"


REFUSED = ApiError(403, "Forbidden", "leases is forbidden")


@in_loop
async def test_refusals_are_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as on:

        async def refuse(verb: str) -> None:
            raise REFUSED

        on.api.before = refuse
        one = on.candidate("one")
        await on.time.advance(2.0)
        assert [call[0] for call in on.api.calls] == ["get", "get"]
        on.api.before = None
        await on.time.advance(2.0)
        assert one.told == [True]

        async def refuse_writes(verb: str) -> None:
            if verb == "replace":
                raise REFUSED

        on.api.before = refuse_writes
        await on.time.advance(9.0)
        assert one.told == [True]
        await on.time.advance(1.0)
        assert one.told == [True, False]
        warnings = {each.getMessage() for each in caplog.records if each.levelname == "WARNING"}
        assert warnings == {"could not renew the Lease: leases is forbidden"}


@in_loop
async def test_a_server_that_never_answers(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as on:

        async def hang(verb: str) -> None:
            await asyncio.Event().wait()

        on.api.before = hang
        one = on.candidate("one", Times(lease=1.0, renew=0.02, retry=0.01))
        while len(on.api.calls) < 2:
            await asyncio.sleep(0.005)
            await on.time.advance(1.0)
        assert one.told == []
        assert caplog.records[0].getMessage() == "could not renew the Lease: timed out"


@in_loop
async def test_gives_the_lease_up() -> None:
    async with stage() as on:
        one, two = on.candidate("one"), on.candidate("two")
        await on.time.advance(5.0)
        leader, other = (one, two) if one.told else (two, one)
        await leader.stop()
        await leader.election.release()
        assert leader.election.time_to_write() == 0
        assert leader.told == [True, False]
        assert (on.spec["holderIdentity"], on.spec["leaseDurationSeconds"]) == ("", 1)
        await on.time.advance(2.0)
        assert other.told == [True]
        assert on.spec["leaseTransitions"] == 1


@in_loop
async def test_gives_nothing_up_that_it_does_not_have() -> None:
    async with stage() as on:
        on.hold("other")
        one = on.candidate("one")
        await on.time.advance(5.0)
        await one.stop()
        calls = len(on.api.calls)
        await one.election.release()
        assert len(on.api.calls) == calls
        assert one.told == []


@in_loop
async def test_gives_nothing_up_that_somebody_else_has_by_now() -> None:
    async with stage() as on:
        one = on.candidate("one")
        await on.time.advance(0.0)
        await one.stop()
        on.hold("other")
        await one.election.release()
        assert on.spec["holderIdentity"] == "other"


@in_loop
async def test_a_lease_that_cannot_be_given_up_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as on:
        one = on.candidate("one")
        await on.time.advance(0.0)
        await one.stop()
        one.link.down = True
        await one.election.release()
        assert one.told == [True, False]
        assert caplog.records[-1].getMessage() == (
            "could not release the Lease: connection refused"
        )


WRONG_TIMES = {
    "retry": (
        Times(15, 10, 0),
        "the leader election's retry period must be greater than zero",
    ),
    "lease": (
        Times(10, 10, 2),
        "the leader election's lease duration must be greater than its renew deadline",
    ),
    "renew": (
        Times(15, 2.4, 2),
        "the leader election's renew deadline must be greater than 1.2 × its retry period",
    ),
    "short": (
        Times(0.9, 0.5, 0.1),
        "the leader election's lease duration must be at least 1s",
    ),
    "good": (Times(), ""),
    "just good": (Times(1, 0.9, 0.7), ""),
}


@pytest.mark.parametrize("name", WRONG_TIMES)
def test_times(name: str) -> None:
    times, told = WRONG_TIMES[name]
    assert times.problem() == told


@in_loop
async def test_a_lease_holds_at_least_as_long_as_it_is_written_by() -> None:
    """The Lease's duration is whole seconds: those of 2.4 s must not end before 2.3 s of writing."""
    async with stage() as on:
        on.candidate("one", Times(lease=2.4, renew=2.3, retry=1.0))
        await on.time.advance(0.0)
        assert on.spec["leaseDurationSeconds"] == 3


# What happens to a candidate, and how much time passes then.
HAPPENS = st.tuples(
    st.integers(0, 1),
    st.sampled_from(["down", "up", "loses", "slow", "fast", "stop", "start", "kill", "nothing"]),
    st.sampled_from([0.0, 0.3, 1.0, 2.1, 2.5, 5.0]),
)


@given(st.lists(HAPPENS, max_size=25))
@settings(max_examples=150)
def test_never_two_that_may_write(story: list[tuple[int, str, float]]) -> None:
    async def told() -> None:
        async with stage() as on:
            times = Times(lease=2.4, renew=2.3, retry=0.7)
            for name in ("one", "two"):
                on.candidate(name, times)

            # Until when a write of each may be under way.
            until = dict.fromkeys(range(2), 0.0)

            def check() -> None:
                left = [each.election.time_to_write() for each in on.candidates]
                for who, seconds in enumerate(left):
                    if seconds > 0:
                        assert on.time.now >= until[1 - who]
                        until[who] = on.time.now + seconds

            on.time.check = check
            for who, what, seconds in story:
                await happen(on.candidates[who], what)
                if what in ("stop", "kill"):
                    until[who] = 0.0
                await on.time.advance(seconds)
            # Whatever happened, in the end one leads.
            for each in on.candidates:
                await happen(each, "up")
                await happen(each, "fast")
                await happen(each, "start")
            await on.time.advance(20.0)
            leads = [each.election.time_to_write() > 0 for each in on.candidates]
            assert leads.count(True) == 1
            assert [each.told[-1:] == [True] for each in on.candidates] == leads

    asyncio.run(told())


async def happen(candidate: Candidate, what: str) -> None:
    link = candidate.link
    if what in ("down", "up"):
        link.down = what == "down"
        link.loses_answers = False
    elif what == "loses":
        link.loses_answers = True
    elif what in ("slow", "fast"):
        link.latency = 0.7 if what == "slow" else 0.0
    elif what == "kill":
        await candidate.stop()
    elif what == "stop" and not link.latency:
        await candidate.stop()
        await candidate.election.release()
    elif what == "start" and (candidate.task is None or candidate.task.done()):
        candidate.start()
