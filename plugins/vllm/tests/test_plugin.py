"""The hooks as the core calls them."""

from __future__ import annotations

import pytest

from ome.engines import (
    CONTRACT,
    Arity,
    Basis,
    Container,
    Detection,
    Dialect,
    EngineInfo,
    Geometry,
    PodView,
)
from ome.engines.engines import Engine, Engines, register
from ome.engines.kit import PROMETHEUS
from ome_engine_vllm import plugin

SERVER = Container("vllm/vllm-openai:v0.33.0", ("vllm", "serve", "m"))


@pytest.fixture
def engine() -> Engine:
    return register(plugin, distribution="ome-engine-vllm", version="0.1.0")


def test_hook_ome_describe(engine: Engine) -> None:
    assert engine.info == EngineInfo("vllm", CONTRACT, "vLLM's OpenAI-compatible server")


def test_hook_ome_detect(engine: Engine) -> None:
    found = Engines([engine]).recognise(SERVER)
    assert (found.engine, found.detection) == (engine, Detection(Basis.COMMAND, "0.33.0"))
    assert found.problems == ()


def test_hook_ome_dialect(engine: Engine) -> None:
    found = engine.dialect("0.33.0")
    assert isinstance(found, Dialect)
    assert (found.prefixes, found.underscores, found.glued, found.dotted) == (True,) * 4
    assert found.arity_of("--max_num_seqs") is Arity.VALUE


def test_hook_ome_profiles(engine: Engine) -> None:
    probes, metrics = engine.profiles
    assert (probes.name, metrics) == ("vllm-http", PROMETHEUS)
    for probe in probes.probes.values():
        assert probe["httpGet"] == {"path": "/health", "port": 30000}


def test_hook_ome_findings(engine: Engine) -> None:
    container = {"name": "x", "image": SERVER.image, "command": ["vllm", "serve"]}
    view = PodView("engine", container, {"containers": [container]}, 0, Detection(Basis.COMMAND))
    found = Engines([engine]).inspect(engine, view, measure=True)
    assert found.problems == ()
    assert [finding.code for finding in found.findings] == [
        "VLLMVersionUnknown",
        "VLLMModel",
        "VLLMServedName",
    ]
    assert found.geometry == Geometry(1, 1, 1)
