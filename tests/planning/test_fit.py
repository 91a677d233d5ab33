"""Does a model fit: published sizes, the KV cache, and what a service is told."""

from __future__ import annotations

import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.engines import (
    CONTRACT,
    Basis,
    Container,
    Detection,
    EngineInfo,
    Geometry,
    PodView,
    hookimpl,
)
from ome.engines.engines import Engines, register
from ome.planning.fit import fit, uneven_heads, weight_bytes
from ome.testing.builders import model, obj, plan_of, runtime, service

Json = dict[str, Any]
LLAMA = {"vocab_size": 128256, "hidden_size": 4096}
OSS = {"vocab_size": 201088, "hidden_size": 2880}

# The bytes of the published weights (`total_size` of the index file, or the tensors' bytes), and how
# far the formula may be off. Where no configuration tells the embeddings, they count as quantized.
PUBLISHED: list[tuple[str, str, str, Json, int, float]] = [
    ("Mistral-7B-v0.1", "7.24B", "", {}, 14_483_464_192, 0.01),
    ("Qwen2.5-7B-Instruct", "7.62B", "", {}, 15_231_233_024, 0.01),
    ("Llama-3.1-8B", "8.03B", "", {}, 16_060_522_496, 0.01),
    ("Llama-3.2-3B", "3.21B", "", {}, 6_425_499_648, 0.01),
    ("Mixtral-8x7B", "46.7B", "", {}, 93_405_585_408, 0.01),
    ("Llama-3.1-70B", "70.6B", "", {}, 141_107_412_992, 0.01),
    ("Qwen2.5-72B-Instruct", "72.7B", "", {}, 145_412_407_296, 0.01),
    ("Llama-3.1-405B", "406B", "", {}, 811_706_777_600, 0.01),
    ("Llama-3.1-8B-Instruct-FP8", "8.03B", "fp8", LLAMA, 9_081_280_648, 0.01),
    (
        "DeepSeek-V3",  # the file holds a layer more, for multi-token prediction
        "671B",
        "fp8",
        {"vocab_size": 129280, "hidden_size": 7168},
        688_586_727_753,
        0.03,
    ),
    ("gpt-oss-120b", "117B", "mxfp4", OSS, 65_248_815_744, 0.03),
    ("gpt-oss-20b", "20.9B", "mxfp4", OSS, 13_761_264_768, 0.08),
]


@pytest.mark.parametrize(
    ("name", "size", "quantization", "config", "published", "tolerance"),
    PUBLISHED,
    ids=[row[0] for row in PUBLISHED],
)
def test_published_sizes(
    name: str, size: str, quantization: str, config: Json, published: int, tolerance: float
) -> None:
    spec = {
        "modelParameterSize": size,
        "quantization": quantization,
        "modelConfiguration": config,
    }
    assert weight_bytes(spec) == pytest.approx(published, rel=tolerance)


LLAMA_70B: Json = {
    "modelParameterSize": "70.6B",
    "modelConfiguration": {
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "hidden_size": 8192,
        "vocab_size": 128256,
    },
}


def test_the_arithmetic_is_shown() -> None:
    found = fit(LLAMA_70B, Geometry(4, 4, memory_fraction=0.9), "80Gi")
    assert found is not None
    # 2 (key and value) x 80 layers x 2 heads of 128 on each of 4 accelerators x 2 bytes
    assert found.token_bytes == 2 * 80 * 2 * 128 * 2
    assert found.arithmetic == (
        "70.6B parameters x 16 bits over 4 accelerators = 32.9 GiB of weights each; "
        "80.0 GiB x 0.90 = 72.0 GiB, 39.1 GiB left for the KV cache, about 512,810 tokens"
    )
    assert found.as_json() == {
        "weightsPerAccelerator": 35_300_000_000,
        "budgetPerAccelerator": 77_309_411_328,
        "leftForCache": 42_009_411_328,
        "cacheTokens": 512_810,
        "arithmetic": found.arithmetic,
    }


def test_too_little_memory_is_said() -> None:
    found = fit({"modelParameterSize": "70.6B"}, Geometry(1, 1), "80Gi")
    assert found is not None
    assert found.left < 0
    assert found.tokens is None
    assert found.arithmetic == (
        "70.6B parameters x 16 bits over 1 accelerator = 131.5 GiB of weights each; "
        "80.0 GiB x 0.90 (assumed) = 72.0 GiB, 59.5 GiB too little"
    )


