"""Measure the controller on a real control plane: many services applied at once, and a restart.

1,000 services of 100 runtimes are created by a client of its own while the controller runs; the time is
that from the first create to the last service's status. Beside it stands the floor, on a control plane
of its own: a bare client that, for each service that it sees created, sends the writes that the
controller has sent, with the same concurrency and nothing to decide. Writes are counted at the API
server. Prints Markdown tables; compare ratios of one run, not runs on other machines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from controlplane import ControlPlane  # noqa: E402
from ome.api import parse  # noqa: E402
from ome.controller.client import Api  # noqa: E402
from ome.controller.connecting import connect  # noqa: E402
from ome.controller.resources import BY_KIND  # noqa: E402
from ome.engines.engines import Engines  # noqa: E402
from ome.planning.planner import plan  # noqa: E402
from ome.snapshot import Snapshot  # noqa: E402

NAMESPACES = 10
SERVICE = BY_KIND["InferenceService"]
OME = [sys.executable, "-c", "from ome.cli.main import run; run()"]
COUNT = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
# What only the controller does, whatever else runs in the cluster.
OURS = {
    ("APPLY", "deployments"): "apply Deployment",
    ("APPLY", "services"): "apply Service",
    ("APPLY", "horizontalpodautoscalers"): "apply HorizontalPodAutoscaler",
    ("PATCH", "inferenceservices"): "patch InferenceService status",
    ("PATCH", "clusterservingruntimes"): "patch ClusterServingRuntime status",
}
CONDITIONS = [
    {"type": kind, "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for kind in ("EngineReady", "IngressReady", "Ready")
]
Json = dict[str, Any]


def runtime(at: int) -> Json:
    """A runtime of usual size."""
    runner = {
        "name": "ome-container",
        "image": f"engine:v{at}",
        "command": ["python3", "-m", "server", "--host=0.0.0.0", "--port=8080"],
        "args": [f"--option-{number}={number}" for number in range(20)],
        "env": [{"name": f"VARIABLE_{number}", "value": str(number)} for number in range(10)],
        "ports": [{"containerPort": 8080, "name": "http1", "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8080}},
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
    }
    engine = {"runner": runner, "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]}
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": f"runtime-{at}"},
        "spec": {"engineConfig": engine},
    }


def service(at: int, runtimes: int) -> Json:
    """A service that names one of the runtimes."""
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": f"s-{at}", "namespace": f"n-{at % NAMESPACES}"},
        "spec": {"runtime": {"name": f"runtime-{at % runtimes}"}, "engine": {"minReplicas": 1}},
    }


def nodes(count: int) -> Path:
    """Nodes with room for every pod."""
    items = []
    for at in range(count):
        room = {"cpu": "1000", "memory": "10Ti", "ephemeral-storage": "10Ti", "pods": "500"}
        labels = {"kubernetes.io/hostname": f"node-{at}", "kubernetes.io/os": "linux"}
        metadata = {"name": f"node-{at}", "labels": labels}
        status = {"capacity": room, "allocatable": room}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    path = Path(tempfile.mkdtemp()) / "nodes.yaml"
    path.write_text(yaml.safe_dump_all(items))
    return path


@contextmanager
def cluster(services: int) -> Iterator[ControlPlane]:
    """A control plane with OME's CRDs and the namespaces."""
    with ControlPlane.start(nodes(max(4, services // 100))) as plane:
        crds = subprocess.run([*OME, "crds"], capture_output=True, text=True, check=True).stdout
        plane.kubectl("apply", "--server-side", "-f", "-", stdin=crds)
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        for name in ("ome", *(f"n-{at}" for at in range(NAMESPACES))):
            plane.kubectl("create", "namespace", name)
        time.sleep(3)
        yield plane


def at_server(plane: ControlPlane) -> Counter[str]:
    """The writes so far, as the API server counts them."""
    found: Counter[str] = Counter()
    for labels, value in COUNT.findall(plane.kubectl("get", "--raw", "/metrics")):
        each = dict(LABEL.findall(labels))
        if name := OURS.get((each["verb"], each["resource"])):
            found[name] += int(float(value))
    return found


async def feed(api: Api, objects: list[Json], concurrency: int) -> None:
    """Create objects, so many at once."""
    waiting = iter(objects)

    async def work() -> None:
        for each in waiting:
            namespace = each["metadata"].get("namespace", "")
            await api.create(BY_KIND[each["kind"]], namespace, each)

    await asyncio.gather(*(work() for _ in range(concurrency)))


@asynccontextmanager
async def watching(api: Api) -> AsyncIterator[AsyncIterator[Json]]:
    """The events of InferenceServices from now on."""
    page = await api.page(SERVICE, "", {})
    query = {"resourceVersion": page["metadata"]["resourceVersion"]}
    async with api.watch(SERVICE, "", query, idle=300) as lines:

        async def events() -> AsyncIterator[Json]:
            async for line in lines:
                yield json.loads(line)

        yield events()


async def until_each(api: Api, wanted: int, holds: Callable[[Json], bool]) -> None:
    """Wait until something has been so of so many services."""
    seen: set[str] = set()
    async with watching(api) as events:
        async for event in events:
            if holds(event["object"]):
                seen.add(event["object"]["metadata"]["uid"])
                if len(seen) == wanted:
                    return


def prepared(services: list[Json], runtimes: int) -> dict[tuple[str, str], list[Json]]:
    """What the controller would apply for each service."""
    objects = [parse(runtime(at)) for at in range(runtimes)]
    snapshot, engines = Snapshot.of(objects, served=frozenset()), Engines([])
    found = {}
    for each in services:
        metadata = {**each["metadata"], "uid": "set when it is known"}
        item: Any = parse({**each, "metadata": metadata})
        found[metadata["namespace"], metadata["name"]] = list(
            plan(snapshot, item, engines).objects()
        )
    return found


async def floor(api: Api, services: list[Json], options: argparse.Namespace, patches: int) -> float:
    """Seconds that the bare client takes."""
    objects = prepared(services, options.runtimes)
    queue: asyncio.Queue[Json] = asyncio.Queue()

    async def listen() -> None:
        async with watching(api) as events:
            async for event in events:
                if event["type"] == "ADDED":
                    queue.put_nowait(event["object"])

    async def work() -> None:
        while True:
            metadata = (await queue.get())["metadata"]
            name = metadata["namespace"], metadata["name"]
            for each in objects[name]:
                each["metadata"]["ownerReferences"][0]["uid"] = metadata["uid"]
                await api.apply(BY_KIND[each["kind"]], each, force=True)
            for at in range(patches):
                body = {"status": {"observedGeneration": at + 1, "conditions": CONDITIONS}}
                await api.patch(SERVICE, *name, body, subresource="status")

    tasks = [asyncio.create_task(each()) for each in (listen, *[work] * options.workers)]
    done = until_each(
        api,
        len(services),
        lambda raw: (raw.get("status") or {}).get("observedGeneration") == patches,
    )
    took = await timed(api, services, options, done)
    for task in tasks:
        task.cancel()
    return took


async def timed(
    api: Api, services: list[Json], options: argparse.Namespace, done: Awaitable[None]
) -> float:
    """Seconds from the first create until something is done."""
    waiter = asyncio.ensure_future(done)
    await asyncio.sleep(1)
    began = time.monotonic()
    runtimes = [runtime(at) for at in range(options.runtimes)]
    await feed(api, runtimes + services, options.workers)
    await waiter
    return time.monotonic() - began


class Process:
    """The controller as a process of its own."""

    def __init__(self, kubeconfig: Path, workers: int) -> None:
        self._log = Path(tempfile.mkdtemp()) / "log"
        flags = [
            f"--kubeconfig={kubeconfig}",
            f"--inferenceservice-max-concurrent-reconciles={workers}",
            "--health-probe-addr=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--leader-elect",
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen([*OME, "controller", *flags], stderr=log, cwd=ROOT)
        while b'"msg": "working"' not in self._log.read_bytes():
            assert self.process.poll() is None, self._log.read_text()
            time.sleep(0.05)

    def memory(self) -> tuple[float, float]:
        """MB of memory now, and at most so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        values = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", text, re.MULTILINE))
        return int(values["VmRSS"]) / 1024, int(values["VmHWM"]) / 1024

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it as a cluster would."""
        self.process.terminate()
        self.process.wait()


def quiet(plane: ControlPlane) -> None:
    """Wait until services' statuses have stopped changing: pods come to life after the first status."""
    before, since = Counter[str](), time.monotonic()
    while time.monotonic() - since < 10:
        now = at_server(plane)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(1)


async def measure_controller(options: argparse.Namespace) -> tuple[float, int]:
    """Print what the controller does. Returns its seconds, and the status patches of a service by then."""
    services = [service(at, options.runtimes) for at in range(options.services)]
    with cluster(options.services) as plane:
        client = await connect(str(plane.kubeconfig))
        api = Api(client)
        process = Process(plane.kubeconfig, options.workers)
        base, cpu = process.memory()[0], process.cpu()
        first = until_each(api, options.services, lambda raw: bool(raw.get("status")))
        took = await timed(api, services, options, first)
        spent, counted = process.cpu() - cpu, at_server(plane)
        quiet(plane)
        settled, (now, most) = at_server(plane), process.memory()
        print(
            "| write, counted at the server | until every first status | until quiet | a service |"
        )
        print("| --- | --- | --- | --- |")
        for name, count in sorted(settled.items()):
            print(f"| {name} | {counted[name]} | {count} | {count / options.services:.2f} |")
        process.end()
        process = Process(plane.kubeconfig, options.workers)
        time.sleep(15)
        written = sum((at_server(plane) - settled).values())
        print(
            f"\nCPU until every first status {spent:.1f} s; RSS {base:.0f} MB at first, {now:.0f} MB now, "
            f"{most:.0f} MB at most; a restart: {written} writes, {process.memory()[0]:.0f} MB, "
            f"{process.cpu():.1f} s of CPU\n"
        )
        process.end()
        await client.close()
    return took, max(1, round(counted["patch InferenceService status"] / options.services))


async def measure(options: argparse.Namespace) -> None:
    """Everything, printed."""
    took, patches = await measure_controller(options)
    services = [service(at, options.runtimes) for at in range(options.services)]
    with cluster(options.services) as plane:
        client = await connect(str(plane.kubeconfig))
        bare = await floor(Api(client), services, options, patches)
        await client.close()
    print("| services | runtimes | at once | controller | floor | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    counts = f"| {options.services} | {options.runtimes} | {options.workers} "
    print(f"{counts}| {took:.1f} s | {bare:.1f} s | {took / bare:.2f} |")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--runtimes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=16)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
