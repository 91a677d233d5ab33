"""Leader election by a Lease: of several controllers one writes.

Nothing here trusts that clocks agree: a candidate takes a Lease over when it has seen it unchanged for the
lease's duration, by its own clock; a leader stops writing when its last successful renewal began
`renew_deadline` ago, which is earlier. Losing the Lease ends no process: it waits to lead again.
docs/adr/0011-the-controllers-client.md says why the client library's election isn't used.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ome.controller.client import Api, ApiError, Sleep, Unreachable
from ome.controller.resources import BY_KIND

__all__ = ["LEASE_NAME", "Election", "Times"]

# Seconds for giving the Lease up at the end.
_RELEASE: Final = 4.0
LEASE_NAME: Final = "ome-controller-manager-leader-lock"
_log: Final = logging.getLogger("ome.controller.leader")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: how long a Lease holds, how long its holder writes after a renewal, and how often it
    renews."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def problem(self) -> str:
        """Why these don't work, or "": lease > renew > 1.2 × retry."""
        if self.retry <= 0:
            return "the leader election's retry period must be greater than zero"
        if self.lease <= self.renew:
            return "the leader election's lease duration must be greater than its renew deadline"
        if self.renew <= 1.2 * self.retry:
            return (
                "the leader election's renew deadline must be greater than 1.2 × its retry period"
            )
        if self.lease < 1:
            return "the leader election's lease duration must be at least 1s"
        return ""


class Election:
    """Takes part in the election while `run` runs. `changed` is told when leading begins and ends."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        identity: str,
        *,
        times: Times = Times(),
        changed: Callable[[bool], None] = lambda leads: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._identity = identity
        self._times = times
        self._changed = changed
        self._clock = clock
        self._wait = sleep
        self._deadline = 0.0
        self._told = False
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = 0.0

    def time_to_write(self) -> float:
        """Seconds that a write which starts now may take; 0 when none may start. Nobody else leads before
        they are over."""
        now = self._clock()
        if now >= self._deadline:
            return 0.0
        return self._deadline - now + self._times.lease - self._times.renew

    async def run(self) -> None:
        """Lead whenever possible, until cancelled."""
        while True:
            began = self._clock()
            leads = False
            try:
                async with asyncio.timeout(self._times.renew):
                    leads = await self._try()
            except ApiError as error:
                # A conflict is another candidate, or somebody's hand: who holds the Lease shows next time.
                level = logging.DEBUG if error.is_conflict else logging.WARNING
                _log.log(level, f"could not renew the Lease: {error.message}")
            except (Unreachable, TimeoutError) as error:
                _log.warning(f"could not renew the Lease: {str(error) or 'timed out'}")
            else:
                if not leads:
                    self._deadline = 0.0
            if leads:
                self._deadline = began + self._times.renew
            self._tell()
            await self._sleep()

    async def _sleep(self) -> None:
        """Until the next try, telling in between when the deadline passes."""
        wake = self._clock() + self._times.retry
        if self._told and self._deadline < wake:
            await self._wait(max(0.0, self._deadline - self._clock()))
            self._tell()
        await self._wait(max(0.0, wake - self._clock()))

    async def release(self) -> None:
        """Give the Lease up, so that another one needn't wait for it. Nothing more is written after
        this."""
        led, self._deadline = self._told, 0.0
        self._tell()
        if not led:
            return
        try:
            await self._give_up()
        except (ApiError, Unreachable, TimeoutError) as error:
            _log.warning(f"could not release the Lease: {str(error) or 'timed out'}")

    async def _give_up(self) -> None:
        async with asyncio.timeout(_RELEASE):
            lease = await self._api.get(BY_KIND["Lease"], self._namespace, LEASE_NAME)
            if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                lease["spec"] = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._api.replace(BY_KIND["Lease"], self._namespace, LEASE_NAME, lease)

    async def _try(self) -> bool:
        """Take or renew the Lease if it is to be had. Raises ApiError and Unreachable."""
        resource = BY_KIND["Lease"]
        try:
            lease = await self._api.get(resource, self._namespace, LEASE_NAME)
        except ApiError as error:
            if not error.is_missing:
                raise
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": LEASE_NAME, "namespace": self._namespace},
                "spec": self._spec({}),
            }
            await self._api.create(resource, self._namespace, lease)
            return True
        spec = lease.get("spec") or {}
        if not self._is_free(spec):
            return False
        lease["spec"] = self._spec(spec)
        await self._api.replace(resource, self._namespace, LEASE_NAME, lease)
        return True

    def _is_free(self, spec: dict[str, Any]) -> bool:
        holder = spec.get("holderIdentity") or ""
        if holder in ("", self._identity):
            return True
        seen = (holder, str(spec.get("renewTime")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        held = float(spec.get("leaseDurationSeconds") or self._times.lease)
        return self._clock() - self._seen_at > held

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = old.get("holderIdentity") == self._identity
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._times.lease),
            "acquireTime": old.get("acquireTime", now) if mine else now,
            "renewTime": now,
            "leaseTransitions": transitions if mine or not old else transitions + 1,
        }

    def _tell(self) -> None:
        leads = self.time_to_write() > 0.0
        if leads != self._told:
            self._told = leads
            _log.info("leading" if leads else "no longer leading")
            self._changed(leads)
