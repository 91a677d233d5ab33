"""Measure choosing a runtime: fleets of 100, 1,000 and 10,000 runtimes with at most 50 in a bucket,
and one bucket of 3,000. The linear scan stands beside it in the same run.

Prints a Markdown table; compare ratios, not runs on other machines.
"""

from __future__ import annotations

import json
import random
import sys
import time
import tracemalloc
from typing import Any

from ome.api import ObjectRef
from ome.scoring.index import RuntimeIndex
from ome.scoring.ranking import rank
from ome.scoring.verdict import ANY_SERVICE, judge

Json = dict[str, Any]
RUNS = [(100, 50), (1_000, 50), (10_000, 50), (10_000, 3_000)]
CHOICES = 2_000
COLUMNS = (
    "runtimes",
    "bucket",
    "choose p50",
    "choose p99",
    "linear scan p50",
    "explain all",
    "update p50",
    "bytes each",
)


def fleet(count: int, bucket: int, seed: int = 1) -> dict[ObjectRef, bytes]:
    """Runtimes as raw JSON, `bucket` of them for each architecture: a catalog runtime's size each."""
    dice = random.Random(seed)
    made = {}
    for at in range(count):
        low = dice.choice([1, 2, 4, 7, 13, 30, 60])
        entry = {
            "modelFormat": {"name": "safetensors", "version": "1.0.0"},
            "modelFramework": {
                "name": "transformers",
                "version": dice.choice(["4.45.0", "4.50.0"]),
            },
            "modelArchitecture": f"Architecture{at // bucket}ForCausalLM",
            "autoSelect": dice.random() < 0.9,
            "priority": dice.choice([1, 1, 1, 2]),
        }
        command = [
            "python3",
            "-m",
            "server",
            *(f"--option-{i}={dice.random():.6f}" for i in range(105)),
        ]
        spec = {
            "disabled": dice.random() < 0.02,
            "supportedModelFormats": [entry],
            "modelSizeRange": {"min": f"{low}B", "max": f"{low * dice.choice([2, 3])}B"},
            "engineConfig": {
                "runner": {"name": "ome-container", "image": "e:v1", "command": command}
            },
        }
        ref = ObjectRef("ClusterServingRuntime", "", f"runtime-{at:05}")
        made[ref] = json.dumps(spec).encode()
    return made


def model(architecture: int) -> Json:
    """A model of one architecture."""
    return {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.45.0"},
        "modelArchitecture": f"Architecture{architecture}ForCausalLM",
        "modelParameterSize": "8B",
    }


def measure(count: int, bucket: int) -> Json:
    """One fleet's figures, times in seconds and memory in bytes."""
    raw = fleet(count, bucket)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = dict(raw)  # what a store keeps: the bytes themselves are counted below
    index = RuntimeIndex()
    for ref, data in kept.items():
        index.put(ref, json.loads(data))
    keys = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    dice = random.Random(2)
    models = [model(dice.randrange(max(1, count // bucket))) for _ in range(CHOICES)]
    rounds = CHOICES if bucket < 1_000 else 50
    choices = timed(lambda at: index.choose("demo", models[at], ANY_SERVICE), rounds)
    specs = {ref: json.loads(data) for ref, data in raw.items()}

    def scan(at: int) -> object:
        return rank(judge(ref, spec, models[at], ANY_SERVICE) for ref, spec in specs.items())

    scans = timed(scan, 3)
    assert all(index.choose("demo", models[at], ANY_SERVICE) == scan(at) for at in range(3))
    explains = timed(lambda at: explain(raw, models[at]), 3)
    refs = list(raw)
    updates = timed(
        lambda at: index.put(refs[at % len(refs)], specs[refs[at % len(refs)]]), CHOICES
    )
    return {
        "fleet": count,
        "bucket": bucket,
        "choose": choices,
        "scan": scans,
        "explain": explains,
        "update": updates,
        "bytes": (keys + sum(map(len, raw.values())) + 33 * count) / count,
    }


def explain(raw: dict[ObjectRef, bytes], wanted: Json) -> object:
    """Every verdict, from the raw bytes of a store."""
    return [judge(ref, json.loads(data), wanted, ANY_SERVICE) for ref, data in raw.items()]


def timed(function: Any, rounds: int) -> list[float]:
    """Sorted seconds of each call."""
    times = []
    for at in range(rounds):
        started = time.perf_counter()
        function(at)
        times.append(time.perf_counter() - started)
    return sorted(times)


def main() -> int:
    """Run and print."""
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for count, bucket in RUNS:
        found = measure(count, bucket)
        choose, update = found["choose"], found["update"]
        print(
            f"| {count:,} | {bucket:,} | {choose[len(choose) // 2] * 1e6:.0f} µs "
            f"| {choose[len(choose) * 99 // 100] * 1e6:.0f} µs "
            f"| {found['scan'][1] * 1e3:.2f} ms | {found['explain'][1] * 1e3:.0f} ms "
            f"| {update[len(update) // 2] * 1e6:.0f} µs | {found['bytes']:,.0f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
