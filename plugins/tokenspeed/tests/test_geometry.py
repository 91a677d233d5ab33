"""How TokenSpeed spreads a model over accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Geometry, PodView, kit
from ome.testing.builders import model, obj, plan_of, runtime, service
from ome_engine_tokenspeed.launch import SERVER
from ome_engine_tokenspeed.sizes import Layout, geometry_of, layout_of

ViewBuilder = Callable[..., PodView]

LAYOUTS: list[tuple[str, Layout]] = [
    ("", Layout(1, 1, 1, 1)),
    ("--tp=4", Layout(4, 1, 1, 4)),
    ("--attn-tp-size=4 --data-parallel-size=2", Layout(4, 1, 2, 8)),
    ("--tp=4 --pipeline-parallel-size=2", Layout(4, 2, 1, 8)),
    ("--world-size=8", Layout(8, 1, 1, 8)),
    ("--world-size=8 --attn-tp-size=2", Layout(2, 1, 4, 8)),
    ("--world-size=8 --data-parallel-size=4", Layout(2, 1, 4, 8)),
    ("--world-size=16 --tp=4 --pipeline-parallel-size=2", Layout(4, 2, 2, 16)),
    ("--world-size=8 --tp=3", Layout(3, 1, None, 8)),
    ("--world-size=$(N) --tp=4", Layout(4, 1, None, None)),
    ("--tp=$(N)", Layout(None, 1, 1, None)),
    ("--tp=0 --pipeline-parallel-size=-1", Layout(None, None, 1, None)),
]


@pytest.mark.parametrize(("args", "expected"), LAYOUTS)
def test_layout(view: ViewBuilder, args: str, expected: Layout) -> None:
    assert layout_of(kit.read_command_line(SERVER, view(args=args.split()))) == expected


CASES: list[tuple[str, dict[str, Any], Geometry | None]] = [
    ("tensor", {}, Geometry(4, 4)),
    ("attention's tensor", {"args": ["--attn-tp-size=2"]}, Geometry(2, 2)),
    ("stages", {"more": ["--pipeline-parallel-size=2"]}, Geometry(8, 4, pipeline=2)),
    ("replicas", {"more": ["--data-parallel-size=2"]}, Geometry(None, 4)),
    ("replicas that the world leaves", {"more": ["--world-size=8"]}, Geometry(None, 4)),
    ("experts of their own", {"more": ["--moe-tp-size=2"]}, Geometry(None, 4)),
    (
        "memory, weights and cache",
        {"more": ["--gpu-memory-utilization=0.8", "--quantization=nvfp4", "--kv-cache-dtype=fp8"]},
        Geometry(4, 4, 1, 0.8, "nvfp4", 1),
    ),
    ("junk", {"args": ["--tp=-1", "--gpu-memory-utilization=2"]}, Geometry(None, None)),
    (
        "a scale of a byte for 32 numbers",
        {"more": ["--kv-cache-dtype=mxfp8"]},
        Geometry(4, 4, kv_bytes=1.03125),
    ),
    ("an odd cache", {"more": ["--kv-cache-dtype=fp4"]}, Geometry(4, 4, kv_bytes=None)),
    (
        "scales for each token",
        {"more": ["--kv-cache-dtype=fp8", "--kv-cache-quant-method=per_token_head"]},
        Geometry(4, 4, kv_bytes=None),
    ),
    (
        "a sequence in parts",
        {"more": ["--decode-context-parallel-size=4"]},
        Geometry(4, 4, kv_bytes=None),
    ),
    (
        "queries in parts",
        {"more": ["--prefill-context-parallel-size=4"]},
        Geometry(4, None, kv_bytes=None),
    ),
    ("heads by their own flag", {"more": ["--attn-head-tp-size=8"]}, Geometry(4, None)),
    ("weights by reference", {"more": ["--quantization=$(Q)"]}, Geometry(4, 4, quantization=None)),
    (
        "the image alone",
        {"command": [], "args": ["--tp=4"]},
        Geometry(None, 4, None, quantization=None, kv_bytes=None),
    ),
    ("a script", {"command": ["sh", "-c", "a; ts serve m"], "args": []}, None),
]


@pytest.mark.parametrize("overrides, expected", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_geometry(view: ViewBuilder, overrides: dict[str, Any], expected: Geometry | None) -> None:
    assert geometry_of(view(**overrides)) == expected


def test_a_70b_is_told_whether_it_fits(installed_engines: Any) -> None:
    config = {
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "hidden_size": 8192,
    }
    big = model(modelParameterSize="70.6B", modelConfiguration=config)
    gpu = obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {"memoryGB": "80Gi"}})

    def told(*flags: str) -> Any:
        runner = {
            "name": "ome-container",
            "image": "lightseekorg/tokenspeed:0.1.1",
            "command": ["ts", "serve", "m", "--served-model-name=m"],
            "args": list(flags),
        }
        return plan_of(
            runtime({"runner": runner}, acceleratorRequirements={"acceleratorClasses": ["gpu"]}),
            big,
            gpu,
            service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
            engines=installed_engines,
        )

    enough = told("--tp=4", "--gpu-memory-utilization=0.9", "--kv-cache-dtype=fp8")
    assert enough.decision["fit"]["engine"]["arithmetic"] == (
        "70.6B parameters x 16 bits over 4 accelerators = 32.9 GiB of weights each; "
        "80.0 GiB x 0.90 = 72.0 GiB, 39.1 GiB left for the KV cache, about 1,025,620 tokens"
    )
    assert "ModelTooBig" not in {each.code for each in enough.warnings}
    assert "ModelTooBig" in {each.code for each in told("--tp=1").warnings}
    uneven = {each.code for each in told("--attn-tp-size=6").warnings}
    assert "AttentionHeadsNotDivisible" in uneven
