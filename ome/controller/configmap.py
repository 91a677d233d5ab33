"""The configuration, as it is in the cluster. An edit starts no reconcile; the next one reads it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from ome.api import ObjectRef
from ome.controller.world import World
from ome.snapshot import CONFIG_NAME, Config, InvalidConfig, parse_config

__all__ = ["ConfigFeed"]

_log: Final = logging.getLogger("ome.controller.config")


class ConfigFeed:
    """Takes in the ConfigMap. One that can't be used leaves the last good one in force, and is told."""

    def __init__(self, world: World, changed: Callable[[], None]) -> None:
        self._world = world
        self._changed = changed
        self._ref = ObjectRef("ConfigMap", world.ome_namespace, CONFIG_NAME)
        self._exists = False

    def put(self, raw: dict[str, Any]) -> None:
        """The ConfigMap, or what became of it."""
        if raw["metadata"]["name"] != CONFIG_NAME:
            return
        self._exists = True
        try:
            config = parse_config(raw)
        except InvalidConfig as error:
            self._world.config_problems = error.problems
            for problem in error.problems:
                fields = {"object": str(self._ref), "path": problem.path}
                _log.error(f"configuration can't be used: {problem}", extra={"fields": fields})
        else:
            self._world.config, self._world.config_problems = config, ()
            self._world.has_config = True
            _log.info("configuration read", extra={"fields": {"object": str(self._ref)}})
        self._changed()

    def remove(self, ref: ObjectRef) -> None:
        """The ConfigMap is gone: what holds when nothing is configured holds."""
        if ref == self._ref:
            self._exists = False
            self._world.config, self._world.config_problems = Config(), ()
            self._world.has_config = False
            fields = {"object": str(self._ref)}
            _log.warning("configuration is gone, defaults hold", extra={"fields": fields})
            self._changed()

    def known(self) -> list[ObjectRef]:
        """The ConfigMap, if it exists."""
        return [self._ref] if self._exists else []
