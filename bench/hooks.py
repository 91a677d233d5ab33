"""Measure what the engine seam costs a render: with 4 and with 40 plugins, one of which owns the pods.

The plugins look at the container and answer at once, so the figures are the seam's: calls, copies and
checks. What an engine's own findings cost is in `bench/render.py`. `first` is a fleet of services whose
containers were never seen, `again` the same services planned anew. Prints a Markdown table; compare
ratios, not runs on other machines.
"""

from __future__ import annotations

import statistics
import sys
import time
import types
from typing import Any

from ome.api import parse
from ome.engines import CONTRACT, Basis, Container, Detection, EngineInfo, hookimpl
from ome.engines.engines import Engines, register
from ome.planning.planner import plan
from ome.snapshot import Snapshot

SERVICES = 300
ROUNDS = 15


def plugin(at: int) -> Any:
    """A plugin that recognises a command of its own."""
    name = f"engine-{at}"

    def detect(container: Container) -> Detection | None:
        words = container.argv
        return Detection(Basis.COMMAND, "1.0") if words[:1] == (name,) else None

    made = types.SimpleNamespace()
    made.ome_describe = hookimpl(lambda: EngineInfo(name, CONTRACT, name))
    made.ome_detect = hookimpl(detect)
    made.ome_findings = hookimpl(lambda view: [])
    return made


def fleet() -> tuple[Snapshot, list[Any]]:
    """Services of one runtime; each has arguments of its own."""
    runner = {
        "name": "ome-container",
        "image": "registry.example/engine:v1",
        "command": ["engine-0", "serve", *(f"--option-{at}={at}" for at in range(20))],
        "args": ["--served-model-name={{.Name}}"],
        "ports": [{"containerPort": 8080}],
    }
    items: list[Any] = [
        parse(
            {
                "apiVersion": "ome.io/v1beta1",
                "kind": "ClusterServingRuntime",
                "metadata": {"name": "rt"},
                "spec": {"engineConfig": {"runner": runner}},
            }
        )
    ]
    items += [
        parse(
            {
                "apiVersion": "ome.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {"name": f"chat-{at}", "namespace": "demo"},
                "spec": {"runtime": {"name": "rt"}, "engine": {}},
            }
        )
        for at in range(SERVICES)
    ]
    return Snapshot.of(items), items[1:]


def seconds(snapshot: Snapshot, services: list[Any], engines: Engines) -> float:
    """Time to plan every service once."""
    started = time.perf_counter()
    for service in services:
        plan(snapshot, service, engines)
    return time.perf_counter() - started


def made(count: int) -> Engines:
    """Fresh engines, with nothing kept from before."""
    loaded = [register(plugin(at), distribution=f"d{at}", version="1") for at in range(count)]
    return Engines(loaded, clock=time.monotonic)


def main() -> int:
    """Run and print."""
    snapshot, services = fleet()
    seconds(snapshot, services, Engines())
    found: dict[tuple[int, str], list[float]] = {}
    for _ in range(ROUNDS):  # all variants in every round, so that noise hits them alike
        for count in (0, 4, 40):
            engines = made(count)
            for turn in ("first", "again"):
                found.setdefault((count, turn), []).append(seconds(snapshot, services, engines))
    best = {key: min(times) / SERVICES * 1e6 for key, times in found.items()}
    print("| plugins | turn | render | over none |\n| --- | --- | --- | --- |")
    for (count, turn), each in best.items():
        spread = statistics.stdev(found[count, turn]) / SERVICES * 1e6
        over = f"{each - best[0, turn]:.1f} µs ({each / best[0, turn] - 1:.1%})" if count else "-"
        print(f"| {count} | {turn} | {each:.0f} µs (± {spread:.0f}) | {over} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
