"""A controller in this process, in a thread of its own, and what can be asked of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ome.controller.connecting import connect
from ome.controller.controller import Controller
from ome.controller.options import Address, Options
from ome.engines.discovery import discover

__all__ = ["Running", "running"]

_WRITES = {"create", "update", "patch", "delete"}
_METHODS = {"POST", "PUT", "PATCH", "DELETE"}
PATIENCE = 60.0
ANYWHERE = Address("127.0.0.1", 0)


@dataclass
class Running:
    """A controller that runs."""

    controller: Controller
    loop: asyncio.AbstractEventLoop
    sent: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        metrics = self.controller.metrics
        count = metrics.request

        def counted(method: str, url: str, code: str, seconds: float) -> None:
            self.sent.append((method, url.partition("?")[0]))
            count(method, url, code, seconds)

        metrics.request = counted  # type: ignore[method-assign]

    def requests(self) -> dict[tuple[str, str], int]:
        """Requests so far by verb and resource, the Lease's left out."""
        found: dict[tuple[str, str], int] = {}
        for metric in self.controller.metrics.registry.collect():
            for sample in metric.samples:
                if (
                    sample.name == "ome_api_requests_total"
                    and sample.labels["resource"] != "leases"
                ):
                    key = sample.labels["verb"], sample.labels["resource"]
                    found[key] = found.get(key, 0) + int(sample.value)
        return found

    def writes(self) -> dict[tuple[str, str], int]:
        """Those of them that write."""
        return {key: count for key, count in self.requests().items() if key[0] in _WRITES}

    def writes_in(self, namespace: str, kind: str = "") -> list[tuple[str, str]]:
        """The writes so far in a namespace where nobody else's services come to their end, and of one
        resource."""
        place = f"/namespaces/{namespace}/{kind}"
        return [each for each in self.sent if each[0] in _METHODS and place in each[1]]

    def value(self, name: str, **labels: str) -> float:
        """A metric's value, 0 when it was never set."""
        return self.controller.metrics.registry.get_sample_value(name, labels) or 0.0

    def reconciles(self) -> float:
        """How many reconciles there were."""
        return sum(
            sample.value
            for metric in self.controller.metrics.registry.collect()
            for sample in metric.samples
            if sample.name == "ome_reconciles_total"
        )

    def settle(self, quiet: float = 0.5) -> None:
        """Wait until nothing has been reconciled for a while."""
        deadline = time.monotonic() + PATIENCE
        before, since = -1.0, time.monotonic()
        while time.monotonic() < deadline:
            now = self.reconciles()
            if now != before or not self.controller.is_idle:
                before, since = now, time.monotonic()
            if time.monotonic() - since > quiet:
                return
            time.sleep(0.01)
        raise AssertionError("the controller doesn't come to rest")

    def resync(self) -> None:
        """Look at everything again, and wait until that is done."""
        self.call(self.controller.world.resync)
        self.settle(0.02)

    def call(self, function: Callable[[], Any]) -> Any:
        """Call something in the controller's thread."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE)


@contextmanager
def running(kubeconfig: Path, **options: Any) -> Iterator[Running]:
    """Run a controller until the block is left; a fault in it is raised then."""
    settings = Options(**{"health": ANYWHERE, "metrics": ANYWHERE, "workers": 4, **options})
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    made: list[Controller] = []
    faults: list[BaseException] = []

    async def work() -> None:
        client = await connect(str(kubeconfig))
        try:
            made.append(Controller(client, settings, discover()))
            await made[0].run(stop)
        finally:
            await client.close()
            await asyncio.sleep(0.25)  # until the TLS connections are closed

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(work())
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not made and not faults and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        if made:
            yield Running(made[0], loop)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        loop.close()
    if faults:
        raise faults[0]
