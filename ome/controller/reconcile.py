"""Reconciling an InferenceService: plan, effects, objects, events, status, in this order.

Source: DESIGN, "The shells"; the order and the messages of the documented failures are OME's (v1.3).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from ome.api import InferenceService, ObjectRef, Problem
from ome.controller import events
from ome.controller.client import Api, ApiError
from ome.controller.patches import drop_finalizer, write_status
from ome.controller.telemetry import Metrics
from ome.controller.world import World
from ome.controller.writing import Failure, Outcome, Writer
from ome.engines.engines import Engines
from ome.planning.conditions import WORKLOAD_APPLIED
from ome.planning.plan import Event, Plan
from ome.planning.planner import plan, unreadable
from ome.planning.status import report_service
from ome.resolution.selection import trigger_of
from ome.snapshot import Snapshot

__all__ = ["Failed", "ServiceReconciler", "Waiting"]

Json = dict[str, Any]
_log: Final = logging.getLogger("ome.controller.service")

# OME needs none; upstream's controller may have left this one.
_FINALIZER: Final = "inferenceservice.finalizers"


class Failed(Exception):
    """A reconcile has to be tried again: what it came to stands in the service's status, and here."""


class Waiting(Exception):
    """Something has to be gone first, and will be soon. It stands in the service's status, and here."""


