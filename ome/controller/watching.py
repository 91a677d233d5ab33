"""Keeping up with one resource: list it once, then watch.

After the first list only a gap that the API server can't bridge (410 Gone) needs another one. A watch that
ends, is cut, falls silent or is throttled goes on from where it was. Bookmarks keep that place fresh, and
arrive about once a minute, so that a longer silence means a dead connection.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from ome.api import ObjectRef
from ome.controller.client import Api, ApiError, Unreachable, decode
from ome.controller.resources import Resource, ref_of
from ome.controller.telemetry import Metrics

__all__ = ["Backoff", "Selection", "Sink", "State", "Watcher"]

Json = dict[str, Any]
_log: Final = logging.getLogger("ome.controller.watch")

# Objects in an answer to a list: some are of a megabyte.
_PAGE: Final = 100
_IDLE: Final = 150.0
_SESSION: Final = (300, 600)
# Failures in a row, at growing waits: no hiccup any more (some seconds), no outage any more (a minute).
_LASTING: Final = 3
_HOPELESS: Final = 8
# A watch that ends sooner, and has told nothing, was no good.
_TOO_SHORT: Final = 10.0


class State(StrEnum):
    """How far a watcher has come."""

    STARTING = "Starting"
    SYNCED = "Synced"
    NOT_SERVED = "NotServed"
    FORBIDDEN = "Forbidden"
    FAILING = "Failing"  # again and again, and never succeeded


class Sink(Protocol):
    """Who takes in what is watched. An object is handed over whole, and is the taker's to change."""

    def put(self, raw: Json) -> None:
        """An object that is new, or what became of it."""

    def remove(self, ref: ObjectRef) -> None:
        """An object that is gone."""

    def known(self) -> Iterable[ObjectRef]:
        """The objects of this resource that are thought to exist."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource: those of a namespace, by labels or by fields; all when empty."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        """The selectors as query parameters."""
        chosen = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in chosen.items() if value}


class Backoff:
    """Growing waits, with jitter so that many who failed together don't come back together."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self.failures = 0

    def reset(self) -> None:
        """Begin anew."""
        self.failures = 0

    def next(self) -> float:
        """Seconds to wait after one more failure: between half of the grown wait and all of it."""
        full = min(self._most, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return full * random.uniform(0.5, 1.0)


class Watcher:
    """Keeps a sink up to date with one resource, for as long as `run` runs.

    `changed` is called whenever `state` or `problem` has changed. `is_ready` tells whether the sink has
    seen all there is at least once. `can_be_missing` says whether a 404 means that the resource isn't
    served; otherwise something in between has answered.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        sink: Sink,
        *,
        selection: Selection = Selection(),
        metrics: Metrics | None = None,
        changed: Callable[[], None] = lambda: None,
        can_be_missing: Callable[[], bool] = lambda: True,
        idle: float = _IDLE,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.resource = resource
        self.state = State.STARTING
        self.problem = ""
        self.is_ready = False
        self._api = api
        self._sink = sink
        self._selection = selection
        self._metrics = metrics or Metrics()
        self._changed = changed
        self._can_be_missing = can_be_missing
        self._clock = clock
        self._idle = idle
        self._backoff = backoff or Backoff(0.5, 30.0)
        self._version = ""

    @property
    def version(self) -> int:
        """The version up to which the sink has been told everything; 0 before the first list."""
        return int(self._version or 0)

    def forget(self) -> None:
        """The resource is no longer served: nothing of it exists."""
        self._lose_all()
        self._version = ""
        self.is_ready = False
        self._enter(State.NOT_SERVED, "")

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except ApiError as error:
                await self._failed(error)
            except Unreachable as error:
                self._metrics.watch_failed(self.resource.plural, "unreachable")
                _log.debug(f"cut off: {error}", extra=_fields(resource=self.resource.full_name))
                wait = self._backoff.next()
                self._cut_off(str(error))
                await self._pause(wait)

    async def _list(self) -> None:
        seen: set[ObjectRef] = set()
        query = {**self._selection.query(), "limit": str(_PAGE)}
        self._metrics.listed(self.resource.plural)
        while True:
            page = await self._api.page(
                self.resource,
                self._selection.namespace,
                query,
                metadata_only=self._selection.metadata_only,
            )
            for raw in page.get("items") or ():
                _metadata(raw, "name")
                raw["kind"], raw["apiVersion"] = self.resource.kind, self.resource.api_version
                seen.add(ref_of(raw))
                self._sink.put(raw)
            metadata = _metadata(page, "resourceVersion")
            query["continue"] = metadata.get("continue") or ""
            if not query["continue"]:
                break
        for ref in [each for each in self._sink.known() if each not in seen]:
            self._sink.remove(ref)
        self._version = metadata["resourceVersion"]
        self.is_ready = True
        self._enter(State.SYNCED, "")

    async def _watch(self) -> None:
        """One watch, until the server ends it or it is cut."""
        began, told = self._clock(), False
        query = {
            **self._selection.query(),
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*_SESSION)),
        }
        async with self._api.watch(
            self.resource,
            self._selection.namespace,
            query,
            idle=self._idle,
            metadata_only=self._selection.metadata_only,
        ) as lines:
            if self.state is not State.SYNCED:
                self._enter(State.SYNCED, "")
            # A quiet watch that stays open works, too: that it was cut off before is over.
            lasting = asyncio.get_running_loop().call_later(_TOO_SHORT, self._works)
            try:
                async for line in lines:
                    if line.strip():
                        self._take(line)
                        self._works()
                        told = True
            finally:
                lasting.cancel()
                held = self._clock() - began >= _TOO_SHORT
                if held:
                    self._works()
        if not told and not held:
            raise Unreachable("the watch ended at once")

    def _take(self, line: bytes) -> None:
        kind, raw = _event(line)
        if kind == "ERROR":
            raise ApiError(raw.get("code") or 500, raw.get("reason", ""), raw.get("message", ""))
        version = _metadata(raw, "resourceVersion")["resourceVersion"]
        if kind == "BOOKMARK":
            self._version = version
            return
        _metadata(raw, "name")
        self._version = version
        self._metrics.watched(self.resource.plural)
        raw["kind"], raw["apiVersion"] = self.resource.kind, self.resource.api_version
        if kind == "DELETED":
            self._sink.remove(ref_of(raw))
        else:
            self._sink.put(raw)

    async def _failed(self, error: ApiError) -> None:
        name = self.resource.full_name
        self._metrics.watch_failed(self.resource.plural, error.reason or str(error.status))
        if error.status == 410:
            self._version = ""
            _log.info("watch fell too far behind; listing again", extra=_fields(resource=name))
            await self._pause(self._backoff.next())
            return
        wait = max(error.retry_after, self._backoff.next())
        if error.is_missing and self._can_be_missing():
            if self.state is not State.NOT_SERVED:
                _log.warning(
                    "the API server doesn't serve a resource", extra=_fields(resource=name)
                )
            self.forget()
        elif error.is_forbidden:
            self._enter(State.FORBIDDEN, error.message)
        else:
            self._cut_off(error.message)
        await self._pause(wait)

    def _cut_off(self, problem: str) -> None:
        """A request failed that may succeed the next time. What is known stays known; that it may be old is
        told once it lasts."""
        if not self.is_ready:
            hopeless = self._backoff.failures >= _HOPELESS
            self._enter(State.FAILING if hopeless else State.STARTING, problem)
        elif self._backoff.failures >= _LASTING:
            self._enter(self.state, f"cut off, older states are known: {problem}")

    def _works(self) -> None:
        """The watch told something, or held for a while."""
        self._backoff.reset()
        if self.problem:
            text = f"watching {self.resource.full_name} again"
            _log.info(text, extra=_fields(resource=self.resource.full_name))
            self._enter(State.SYNCED, "")

    def _lose_all(self) -> None:
        for ref in list(self._sink.known()):
            self._sink.remove(ref)

    def _enter(self, state: State, problem: str) -> None:
        if (state, problem) == (self.state, self.problem):
            return
        is_new = problem != self.problem
        self.state, self.problem = state, problem
        if problem and is_new:
            text = f"cannot watch {self.resource.full_name}: {problem}"
            _log.error(text, extra=_fields(resource=self.resource.full_name, state=str(state)))
        self._changed()

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _event(line: bytes) -> tuple[str, Json]:
    """The type of a watch's event, and its object. What isn't one came from something in between, or was
    cut: the watch goes on from where it was."""
    try:
        event = decode(line)
    except ValueError:
        event = None
    if isinstance(event, dict):
        kind, raw = event.get("type"), event.get("object")
        if isinstance(kind, str) and isinstance(raw, dict):
            return kind, raw
    raise Unreachable(f"a line that is no event of a watch: {line[:200].decode(errors='replace')}")


def _metadata(raw: Any, name: str) -> Json:
    """The metadata of a list or an object, which has this field."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get(name), str):
        raise Unreachable(f"an answer without metadata.{name}")
    return metadata


def _fields(**fields: Any) -> dict[str, Any]:
    return {"fields": fields}
