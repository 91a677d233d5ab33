"""Measure parsing and rendering of the whole catalog, one service per runtime, and import time.

Prints a Markdown table of figures of one run; compare ratios, not runs on other machines.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from ome.api import ClusterServingRuntime, parse
from ome.engines.discovery import discover
from ome.engines.engines import Engines
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import load
from ome.testing.catalog import catalog_files, catalog_path, model_for, service_for

ROUNDS = 20


def main() -> int:
    """Run and print."""
    path = catalog_path()
    if not path.exists():
        print(f"no catalog at {path}: set OME_CATALOG to its .tar.gz or directory")
        return 1
    files = list(catalog_files(path))
    started = time.perf_counter()
    loaded = load(files)
    read = time.perf_counter() - started
    runtimes = [item for item in loaded.objects if isinstance(item, ClusterServingRuntime)]
    raws = [item.raw for item in runtimes]
    parsed = best_of(lambda: [parse(raw) for raw in raws])
    objects: list[Any] = []
    services: list[Any] = []
    for runtime in runtimes:
        model = model_for(runtime)
        service: Any = service_for(runtime, model)
        objects += [runtime, model, service]
        services.append(service)
    snapshot = Snapshot.of(objects)
    rows = [
        ("read and parse the whole catalog", f"{read * 1e3:.0f} ms ({len(files)} files)"),
        ("parse one runtime (JSON to object)", f"{parsed / len(raws) * 1e6:.0f} µs"),
    ]
    installed = discover()
    for label, engines in (
        ("no plugin", Engines()),
        (f"{len(list(installed))} plugin(s)", installed),
    ):
        times = per_service(snapshot, services, engines, provenance=False)
        rows.append((f"render one service, {label}: p50", f"{percentile(times, 50) * 1e3:.2f} ms"))
        rows.append((f"render one service, {label}: p99", f"{percentile(times, 99) * 1e3:.2f} ms"))
    traced = per_service(snapshot, services, Engines(), provenance=True)
    rows.append(("the same with provenance: p50", f"{percentile(traced, 50) * 1e3:.2f} ms"))
    rows.append(("import ome.cli.render", f"{cpu('import ome.cli.render') * 1e3:.0f} ms CPU"))
    rows.append(("ome --help", f"{cpu(HELP) * 1e3:.0f} ms CPU"))
    rows.append(("python -c pass", f"{cpu('pass') * 1e3:.0f} ms CPU"))
    print(f"Services: {len(services)}, rounds: {ROUNDS}\n")
    print("| What | Figure |\n| --- | --- |")
    for name, figure in rows:
        print(f"| {name} | {figure} |")
    return 0


HELP = "from ome.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass"


def best_of(function: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def per_service(
    snapshot: Snapshot, services: list[Any], engines: Engines, *, provenance: bool
) -> list[float]:
    """Seconds of every render of every service."""
    times = []
    for _ in range(ROUNDS):
        for service in services:
            started = time.perf_counter()
            plan(snapshot, service, engines, provenance=provenance)
            times.append(time.perf_counter() - started)
    return sorted(times)


def percentile(times: list[float], percent: int) -> float:
    """A percentile of sorted times."""
    return times[min(len(times) - 1, len(times) * percent // 100)]


def cpu(code: str) -> float:
    """CPU seconds of a Python process that runs `code`."""
    script = (
        f"import subprocess, sys, resource; subprocess.run([sys.executable, '-c', {code!r}], "
        "stdout=subprocess.DEVNULL); "
        "r = resource.getrusage(resource.RUSAGE_CHILDREN); print(r.ru_utime + r.ru_stime)"
    )
    times = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        times.append(float(done.stdout))
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
