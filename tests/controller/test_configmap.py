"""The configuration as a ConfigMap comes, can't be used, and goes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ome.api import ObjectRef
from ome.controller.configmap import ConfigFeed
from ome.controller.world import World
from ome.snapshot import CONFIG_NAME, Config

REF = ObjectRef("ConfigMap", "ome", CONFIG_NAME)


def config_map(**data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_NAME, "namespace": "ome"},
        "data": data,
    }


def test_a_config_map_from_its_coming_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ome")
    world = World(ome_namespace="ome", plugins=[], due=lambda *_: None)
    told: list[int] = []
    feed = ConfigFeed(world, lambda: told.append(1))
    feed.put(config_map(deploy="{", ingress='{"urlScheme": 5}'))
    assert world.config == Config()
    assert not world.has_config
    paths = [each.path for each in world.config_problems]
    assert len(paths) == 2
    assert "deploy" in paths[0]
    assert "ingress" in paths[1]
    feed.put(config_map(deploy='{"terminationGracePeriodSeconds": 120}'))
    assert world.config.termination_grace_seconds == 120
    assert (world.config_problems, world.has_config) == ((), True)
    feed.put(config_map(deploy="{"))
    assert (len(world.config_problems), world.config.termination_grace_seconds) == (1, 120)
    feed.remove(REF)
    assert (world.config, world.config_problems, feed.known()) == (Config(), (), [])
    assert caplog.messages[-1] == "configuration is gone, defaults hold"
    assert len(told) == 4
