"""The controller process: watches, workers, election and endpoints, from start to drained end."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kubernetes.aio.client.api_client import ApiClient

from ome import __version__
from ome.api import AcceleratorClass, InferenceService, ObjectRef
from ome.controller.client import Api, ApiError, NotLeading, RateLimit, Unreachable
from ome.controller.collecting import Collector
from ome.controller.endpoints import serve
from ome.controller.feeds import Feeds
from ome.controller.leading import Election
from ome.controller.options import Options
from ome.controller.reconcile import Failed, ServiceReconciler, Waiting
from ome.controller.reports import ClassReporter, RuntimeReporter
from ome.controller.telemetry import Metrics
from ome.controller.workqueue import WorkQueue
from ome.controller.world import World
from ome.controller.writing import Writer
from ome.engines.engines import Engines
from ome.snapshot import PluginVersion

__all__ = ["Controller"]

_log: Final = logging.getLogger("ome.controller")

_COLLECT_EVERY: Final = 60.0
# Seconds for tasks that were cancelled to end.
_CANCEL: Final = 2.0


def _now() -> datetime:
    return datetime.now(UTC)


class Controller:
    """One controller process against one API server."""

    def __init__(self, client: ApiClient, options: Options, engines: Engines) -> None:
        self.metrics = Metrics()
        self.queue: WorkQueue[ObjectRef] = WorkQueue(lambda ref: ref.namespace)
        self.urls: list[str] = []
        self._options = options
        self._engines = engines
        self._active = asyncio.Event()
        self._leads = False
        self._busy: set[asyncio.Task[None]] = set()
        plugins = [PluginVersion(each.name, each.version) for each in engines]
        self.world = World(ome_namespace=options.ome_namespace, plugins=plugins, due=self.queue.add)
        reading = Api(client, metrics=self.metrics)
        self._election = Election(
            reading, options.election_namespace, _identity(), times=options.times, changed=self._led
        )
        limit = RateLimit(options.qps, options.burst)
        time_to_write = self._election.time_to_write if options.leader_elect else None
        self.api = Api(client, limit=limit, time_to_write=time_to_write, metrics=self.metrics)
        self.feeds = Feeds(
            self.api,
            self.world,
            metrics=self.metrics,
            changed=self._states_changed,
            config_changed=self._states_changed,
        )
        self._make_reconcilers(options, engines)

    def _make_reconcilers(self, options: Options, engines: Engines) -> None:
        api, world = self.api, self.world
        writer = Writer(api, world.owned, self.feeds.unreadable)
        self._services = ServiceReconciler(
            api, world, writer, engines, metrics=self.metrics, clock=_now
        )
        self._runtimes = RuntimeReporter(api, world, _now)
        self._classes = ClassReporter(api, world, _now)
        self._collector = Collector(
            api, world, _now, keep=options.retention, grace=timedelta(seconds=options.grace)
        )

    # The process.

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then finish what has begun and give up the Lease.

        Raises OSError for an address that can't be listened on, and a fault of our own.
        """
        async with AsyncExitStack() as stack:
            self.urls += await serve(
                stack,
                health=self._options.health,
                metrics=self._options.metrics,
                problems=self.problems,
                exposition=self._exposition,
            )
            self._announce()
            if not self._options.leader_elect:
                self._led(True)
            await self._run_tasks(stop)

    async def _run_tasks(self, stop: asyncio.Event) -> None:
        parts: list[Coroutine[Any, Any, Any]] = [
            self.feeds.run(),
            self._resync(),
            self._collect(),
        ]
        if self._options.leader_elect:
            parts.append(self._election.run())
        tasks = [asyncio.create_task(part) for part in parts]
        workers = [asyncio.create_task(self._work()) for _ in range(self._options.workers)]
        waiting = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait(
                [*tasks, *workers, waiting], return_when=asyncio.FIRST_COMPLETED
            )
            for task in done - {waiting}:
                task.result()
            await self._drain(workers)
        finally:
            for task in (*tasks, *workers, waiting):
                task.cancel()
            await asyncio.wait((*tasks, *workers, waiting), timeout=_CANCEL)
            if self._options.leader_elect:
                await self._election.release()

    async def _drain(self, workers: list[asyncio.Task[None]]) -> None:
        """Let what has begun be finished, as long as there is time."""
        self.queue.close()
        busy = [worker for worker in workers if worker in self._busy]
        _log.info("stopping", extra={"fields": {"unfinished": len(busy)}})
        if busy:
            _, late = await asyncio.wait(busy, timeout=self._options.drain)
            if late:
                _log.warning(f"{len(late)} reconciles were cut off")

    def _announce(self) -> None:
        names = [f"{each.name} {each.version}" for each in self._engines]
        fields = {"version": __version__, "engines": names, "endpoints": self.urls}
        _log.info("starting", extra={"fields": fields})
        for error in self._engines.errors:
            told = {"plugin": error.name, "distribution": error.distribution}
            _log.error(f"engine plugin isn't used: {error.message}", extra={"fields": told})
        for problem in self._engines.problems:
            _log.error(f"engine plugin: {problem}", extra={"fields": {"code": problem.code}})

    # Whether to work.

    def problems(self) -> list[str]:
        """Why the process isn't ready, one reason each."""
        return [*self.feeds.problems(), *map(str, self.world.config_problems)]

    def _led(self, leads: bool) -> None:
        self._leads = leads
        self.metrics.leader.set(int(leads))
        if leads:
            self.world.resync()
        self._states_changed()

    def _states_changed(self) -> None:
        """Work while this process leads, knows enough, and has a configuration that can be used."""
        world = self.world
        self.metrics.config_valid.set(int(not world.config_problems))
        configured = not world.config_problems or world.has_config
        if self._leads and configured and self.feeds.is_synced:
            if not self._active.is_set():
                _log.info("working")
            self._active.set()
        else:
            self._active.clear()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do: for tests and measurements."""
        return self._active.is_set() and self.queue.is_idle

    # The work.

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while True:
            await self._active.wait()
            if (ref := await self.queue.get()) is None:
                return
            self._busy.add(task)
            try:
                await self._reconcile(ref)
            finally:
                self._busy.discard(task)
                self.queue.done(ref)

    async def _reconcile(self, ref: ObjectRef) -> None:
        """Reconcile one object, and see to what became of it. Lets nothing through but cancellation."""
        if not self._active.is_set():
            self.queue.add(ref)
            await asyncio.sleep(0)
            return
        began = time.monotonic()
        fields: dict[str, Any] = {"object": str(ref)}
        result = "failed"
        try:
            result = await self._handle(ref)
            self.queue.succeeded(ref)
        except NotLeading:
            self.queue.add(ref, wait=1.0)
        except Waiting as wait:
            fields.update(retry=self.queue.retry(ref))
            _log.info(f"waiting: {wait}", extra={"fields": fields})
        except ApiError as error:
            fields.update(retry=self.queue.retry(ref), status=error.status, reason=error.reason)
            level = logging.DEBUG if error.is_conflict else logging.ERROR
            _log.log(level, f"request refused: {error.message}", extra={"fields": fields})
        except (Failed, Unreachable) as error:
            fields.update(retry=self.queue.retry(ref))
            _log.error(f"failed: {error}", extra={"fields": fields})
        except Exception:
            fields.update(retry=self.queue.retry(ref))
            _log.exception("a fault in OME itself; please report it", extra={"fields": fields})
        self.metrics.reconciled(ref.kind, result, time.monotonic() - began)

    async def _handle(self, ref: ObjectRef) -> str:
        if ref.kind == InferenceService.KIND:
            return await self._services.reconcile(ref)
        if ref.kind == AcceleratorClass.KIND:
            return await self._classes.reconcile(ref)
        return await self._runtimes.reconcile(ref)

    async def _resync(self) -> None:
        """Look at everything again from time to time. What is as it should be costs no request."""
        while True:
            await asyncio.sleep(self._options.resync * random.uniform(0.9, 1.1))
            self.world.resync()
            self.metrics.resyncs.inc()

    async def _collect(self) -> None:
        while True:
            await asyncio.sleep(_COLLECT_EVERY)
            await self._active.wait()
            try:
                await self._collector.collect()
            except (ApiError, Unreachable, NotLeading) as error:
                _log.warning(f"could not collect revisions: {error}")

    def _exposition(self) -> bytes:
        self.metrics.depth.set(len(self.queue))
        for kind, count in self.world.counts():
            self.metrics.objects.labels(kind).set(count)
        for engine in self._engines:
            self.metrics.plugins.labels(engine.name, engine.version).set(
                int(self._engines.is_up(engine))
            )
        for error in self._engines.errors:
            self.metrics.plugins.labels(error.name, "").set(0)
        return self.metrics.exposition()


def _identity() -> str:
    """Of this process in the election: the pod's name, and something of this start."""
    host = os.environ.get("POD_NAME") or socket.gethostname()
    return f"{host}_{uuid.uuid4()}"
