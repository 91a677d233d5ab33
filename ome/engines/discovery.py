"""Finding installed engine plugins by entry point. The one place in the core's layers that does I/O.

Nothing that a plugin does at import can keep another from loading.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any, Final

from stevedore.extension import ExtensionManager

from ome.api import OmeError, Problem
from ome.engines.engines import Engine, Engines, LoadError, PluginRefused, register
from ome.engines.guard import is_the_users

__all__ = ["GROUP", "discover", "plain_name"]

GROUP: Final = "ome.engines"


class _Extensions(ExtensionManager[Any]):
    """stevedore's manager, for some names alone, which also survives a plugin that ends the process while
    it is imported."""

    def __init__(self, group: str, wanted: frozenset[str] | None, **settings: Any) -> None:
        self._wanted = wanted
        super().__init__(group, **settings)

    def list_entry_points(self) -> Any:
        found = super().list_entry_points()
        if self._wanted is None:
            return found
        names = {plain_name(each.name) for each in found}
        if missing := sorted(self._wanted - names):
            text = f"no installed engine plugin is named {', '.join(missing)}"
            fix = f"installed: {', '.join(sorted(names)) or 'none'}"
            raise OmeError(Problem("EngineUnknown", text, fix=fix))
        return [each for each in found if plain_name(each.name) in self._wanted]

    def _load_one_plugin(self, ep: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._load_one_plugin(ep, *args, **kwargs)
        except SystemExit as error:
            raise ImportError(f"it called sys.exit({error.code!r})") from error
        except BaseException as error:
            if isinstance(error, Exception) or is_the_users(error):
                raise
            raise ImportError(f"it raised {type(error).__name__}") from error


def discover(group: str = GROUP, *, only: Iterable[str] | None = None) -> Engines:
    """Load every plugin of the entry-point group; those that fail stand in `Engines.errors`.

    `only` names those to be used (an underscore counts as a dash), and no other is imported. Raises
    OmeError for a name that no installed plugin has.
    """
    errors: list[LoadError] = []
    owners = _owners(group)

    def on_failure(_: Any, entry_point: Any, error: BaseException) -> None:
        text = f"import failed: {type(error).__name__}: {error}"
        distribution, _version = _owner(owners, entry_point)
        errors.append(LoadError(entry_point.name, distribution, text))

    wanted = None if only is None else frozenset(map(plain_name, only))
    manager = _Extensions(group, wanted, invoke_on_load=False, on_load_failure_callback=on_failure)
    engines: list[Engine] = []
    for extension in sorted(
        manager.extensions, key=lambda item: (item.name, str(item.entry_point))
    ):
        distribution, version = _owner(owners, extension.entry_point)
        try:
            engines.append(register(extension.plugin, distribution=distribution, version=version))
        except PluginRefused as refused:
            errors.append(LoadError(extension.name, distribution, str(refused)))
    return Engines(engines, errors, clock=time.monotonic)


def plain_name(name: str) -> str:
    """An entry point's name as an engine's: an underscore counts as a dash."""
    return name.replace("_", "-")


_Owners = dict[tuple[str, str], tuple[str, str]]


def _owners(group: str) -> _Owners:
    """Name and version of the distribution behind each entry point: stevedore's cache drops them."""
    return {
        (each.name, each.value): (each.dist.name, each.dist.version)
        for each in entry_points(group=group)
        if each.dist is not None
    }


def _owner(owners: _Owners, entry_point: Any) -> tuple[str, str]:
    return owners.get((entry_point.name, entry_point.value), (entry_point.value, ""))
