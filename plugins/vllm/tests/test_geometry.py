"""What a launch tells of how the model is spread over accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Geometry, PodView
from ome_engine_vllm.geometry import geometry_of

ViewBuilder = Callable[..., PodView]
NEW = Geometry(shards=8, attention_shards=4, pipeline=2, memory_fraction=0.92)
ARGS = ["--port=8080"]

# name, overrides, the geometry
CASES: list[tuple[str, dict[str, Any], Geometry | None]] = [
    ("well-behaved", {}, NEW),
    ("alone", {"args": ARGS}, Geometry(1, 1, 1, 0.92)),
    ("older", {"version": "0.18.0"}, Geometry(8, 4, 2, 0.90)),
    ("between", {"version": "0.19.0"}, Geometry(8, 4, 2, None)),
    ("version unknown", {"version": ""}, Geometry(8, 4, 2, None)),
    ("memory", {"args": [*ARGS, "--gpu_memory_utilization=0.8"]}, Geometry(1, 1, 1, 0.8)),
    ("memory by reference", {"args": [*ARGS, "--gpu-memory-util=$(M)"]}, Geometry(1, 1, 1, None)),
    ("too much memory", {"args": [*ARGS, "--gpu-memory-util=9"]}, Geometry(1, 1, 1, None)),
    ("tensor by reference", {"args": [*ARGS, "-tp=$(N)"]}, Geometry(None, None, 1, 0.92)),
    ("no tensor", {"args": [*ARGS, "-tp=0"]}, Geometry(None, None, 1, 0.92)),
    (
        "quantized",
        {"args": [*ARGS, "-q", "fp8", "--kv-cache-dtype=fp8_e4m3"]},
        Geometry(1, 1, 1, 0.92, "fp8", 1),
    ),
    ("odd cache", {"args": [*ARGS, "--kv-cache-dtype=nvfp4"]}, Geometry(1, 1, 1, 0.92, "", None)),
    ("replicas", {"args": [*ARGS, "-dp=2"]}, Geometry(1, 1, 1, 0.92)),
    ("experts", {"more": ["-ep"]}, NEW),
    ("experts over replicas", {"args": [*ARGS, "-ep", "-dp=2"]}, Geometry(None, 1, 1, 0.92)),
    (
        "context",
        {"args": [*ARGS, "-tp=2", "-dcp=2"]},
        Geometry(2, 2, 1, 0.92, kv_bytes=None),
    ),
    (
        "image alone",  # its entrypoint may add flags, so what isn't given isn't known
        {"command": [], "args": ["m"]},
        Geometry(None, None, None, None, None, None),
    ),
    ("opaque", {"command": ["sh", "-c", "a; vllm serve m"], "args": []}, None),
    ("Ray node", {"command": ["ray", "start", "--block"], "args": []}, None),
]


@pytest.mark.parametrize(
    "overrides, expected", [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_geometry(view: ViewBuilder, overrides: dict[str, Any], expected: Geometry | None) -> None:
    assert geometry_of(view(**overrides)) == expected
