"""Measure the controller on a real control plane: many services applied at once, and a restart.

1,000 services of 100 runtimes are created by a client of its own while the controller runs; the time is
that from the first create to the last service's status. Beside it stands the floor: a bare client that,
for each service that it sees created, sends the writes that the controller has sent, with the same
concurrency and nothing to decide. Requests are counted at the API server. Prints Markdown; compare
ratios of one run, not runs on other machines.
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
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from controlplane import ControlPlane  # noqa: E402
from ome.api import parse  # noqa: E402
from ome.controller.client import Api, connect  # noqa: E402
from ome.controller.resources import BY_KIND  # noqa: E402
from ome.engines.engines import Engines  # noqa: E402
from ome.planning.planner import plan  # noqa: E402
from ome.snapshot import Snapshot  # noqa: E402

NAMESPACES = 10
SERVICE = BY_KIND["InferenceService"]
RUNTIME = BY_KIND["ClusterServingRuntime"]
COUNT = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
OURS = {
    ("APPLY", "deployments"),
    ("APPLY", "services"),
    ("APPLY", "horizontalpodautoscalers"),
    ("PATCH", "inferenceservices"),
}


def runtime(at: int) -> dict[str, Any]:
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


def service(prefix: str, at: int, runtimes: int) -> dict[str, Any]:
    """A service that names one of the runtimes."""
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": f"s-{at}", "namespace": f"{prefix}-{at % NAMESPACES}"},
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


def at_server(plane: ControlPlane) -> Counter[tuple[str, str]]:
    """Requests so far by verb and resource, as the API server counts them."""
    found: Counter[tuple[str, str]] = Counter()
    for labels, value in COUNT.findall(plane.kubectl("get", "--raw", "/metrics")):
        each = dict(LABEL.findall(labels))
        if (each["verb"], each["resource"]) in OURS:
            found[each["verb"], each["resource"]] += int(float(value))
    return found


async def every(jobs: list[Any], concurrency: int) -> None:
    """Run jobs, so many at once."""
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job

    await asyncio.gather(*(work() for _ in range(concurrency)))


async def feed(api: Api, objects: list[dict[str, Any]], concurrency: int) -> None:
    """Create objects."""
    jobs = [
        api.create(BY_KIND[each["kind"]], each["metadata"].get("namespace", ""), each)
        for each in objects
    ]
    await every(jobs, concurrency)


async def statuses(api: Api, prefix: str, wanted: int) -> None:
    """Wait until so many services of these namespaces have a status."""
    seen: set[str] = set()
    page = await api.page(SERVICE, "", {})
    for item in page["items"]:
        if item["metadata"]["namespace"].startswith(prefix) and item.get("status"):
            seen.add(f"{item['metadata']['namespace']}/{item['metadata']['name']}")
    query = {"resourceVersion": page["metadata"]["resourceVersion"]}
    async with api.watch(SERVICE, "", query, idle=120) as lines:
        if len(seen) >= wanted:
            return
        async for line in lines:
            item = json.loads(line)["object"]
            metadata = item["metadata"]
            if metadata["namespace"].startswith(prefix) and item.get("status"):
                seen.add(f"{metadata['namespace']}/{metadata['name']}")
                if len(seen) >= wanted:
                    return


async def floor(
    api: Api, prefix: str, objects: list[dict[str, Any]], patches: int, concurrency: int
) -> None:
    """Send what the controller would have sent, as services appear."""
    snapshot_runtimes = [parse({**runtime(at)}) for at in range(100)]
    engines = Engines([])
    snapshot = Snapshot.of(snapshot_runtimes, served=frozenset())
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    page = await api.page(SERVICE, "", {})
    query = {"resourceVersion": page["metadata"]["resourceVersion"]}
    left = len(objects)

    async def listen() -> None:
        remaining = left
        async with api.watch(SERVICE, "", query, idle=120) as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] == "ADDED" and event["object"]["metadata"]["namespace"].startswith(
                    prefix
                ):
                    queue.put_nowait(event["object"])
                    remaining -= 1
                    if not remaining:
                        break
        for _ in range(concurrency):
            queue.put_nowait(None)

    async def work() -> None:
        while (raw := await queue.get()) is not None:
            decided = prepared[raw["metadata"]["namespace"], raw["metadata"]["name"]]
            for each in decided:
                each["metadata"]["ownerReferences"][0]["uid"] = raw["metadata"]["uid"]
                await api.apply(BY_KIND[each["kind"]], each, force=True)
            for at in range(patches):
                body = {"status": {"observedGeneration": at, "conditions": CONDITIONS}}
                metadata = raw["metadata"]
                await api.patch(
                    SERVICE, metadata["namespace"], metadata["name"], body, subresource="status"
                )

    prepared = {}
    for each in objects:
        item = parse({**each, "metadata": {**each["metadata"], "uid": "later"}})
        found = plan(snapshot, item, engines)  # type: ignore[arg-type]
        prepared[each["metadata"]["namespace"], each["metadata"]["name"]] = list(found.objects())
    await asyncio.gather(
        listen(), feed(api, objects, concurrency), *(work() for _ in range(concurrency))
    )


CONDITIONS = [
    {"type": kind, "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for kind in ("EngineReady", "IngressReady", "Ready")
]


class Process:
    """The controller as a process of its own."""

    def __init__(self, kubeconfig: Path, workers: int) -> None:
        self._log = tempfile.TemporaryFile()
        flags = [
            f"--kubeconfig={kubeconfig}",
            f"--inferenceservice-max-concurrent-reconciles={workers}",
            "--health-probe-addr=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--leader-elect",
        ]
        program = "from ome.cli.main import run; run()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "controller", *flags], stderr=self._log, cwd=ROOT
        )
        while b'"msg": "working"' not in self.log():
            assert self.process.poll() is None, self.log().decode()
            time.sleep(0.05)

    def log(self) -> bytes:
        return os.pread(self._log.fileno(), 1 << 30, 0)

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
        self.process.terminate()
        self.process.wait()


def quiet(plane: ControlPlane) -> None:
    """Wait until the cluster's own controllers are done with what was created."""
    before, since = Counter[tuple[str, str]](), time.monotonic()
    while time.monotonic() - since < 5:
        now: Counter[tuple[str, str]] = Counter()
        text = plane.kubectl("get", "--raw", "/metrics")
        for labels, value in COUNT.findall(text):
            each = dict(LABEL.findall(labels))
            if each["verb"] in ("POST", "PUT", "PATCH", "APPLY") and each["resource"] in (
                "pods",
                "replicasets",
                "deployments",
                "inferenceservices",
            ):
                now[each["verb"], each["resource"]] += int(float(value))
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.5)


