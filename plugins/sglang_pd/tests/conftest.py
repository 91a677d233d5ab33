"""The plugin, alone and beside SGLang's."""

from __future__ import annotations

import pytest

import ome_engine_sglang.plugin
from ome.engines.engines import Engine, Engines, register
from ome_engine_sglang_pd import plugin


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The plugin."""
    return register(plugin, distribution="ome-engine-sglang-pd", version="0.1.0")


@pytest.fixture(scope="session")
def engines(engine: Engine) -> Engines:
    """The plugin beside SGLang's."""
    server = register(ome_engine_sglang.plugin, distribution="ome-engine-sglang", version="0.1.0")
    return Engines([engine, server])
