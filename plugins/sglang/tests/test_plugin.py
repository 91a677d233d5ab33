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
    Finding,
    PodView,
    Profile,
)
from ome.engines.engines import Engine, Engines, register
from ome_engine_sglang import plugin

SERVER = Container("lmsysorg/sglang:v0.5.23", ("python3", "-m", "sglang.launch_server"))


@pytest.fixture
def engine() -> Engine:
    return register(plugin, distribution="ome-engine-sglang", version="0.1.0")


def test_hook_ome_describe(engine: Engine) -> None:
    assert engine.info == EngineInfo("sglang", CONTRACT, "SGLang's OpenAI-compatible server")


def test_hook_ome_detect(engine: Engine) -> None:
    found = Engines([engine]).recognise(SERVER)
    assert (found.engine, found.detection) == (engine, Detection(Basis.COMMAND, "0.5.23"))
    assert found.problems == ()


def test_hook_ome_dialect(engine: Engine) -> None:
    for version, flag, arity in [
        ("0.5.23", "--mem-frac", Arity.VALUE),
        ("0.5.10", "--hybrid-kvcache-ratio", Arity.SWITCH),
        ("", "--cuda-graph-bs", Arity.MANY),
    ]:
        found = engine.dialect(version)
        assert isinstance(found, Dialect)
        assert found.arity_of(flag) is arity


def test_hook_ome_profiles(engine: Engine) -> None:
    assert [profile.name for profile in engine.profiles] == ["sglang-http", "prometheus"]
    assert all(isinstance(profile, Profile) for profile in engine.profiles)
    probes = engine.profiles[0].probes
    assert all(probe["httpGet"] == {"path": "/health", "port": 30000} for probe in probes.values())


def test_hook_ome_findings(engine: Engine) -> None:
    container = {"name": "x", "image": SERVER.image, "command": list(SERVER.command)}
    view = PodView("engine", container, {"containers": [container]}, 0, Detection(Basis.COMMAND))
    found = Engines([engine]).inspect(engine, view)
    assert found.problems == ()
    assert [finding.code for finding in found.findings] == [
        "SGLangVersionUnknown",
        "SGLangLoopback",
        "SGLangServedName",
    ]
    assert all(isinstance(finding, Finding) for finding in found.findings)
