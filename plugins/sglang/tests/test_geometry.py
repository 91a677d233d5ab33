"""How SGLang spreads a model over accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ome.engines import Geometry, PodView
from ome.testing.builders import model, obj, plan_of, runtime, service
from ome_engine_sglang.geometry import geometry_of

CASES: list[tuple[str, dict[str, Any], Geometry | None]] = [
    ("tensor and pipeline", {}, Geometry(8, 4, pipeline=2)),
    ("defaults", {"args": []}, Geometry(1, 1)),
    (
        "memory, weights and cache",
        {"more": ["--mem-frac=0.85", "--quantization", "fp8", "--kv-cache-dtype=fp8_e5m2"]},
        Geometry(8, 4, 2, 0.85, "fp8", 1),
    ),
    (
        "attention's replicas",
        {"args": ["--tp-size=8", "--dp-size=4", "--enable-dp-attention"]},
        Geometry(8, 2),
    ),
    ("the newer flag for them", {"args": ["--tp-size=8", "--attn-dp-size=8"]}, Geometry(8, 1)),
    (
        "replicas that don't divide",
        {"args": ["--tp-size=8", "--dp-size=3", "--enable-dp-attention"]},
        Geometry(8, None),
    ),
    ("replicas of the whole", {"args": ["--tp-size=2", "--dp-size=4"]}, Geometry(2, 2)),
    ("by reference", {"args": ["--tp-size=$(N)"]}, Geometry(None, None)),
    ("weights by reference", {"args": ["--quantization=$(Q)"]}, Geometry(1, 1, quantization=None)),
    ("attention's context", {"args": ["--tp-size=8", "--attn-cp-size=4"]}, Geometry(8, 2)),
    (
        "a cache in parts",
        {"args": ["--tp-size=8", "--dcp-size=2"]},
        Geometry(8, 8, kv_bytes=None),
    ),
    ("experts' replicas", {"args": ["--tp-size=8", "--moe-dp-size=2"]}, Geometry(None, 8)),
    (
        "the image alone",
        {"command": [], "args": ["--tp-size=8"]},
        Geometry(None, None, None, quantization=None, kv_bytes=None),
    ),
    (
        "flags in a file",
        {"args": ["--tp-size=8", "--pp-size=1", "--config=a.yaml"]},
        Geometry(8, None, 1, quantization=None, kv_bytes=None),
    ),
    ("junk", {"args": ["--tp-size=-1", "--mem-fraction-static=lots"]}, Geometry(None, None)),
    ("too much memory", {"args": ["--mem-fraction-static=1.5"]}, Geometry(1, 1)),
    (
        "another number in the cache",
        {"args": ["--kv-cache-dtype=fp4"]},
        Geometry(1, 1, kv_bytes=None),
    ),
    (
        "a script",
        {"command": ["bash", "-c", "a; python3 -m sglang.launch_server"], "args": []},
        None,
    ),
    ("diffusion", {"command": ["sglang", "serve", "--model-type=diffusion"], "args": []}, None),
]


@pytest.mark.parametrize("overrides, expected", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_geometry(
    view: Callable[..., PodView], overrides: dict[str, Any], expected: Geometry | None
) -> None:
    assert geometry_of(view(**overrides)) == expected


def test_a_70b_is_told_whether_it_fits(installed_engines: Any) -> None:
    big = model(modelParameterSize="70.6B", modelConfiguration={"num_attention_heads": 64})
    gpu = obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {"memoryGB": "80Gi"}})

    def told(*flags: str) -> Any:
        runner = {
            "name": "ome-container",
            "image": "lmsysorg/sglang:v0.5.23",
            "command": ["python3", "-m", "sglang.launch_server", "--host=0.0.0.0"],
            "args": ["--served-model-name=m", *flags],
        }
        return plan_of(
            runtime({"runner": runner}, acceleratorRequirements={"acceleratorClasses": ["gpu"]}),
            big,
            gpu,
            service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
            engines=installed_engines,
        )

    def codes(rendered: Any) -> list[str]:
        return [each.code for each in rendered.warnings if not each.is_note]

    enough = told("--tp-size=4", "--mem-fraction-static=0.9")
    assert "ModelTooBig" not in codes(enough)
    assert enough.decision["fit"]["engine"]["arithmetic"] == (
        "70.6B parameters x 16 bits over 4 accelerators = 32.9 GiB of weights each; "
        "80.0 GiB x 0.90 = 72.0 GiB, 39.1 GiB left for the KV cache"
    )
    assert "ModelTooBig" in codes(told("--tp-size=1"))
    assert "AttentionHeadsNotDivisible" in codes(told("--tp-size=6"))
