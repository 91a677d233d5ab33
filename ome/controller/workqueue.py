"""A queue of keys to reconcile: each waits at most once, and is worked on by one worker at a time.

A key that comes again while it is worked on is worked on again afterwards. Urgent keys, those that a
user has changed, come before the others; of each kind of urgency the namespaces take turns, so that a
change that concerns thousands of services of one holds up nobody else. Every eighth key is one of the less
urgent, the two kinds by turns, so that nothing starves.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from ome.api import ObjectRef
from ome.controller.watching import Backoff

__all__ = ["Due", "Urgency", "WorkQueue"]

Key = TypeVar("Key", bound=Hashable)


class Urgency(IntEnum):
    """How soon a key's turn comes."""

    USER = 0
    CHANGE = 1
    RESYNC = 2


class Due(Protocol):
    """Who is told what has to be looked at again."""

    def __call__(self, key: ObjectRef, urgency: Urgency, wait: float = 0.0, /) -> None:
        """An object is due, in `wait` seconds at the latest."""


class _Turns(Generic[Key]):
    """Keys by lane, first in first out; the lanes take turns."""

    def __init__(self, lane: Callable[[Key], str]) -> None:
        self._lane = lane
        self._lanes: OrderedDict[str, deque[Key]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def push(self, key: Key) -> None:
        self._lanes.setdefault(self._lane(key), deque()).append(key)

    def pop(self) -> Key:
        name, keys = next(iter(self._lanes.items()))
        key = keys.popleft()
        if keys:
            self._lanes.move_to_end(name)
        else:
            del self._lanes[name]
        return key


class WorkQueue(Generic[Key]):
    """The queue. `lane` says which keys take turns as one; `backoff` how long a failed key waits."""

    _STARVING = 8

    def __init__(
        self,
        lane: Callable[[Key], str],
        *,
        first_wait: float = 0.2,
        longest_wait: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._waits = (first_wait, longest_wait)
        self._turns: list[_Turns[Key]] = [_Turns(lane) for _ in Urgency]
        self._waiting: dict[Key, Urgency] = {}
        self._working: set[Key] = set()
        self._again: dict[Key, Urgency] = {}
        self._later: list[tuple[float, int, Key, Urgency]] = []
        self._due: dict[Key, float] = {}
        self._backoffs: dict[Key, Backoff] = {}
        self._entries = 0
        self._taken = 0
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._again)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, nothing is worked on, and nothing is due within a moment (1.5 s)."""
        soon = self._clock() + 1.5
        return not (self._waiting or self._working or any(at < soon for at in self._due.values()))

    def add(self, key: Key, urgency: Urgency = Urgency.CHANGE, wait: float = 0.0) -> None:
        """A key is due, in `wait` seconds at the latest. One that waits already becomes more urgent, never
        less, and an earlier time that is set already stays."""
        if wait > 0.0:
            self._set_time(key, urgency, self._clock() + wait)
        else:
            self._add(key, urgency)

    def _set_time(self, key: Key, urgency: Urgency, at: float) -> None:
        if at < self._due.get(key, at + 1):
            self._due[key] = at
            self._entries += 1
            heapq.heappush(self._later, (at, self._entries, key, urgency))
            if self._later[0][0] == at:
                self._changed.set()

    def _add(self, key: Key, urgency: Urgency) -> None:
        if key in self._working:
            self._again[key] = min(urgency, self._again.get(key, urgency))
            return
        known = self._waiting.get(key)
        if known is None or urgency < known:
            # The entry of a less urgent place stays there; it is passed over when its turn comes.
            self._waiting[key] = urgency
            self._turns[urgency].push(key)
            self._changed.set()

    def retry(self, key: Key) -> float:
        """A key failed: it is due again after a wait that grows. Returns the seconds."""
        seconds = self._backoffs.setdefault(key, Backoff(*self._waits)).next()
        self.add(key, wait=seconds)
        return seconds

    def succeeded(self, key: Key) -> None:
        """A key's waits after failures begin anew."""
        self._backoffs.pop(key, None)

    async def get(self) -> Key | None:
        """The next key, which is worked on until `done`; None once the queue is closed."""
        while not self._closed:
            self._ripen()
            key = self._next()
            if key is not None:
                self._working.add(key)
                return key
            self._changed.clear()
            await self._wait()
        return None

    async def _wait(self) -> None:
        """Until something has changed, or something is due.

        `asyncio.wait_for` isn't used: in Python 3.11 it can lose a cancellation.
        """
        timer = None
        if self._later:
            seconds = max(0.0, self._later[0][0] - self._clock())
            timer = asyncio.get_running_loop().call_later(seconds, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Give out no more keys."""
        self._closed = True
        self._changed.set()

    def done(self, key: Key) -> None:
        """A key is no longer worked on."""
        self._working.discard(key)
        urgency = self._again.pop(key, None)
        if urgency is not None:
            self._add(key, urgency)

    def _next(self) -> Key | None:
        for urgency in self._order():
            turns = self._turns[urgency]
            while turns:
                key = turns.pop()
                if self._waiting.get(key) is urgency:
                    del self._waiting[key]
                    self._due.pop(key, None)
                    self._taken += 1
                    return key
        return None

    def _order(self) -> list[Urgency]:
        """Which kind of urgency comes first at this turn, and then."""
        turn, rest = divmod(self._taken + 1, self._STARVING)
        if rest:
            return list(Urgency)
        if turn % 2:
            return [Urgency.RESYNC, Urgency.CHANGE, Urgency.USER]
        return [Urgency.CHANGE, Urgency.RESYNC, Urgency.USER]

    def _ripen(self) -> None:
        """Move what is due from its time to its turn."""
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            at, _, key, urgency = heapq.heappop(self._later)
            if self._due.get(key) == at:
                del self._due[key]
                self._add(key, urgency)