async def measure(options: argparse.Namespace) -> None:
    """Everything, printed."""
    with ControlPlane.start(nodes(max(4, options.services // 100))) as plane:
        kubectl = plane.kubectl
        crds = subprocess.run(
            [sys.executable, "-c", "from ome.cli.main import run; run()", "crds"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        kubectl("apply", "--server-side", "-f", "-", stdin=crds)
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        kubectl("create", "namespace", "ome")
        for prefix in ("real", "floor"):
            for at in range(NAMESPACES):
                kubectl("create", "namespace", f"{prefix}-{at}")
        client = await connect(str(plane.kubeconfig))
        api = Api(client)
        process = Process(plane.kubeconfig, options.workers)
        await asyncio.sleep(2)
        base = process.memory()[0]
        objects = [runtime(at) for at in range(options.runtimes)]
        services = [service("real", at, options.runtimes) for at in range(options.services)]
        before, cpu = at_server(plane), process.cpu()
        began = time.monotonic()
        waiter = asyncio.create_task(statuses(api, "real", options.services))
        print("base", base)
        await feed(api, objects + services, options.workers)
        fed = time.monotonic() - began
        await waiter
        took = time.monotonic() - began
        first = at_server(plane) - before
        spent = process.cpu() - cpu
        print(f"fed {fed:.1f}, status {took:.1f}, cpu {spent:.1f}", first, process.memory())
        quiet(plane)
        counted = at_server(plane) - before
        now, most = process.memory()
        print(
            f"base {base:.0f} MB; fed {fed:.1f} s; last status {took:.1f} s; cpu {spent:.1f} s; RSS {now:.0f} MB, most {most:.0f} MB"
        )
        for key, count in sorted(counted.items()):
            print("|", *key, "|", first[key], "|", count, "|", f"{count / options.services:.2f} |")
        process.end()
        before = at_server(plane)
        process = Process(plane.kubeconfig, options.workers)
        await asyncio.sleep(10)
        print(
            "restart: writes",
            dict(at_server(plane) - before),
            "memory",
            process.memory(),
            "cpu",
            process.cpu(),
        )
        process.end()
        patches = max(1, round(first["PATCH", "inferenceservices"] / options.services))
        services = [service("floor", at, options.runtimes) for at in range(options.services)]
        began = time.monotonic()
        await floor(api, "floor", services, patches, options.workers)
        bare = time.monotonic() - began
        print(f"floor with {patches} patches: {bare:.1f} s; ratio {took / bare:.2f}")
        await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--runtimes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=16)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