class ServiceReconciler:
    """Brings about what services ask for. One service is reconciled by one caller at a time."""

    def __init__(
        self,
        api: Api,
        world: World,
        writer: Writer,
        engines: Engines,
        *,
        metrics: Metrics,
        clock: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._world = world
        self._writer = writer
        self._engines = engines
        self._metrics = metrics
        self._clock = clock
        self._decided: dict[ObjectRef, int] = {}
        # The events that were sent of a change, until the status that tells of it is written.
        self._sent: dict[ObjectRef, set[str]] = {}

    async def reconcile(self, ref: ObjectRef) -> str:
        """Make one service true. Returns `ok`, `held` or `gone`.

        Raises Failed when it has to be tried again, and ApiError, Unreachable, Waiting, NotLeading.
        """
        service = self._world.service(ref) or self._world.unread.service(ref)
        if service is None:
            self._decided.pop(ref, None)
            self._sent.pop(ref, None)
            return "gone"
        if service.metadata.deletion_timestamp is not None:
            # What it owns goes by its owner references; upstream's finalizer would hold it up for ever.
            await drop_finalizer(self._api, service, _FINALIZER)
            return "gone"
        now = self._clock()
        looked_up: set[ObjectRef] = set()
        snapshot = self._world.snapshot(now, service, looked_up)
        problems = self._world.unread.problems(ref)
        decided = unreadable(service, problems) if problems else self._plan(snapshot, service)
        held = decided.is_held
        names_runtime = bool(((service.raw.get("spec") or {}).get("runtime") or {}).get("name"))
        if not problems:
            skips = bool(decided.overlays and decided.overlays.skipped)
            chooses = held and not names_runtime
            self._world.concerns.planned(ref, looked_up, held=held or skips, chooses=chooses)
        self._tell(service, decided)
        failures = await self._effects(decided)
        if failures:
            # No status may name what isn't there.
            outcome = Outcome(failures, unreached=list(decided.actions))
            decided = replace(decided, status={})
        else:
            outcome = await self._writer.carry_out(service, decided)
        if outcome.written:
            fields = {"service": str(ref), "objects": outcome.written}
            _log.info("wrote objects", extra={"fields": fields})
        await self._report(service, decided, outcome, now)
        if outcome.failures:
            text = "; ".join(each.message for each in outcome.failures)
            raise (Waiting if all(each.waits for each in outcome.failures) else Failed)(text)
        return "held" if held else "ok"

    def _plan(self, snapshot: Snapshot, service: InferenceService) -> Plan:
        began = time.thread_time()
        found = plan(snapshot, service, self._engines)
        self._metrics.planned(time.thread_time() - began)
        return found

    async def _effects(self, decided: Plan) -> list[Failure]:
        """Revisions are written before anything that is served from them."""
        try:
            for raw in await self._writer.carry_out_effects(decided.effects):
                self._world.made_revision(raw)
        except ApiError as error:
            ref = ObjectRef("ControllerRevision", self._world.ome_namespace, "")
            return [Failure("runtime", ref, error.reason, error.message)]
        return []

    async def _report(
        self, service: InferenceService, decided: Plan, outcome: Outcome, now: datetime
    ) -> None:
        """Events and status. The status tells what is true after the writes."""
        decided = decided.held_back(_not_brought_about(outcome))
        decided = replace(
            decided,
            conditions=(*decided.conditions, *_failure_conditions(outcome.failures)),
            events=(*decided.events, *_failure_events(outcome.failures)),
            decision=self._recorded(service, decided, outcome, now),
        )
        live = self._world.live(service)
        report = report_service(service, decided, live, self._world.config, now)
        sent = self._sent.setdefault(service.ref, set())
        for event in report.events:
            if event.digest not in sent:
                await events.send(self._api, service, event, now)
                sent.add(event.digest)
        try:
            raw = await write_status(self._api, service, report.status)
        except ApiError as error:
            text = f'Failed to update status for InferenceService "{service.name}": {error.message}'
            event = Event("Warning", "UpdateFailed", text)
            if not error.is_conflict and event.digest not in sent:
                sent.add(event.digest)
                await events.send(self._api, service, event, now)
            raise
        del self._sent[service.ref]
        if raw is not None:
            self._world.wrote(raw)

    def _recorded(
        self, service: InferenceService, decided: Plan, outcome: Outcome, now: datetime
    ) -> Json | None:
        """The decision with the choice's trigger as it is after our own writes, which trigger nothing."""
        decision = decided.decision
        if decision is None or "record" not in decision or not outcome.written:
            return decision
        trigger = trigger_of(self._world.snapshot(now, service), service)
        return {**decision, "record": {**decision["record"], "trigger": trigger}}

    def _tell(self, service: InferenceService, decided: Plan) -> None:
        """One line for each decision that is another one than before."""
        refusals = list(decided.refusals())
        runtime = (decided.decision or {}).get("runtime", "")
        told = hash((runtime, decided.warnings, *refusals))
        if self._decided.get(service.ref) == told:
            return
        self._decided[service.ref] = told
        fields: Json = {"service": str(service.ref), "generation": service.generation}
        if decided.decision is not None:
            fields.update(runtime=runtime, selection=decided.decision["selection"])
        if not refusals:
            _log.info("decided", extra={"fields": fields})
        for warning in decided.warnings:
            more = {**fields, "code": warning.code, "warning": str(warning)}
            _log.warning("planned with a warning", extra={"fields": more})
        for component, problem in refusals:
            name = "component" if decided.decision is not None else "held"
            more = {**fields, name: component, "code": problem.code, "error": str(problem)}
            message = "Failed to reconcile component" if decided.decision else "held"
            _log.warning(message, extra={"fields": more})


def _not_brought_about(outcome: Outcome) -> dict[str, Problem]:
    """The components that are not as planned, each with what went wrong first."""
    failures = outcome.failures
    found = {each.component: each for each in reversed(failures)}
    stopped = next((each for each in failures if each.stops), None)
    if stopped is not None:
        found |= dict.fromkeys(outcome.unreached, stopped)
    return {name: Problem(each.reason, each.message, each.ref) for name, each in found.items()}


def _failure_conditions(failures: Sequence[Failure]) -> tuple[Json, ...]:
    if not failures:
        return ()
    first = failures[0]
    condition = {
        "type": WORKLOAD_APPLIED,
        "status": "False",
        "severity": "Info",
        "reason": first.reason,
        "message": "; ".join(dict.fromkeys(each.message for each in failures)),
    }
    return (condition,)


def _failure_events(failures: Sequence[Failure]) -> tuple[Event, ...]:
    found = (Event("Warning", "InternalError", each.message) for each in failures if not each.waits)
    return tuple(dict.fromkeys(found))
