"""Garbage collection of runtime revisions. Source: OME "Runtime revisions and pinning" document (v1.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from ome.api import ObjectRef
from ome.controller.client import Api, ApiError
from ome.controller.resources import BY_KIND
from ome.controller.world import World
from ome.planning.conditions import stamp
from ome.resolution.revisions import (
    ELIGIBLE_SINCE,
    GRACE,
    KEPT_NEWEST,
    Collected,
    collect_revisions,
)

__all__ = ["Collector"]

_log: Final = logging.getLogger("ome.controller.revisions")


class Collector:
    """Marks, unmarks and deletes revisions of runtimes."""

    def __init__(
        self,
        api: Api,
        world: World,
        clock: Callable[[], datetime],
        *,
        keep: int = KEPT_NEWEST,
        grace: timedelta = GRACE,
    ) -> None:
        self._api = api
        self._world = world
        self._clock = clock
        self._keep = keep
        self._grace = grace

    async def collect(self) -> int:
        """Collect once; returns the number of writes. Raises ApiError, Unreachable and NotLeading."""
        used = self._world.concerns.pinned()
        revisions = self._world.revisions()
        due = list(
            collect_revisions(revisions, used, self._clock(), keep=self._keep, grace=self._grace)
        )
        uids = {each.name: each.uid for each in revisions}
        done = 0
        for each in due:
            try:
                done += await self._carry_out(each, uids[each.revision])
            except ApiError as error:
                if not error.is_missing:
                    raise
        return done

    async def _carry_out(self, collected: Collected, uid: str) -> bool:
        """Returns whether something was written."""
        resource = BY_KIND["ControllerRevision"]
        namespace, name = self._world.ome_namespace, collected.revision
        fields = {"revision": name, "action": collected.action}
        if collected.action == "Delete":
            if self._world.concerns.pinned_to(name):
                return False  # since it was decided
            await self._api.delete(resource, namespace, name, uid)
            self._world.remove_revision(ObjectRef(resource.kind, namespace, name))
            _log.info("collected a revision", extra={"fields": fields})
            return True
        _log.info("collected a revision", extra={"fields": fields})
        since = None if collected.since is None else stamp(collected.since)
        patch = {"metadata": {"annotations": {ELIGIBLE_SINCE: since}}}
        self._world.made_revision(await self._api.patch(resource, namespace, name, patch))
        return True
