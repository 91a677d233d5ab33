"""Measure an edit to a shared parent: time to know which services it concerns, and to render them anew.

Fleets of different sizes with the same number of affected services stand in one table, so that it shows
whether the cost grows with what is affected or with what exists. Prints a Markdown table; compare
ratios, not runs on other machines.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from ome.api import ApiObject, parse
from ome.engines.engines import Engines
from ome.planning.planner import plan
from ome.resolution.dependents import Dependents
from ome.snapshot import Kept, Lineage, Snapshot

PER_CHILD = 5
# (runtimes, of which children of the parent that is edited); each runtime has PER_CHILD services.
RUNS = [(1_000, 1), (1_000, 10), (1_000, 100), (1_000, 1_000), (10_000, 10), (10_000, 100)]
COLUMNS = (
    "runtimes",
    "services",
    "affected runtimes",
    "affected services",
    "know",
    "know, per service",
    "render",
    "render, per service",
)
ROUNDS = 5


def runtime(name: str, image: str = "", parent: str = "") -> Any:
    """A parent holds the image and the command, a child its flags and resources."""
    runner: dict[str, Any] = {"name": "ome-container"}
    if image:
        runner |= {"image": image, "command": ["python3", "-m", "server", "--port=8080"]}
        runner["ports"] = [{"containerPort": 8080}]
    else:
        runner["args"] = [f"--option-{at}={at}" for at in range(20)]
        runner["resources"] = {"limits": {"cpu": "10", "memory": "30Gi", "nvidia.com/gpu": "1"}}
    annotations = {"ome.io/inherit-from": parent} if parent else {}
    return parse(
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": "ClusterServingRuntime",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"engineConfig": {"runner": runner}},
        }
    )


def service(at: int, runtime_name: str) -> Any:
    """A service that names a runtime."""
    return parse(
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": f"chat-{at}", "namespace": f"team-{at % 200}"},
            "spec": {"runtime": {"name": runtime_name}, "engine": {}},
        }
    )


def measure(count: int, children: int) -> tuple[float, float, int]:
    """Seconds to know and to render, and the number of services affected: the best of some rounds."""
    objects: dict[Any, ApiObject] = {}
    for at in range(count):
        parent = "edited" if at < children else "other"
        made = runtime(f"child-{at}", parent=parent)
        objects[made.ref] = made
    for name in ("edited", "other"):
        made = runtime(name, image="engine:v1")
        objects[made.ref] = made
    services = [service(at, f"child-{at // PER_CHILD}") for at in range(count * PER_CHILD)]
    lineage, dependents = Lineage(objects.values()), Dependents(services)  # type: ignore[arg-type]
    engines = Engines()
    best = (float("inf"), float("inf"))
    for turn in range(ROUNDS):
        edited = runtime("edited", image=f"engine:v{turn + 2}")
        objects[edited.ref] = edited
        snapshot = Snapshot.of([*objects.values(), *services], kept=Kept(lineage))
        started = time.perf_counter()
        concerned = dependents.of(lineage.put(edited), snapshot)
        known = time.perf_counter()
        plans = [
            plan(snapshot, snapshot.service(ref.namespace, ref.name), engines)  # type: ignore[arg-type]
            for ref in concerned
        ]
        done = time.perf_counter()
        assert len(plans) == children * PER_CHILD
        assert not any(True for each in plans for _ in each.refusals())
        best = min(best[0], known - started), min(best[1], done - known)
    return *best, len(concerned)


def main() -> int:
    """Run and print."""
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for count, children in RUNS:
        know, render, affected = measure(count, children)
        print(
            f"| {count:,} | {count * PER_CHILD:,} | {children:,} | {affected:,} "
            f"| {know * 1e3:.2f} ms | {know / affected * 1e6:.1f} µs "
            f"| {render * 1e3:.1f} ms | {render / affected * 1e6:.0f} µs |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
