"""The status of runtimes and accelerator classes.

Source: OME "Runtime inheritance" and "Accelerator classes" documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from ome.api import AcceleratorClass, ApiObject, ObjectRef
from ome.controller import events
from ome.controller.client import Api, ApiError
from ome.controller.patches import status_patch
from ome.controller.resources import BY_KIND
from ome.controller.world import World
from ome.planning.runtimes import report_runtime
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
        status = {**report.status, "conditions": _timed(old, report.status["conditions"], now)}
        changed = _without_times(old.get("conditions")) != _without_times(status["conditions"])
        if report.event is not None and changed:
            await events.send(self._api, runtime, report.event, now)
        await _write(self._api, self._world, runtime, status)
        return "held" if report.event else "ok"


class ClassReporter:
    """Keeps `status` of accelerator classes true: the nodes that have them."""

    def __init__(self, api: Api, world: World, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._world = world
        self._clock = clock

    async def reconcile(self, ref: ObjectRef) -> str:
        """Report one class. Returns `ok` or `gone`."""
        found = self._world.accelerator_class(ref.name)
        if found is None:
            return "gone"
        if found.metadata.deletion_timestamp is not None:
            await self._let_go(found)
            return "gone"
        nodes = self._nodes(found.raw.get("spec") or {})
        old = found.raw.get("status") or {}
        if old.get("nodes") == nodes or (not nodes and not old.get("nodes") and old):
            return "ok"
        at = self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {**old, "nodes": nodes, "availableNodes": len(nodes), "lastUpdated": at}
        await _write(self._api, self._world, found, status)
        return "ok"

    def _nodes(self, spec: Json) -> list[str]:
        """The names of the nodes that have the class, sorted."""
        return sorted(
            name
            for name, node in self._world.nodes.items()
            if matches_node(spec, node["metadata"]["labels"], node["status"]["capacity"])
        )

    async def _let_go(self, found: AcceleratorClass) -> None:
        finalizers = found.metadata.finalizers or []
        if _CLASS_FINALIZER not in finalizers:
            return
        at = finalizers.index(_CLASS_FINALIZER)
        path = f"/metadata/finalizers/{at}"
        body = [
            {"op": "test", "path": path, "value": _CLASS_FINALIZER},
            {"op": "remove", "path": path},
        ]
        try:
            await self._api.patch(BY_KIND[found.KIND], "", found.name, body)
        except ApiError as error:
            if not error.is_missing:
                raise


async def _write(api: Api, world: World, item: ApiObject, status: Mapping[str, Any]) -> None:
    patch = status_patch(item.raw, status)
    if patch is None:
        return
    resource = BY_KIND[item.KIND]
    try:
        raw = await api.patch(resource, item.namespace, item.name, patch, subresource="status")
    except ApiError as error:
        if error.is_missing:
            return
        raise
    world.put(raw)


def _timed(old: Mapping[str, Any], conditions: list[Json], now: datetime) -> list[Json]:
    """Conditions with the time of their last change of status."""
    before = {
        each.get("type"): each for each in old.get("conditions") or () if isinstance(each, dict)
    }
    timed = []
    for each in conditions:
        known = before.get(each["type"], {})
        at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        if known.get("status") == each["status"] and known.get("lastTransitionTime"):
            at = known["lastTransitionTime"]
        timed.append({**each, "lastTransitionTime": at})
    return timed


def _without_times(conditions: Any) -> list[Json]:
    return [
        {key: each[key] for key in ("type", "status", "reason", "message") if key in each}
        for each in conditions or ()
        if isinstance(each, dict)
    ]
