"""The status of runtimes and accelerator classes.

Source: OME "Runtime inheritance" and "Accelerator classes" documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from ome.api import ObjectRef
from ome.controller import events
from ome.controller.client import Api
from ome.controller.patches import drop_finalizer, write_status
from ome.controller.world import World
from ome.planning.conditions import stamp, timed
from ome.planning.runtimes import report_runtime
from ome.planning.stored import conditions_by_type
from ome.scoring.accelerators import matches_node

__all__ = ["ClassReporter", "RuntimeReporter"]

Json = dict[str, Any]

# Left by upstream's controller: nothing has to be done before a class goes.
_CLASS_FINALIZER: Final = "acceleratorclasses.ome.io/finalizer"


class RuntimeReporter:
    """Keeps `status` of runtimes true: their inheritance chain, and whether it resolves."""

    def __init__(self, api: Api, world: World, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._world = world
        self._clock = clock

    async def reconcile(self, ref: ObjectRef) -> str:
        """Report one runtime. Returns `ok`, `held` for a chain that doesn't resolve, or `gone`."""
        runtime = self._world.runtime(ref)
        if runtime is None:
            return "gone"
        now = self._clock()
        report = report_runtime(self._world.snapshot(now), runtime)
        old = runtime.raw.get("status") or {}
        ours = {each["type"] for each in report.status["conditions"]}
        kept = [each for kind, each in conditions_by_type(old).items() if kind not in ours]
        conditions = timed([*report.status["conditions"], *kept], old, now)
        status = {**old, **report.status, "conditions": conditions}
        changed = _without_times(old.get("conditions")) != _without_times(status["conditions"])
        if report.event is not None and changed:
            await events.send(self._api, runtime, report.event, now)
        if (raw := await write_status(self._api, runtime, status)) is not None:
            self._world.wrote(raw)
        return "held" if report.event else "ok"


class ClassReporter:
    """Keeps `status` of accelerator classes true: the nodes that have them."""

    def __init__(self, api: Api, world: World, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._world = world
        self._clock = clock

    async def reconcile(self, ref: ObjectRef) -> str:
        """Report one class. Returns `ok`, `held` while the nodes aren't known, or `gone`."""
        found = self._world.accelerator_class(ref.name)
        if found is None:
            return "gone"
        if found.metadata.deletion_timestamp is not None:
            await drop_finalizer(self._api, found, _CLASS_FINALIZER)
            return "gone"
        if "Node" in self._world.unknown:
            return "held"
        nodes = self._nodes(found.raw.get("spec") or {})
        old = found.raw.get("status") or {}
        if old.get("nodes") == nodes or (not nodes and not old.get("nodes") and old):
            return "ok"
        at = stamp(self._clock())
        status = {**old, "nodes": nodes, "availableNodes": len(nodes), "lastUpdated": at}
        if (raw := await write_status(self._api, found, status)) is not None:
            self._world.wrote(raw)
        return "ok"

    def _nodes(self, spec: Json) -> list[str]:
        """The names of the nodes that have the class, sorted."""
        return sorted(
            name
            for name, node in self._world.nodes.items()
            if matches_node(spec, node["metadata"]["labels"], node["status"]["capacity"])
        )


def _without_times(conditions: Any) -> list[Json]:
    return [
        {key: each[key] for key in ("type", "status", "reason", "message") if key in each}
        for each in conditions or ()
        if isinstance(each, dict)
    ]