CACHES: list[tuple[str, Json, Geometry, float | None]] = [
    (
        "fewer key heads than accelerators: each keeps one",
        {
            "num_hidden_layers": 10,
            "num_attention_heads": 32,
            "num_key_value_heads": 2,
            "head_dim": 64,
        },
        Geometry(8, 8),
        10 * 2 * 2 * 1 * 64,
    ),
    (
        "latent attention: one vector, however many accelerators",
        {
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
        },
        Geometry(16, 16),
        61 * 2 * (512 + 64),
    ),
    (
        "stages share the layers, fp8 halves the numbers",
        {"num_hidden_layers": 10, "num_attention_heads": 8, "hidden_size": 512},
        Geometry(4, 2, pipeline=2, kv_bytes=1),
        5 * 1 * 2 * 4 * 64,
    ),
    (
        "the text part of a multimodal model",
        {"text_config": {"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 8}},
        Geometry(1, 1),
        2 * 2 * 8,
    ),
    ("no layers", {"num_attention_heads": 8, "head_dim": 8}, Geometry(1, 1), None),
    ("no heads", {"num_hidden_layers": 8}, Geometry(1, 1), None),
    (
        "unknown sharing",
        {"num_hidden_layers": 8, "num_attention_heads": 8, "head_dim": 8},
        Geometry(1, None),
        None,
    ),
    (
        "unknown numbers",
        {"num_hidden_layers": 8, "num_attention_heads": 8, "head_dim": 8},
        Geometry(1, 1, kv_bytes=None),
        None,
    ),
    (
        "junk",
        {"num_hidden_layers": "8", "num_attention_heads": True, "head_dim": -8},
        Geometry(1, 1),
        None,
    ),
]


@pytest.mark.parametrize(
    ("title", "config", "geometry", "expected"), CACHES, ids=[case[0] for case in CACHES]
)
def test_the_cache_of_a_token(
    title: str, config: Json, geometry: Geometry, expected: float | None
) -> None:
    spec = {"modelParameterSize": "1B", "modelConfiguration": config}
    found = fit(spec, geometry, "80Gi")
    assert found is not None
    assert found.token_bytes == expected


@pytest.mark.parametrize(
    ("spec", "geometry", "memory"),
    [
        ({}, Geometry(1), "80Gi"),
        ({"modelParameterSize": "4b"}, Geometry(1), "80Gi"),
        ({"modelParameterSize": "4B", "quantization": "compressed-tensors"}, Geometry(1), "80Gi"),
        ({"modelParameterSize": "4B"}, Geometry(None), "80Gi"),
        ({"modelParameterSize": "4B"}, Geometry(1, quantization=None), "80Gi"),
        ({"modelParameterSize": "4B"}, Geometry(1), None),
        ({"modelParameterSize": "4B"}, Geometry(1), "a lot"),
        ({"modelParameterSize": "4B"}, Geometry(1), "0"),
    ],
)
def test_nothing_is_guessed(spec: Json, geometry: Geometry, memory: object) -> None:
    assert fit(spec, geometry, memory) is None


def test_flags_decide_over_the_models_own_quantization() -> None:
    spec = {"modelParameterSize": "10B", "quantization": "fp8"}
    assert weight_bytes(spec) == 10e9
    assert weight_bytes(spec, "mxfp4") == 10e9 * 4.25 / 8


@given(
    st.floats(0.1, 2000),
    st.integers(1, 64),
    st.integers(1, 64),
    st.floats(0.1, 1),
    st.integers(1, 400),
)
def test_more_accelerators_and_more_memory_never_leave_less(
    billions: float, few: int, more: int, share: float, gib: int
) -> None:
    spec = {"modelParameterSize": f"{billions:.2f}B"}
    first = fit(spec, Geometry(few, memory_fraction=share), f"{gib}Gi")
    second = fit(spec, Geometry(few * more, memory_fraction=share), f"{gib + 1}Gi")
    assert first is not None
    assert second is not None
    assert second.left >= first.left


def test_heads() -> None:
    assert uneven_heads(LLAMA_70B, Geometry(8, 8)) is None
    assert uneven_heads(LLAMA_70B, Geometry(6, 6)) == (64, 6)
    assert uneven_heads({}, Geometry(6, 6)) is None
    assert uneven_heads(LLAMA_70B, Geometry(6, None)) is None


def engines(geometry: object) -> Engines:
    def detect(container: Container) -> Detection:
        return Detection(Basis.IMAGE)

    def measure(view: PodView) -> object:
        return geometry

    plugin = types.SimpleNamespace(
        ome_describe=hookimpl(lambda: EngineInfo("e", CONTRACT, "e")),
        ome_detect=hookimpl(detect),
        ome_geometry=hookimpl(measure),
    )
    return Engines([register(plugin, distribution="ome-engine-e", version="1")])


CLASS = obj("AcceleratorClass", "small", {"discovery": {}, "capabilities": {"memoryGB": "80Gi"}})


def planned(geometry: object, *, with_class: bool = True) -> Any:
    chosen = {"acceleratorSelector": {"acceleratorClass": "small"}} if with_class else {}
    return plan_of(
        runtime(acceleratorRequirements={"acceleratorClasses": ["small"]}),
        model(**LLAMA_70B),
        CLASS,
        service(model={"name": "m"}, **chosen),
        engines=engines(geometry),
    )


def test_hook_ome_geometry_tells_whether_a_model_fits() -> None:
    rendered = planned(Geometry(4, 4))
    assert rendered.decision["fit"]["engine"]["leftForCache"] > 0
    assert not rendered.warnings
    rendered = planned(Geometry(1, 1))
    (warning,) = rendered.warnings
    assert (warning.code, warning.is_error) == ("ModelTooBig", False)
    assert warning.message == (
        "the weights don't fit accelerators of class small: 70.6B parameters x 16 bits over 1 accelerator = "
        "131.5 GiB of weights each; 80.0 GiB x 0.90 (assumed) = 72.0 GiB, 59.5 GiB too little"
    )
    assert list(rendered.objects())


def test_without_a_class_nothing_is_said_of_memory() -> None:
    rendered = planned(Geometry(1, 1), with_class=False)
    assert "fit" not in rendered.decision
    assert not rendered.warnings


def test_uneven_heads_are_an_error() -> None:
    (warning,) = planned(Geometry(6, 6)).warnings
    assert (warning.code, warning.is_error) == ("AttentionHeadsNotDivisible", True)
    assert (
        warning.message == "the model's 64 attention heads can't be shared evenly by 6 accelerators"
    )


@pytest.mark.parametrize(
    "junk",
    ["junk", Geometry(0), Geometry("8"), Geometry(8, kv_bytes=-1), Geometry(8, quantization=4)],  # type: ignore[arg-type]
)
def test_a_geometry_with_junk_in_it_is_none(junk: object) -> None:
    rendered = planned(junk)
    (warning,) = rendered.warnings
    assert warning.message.endswith("ome_geometry failed: it gives something that is no Geometry")
