"""Finding installed engine plugins by entry point. The one place in the core's layers that does I/O.

Nothing that a plugin does at import can keep another from loading.
"""

from __future__ import annotations

from typing import Any, Final

from stevedore.extension import ExtensionManager

from ome.engines.engines import Engine, Engines, LoadError, PluginRefused, register

__all__ = ["GROUP", "discover"]

GROUP: Final = "ome.engines"


def discover(group: str = GROUP) -> Engines:
    """Load every plugin of the entry-point group; those that fail stand in `Engines.errors`."""
    errors: list[LoadError] = []

    def on_failure(_: Any, entry_point: Any, error: BaseException) -> None:
        text = f"import failed: {type(error).__name__}: {error}"
        errors.append(LoadError(entry_point.name, _distribution(entry_point)[0], text))

    manager = ExtensionManager(group, invoke_on_load=False, on_load_failure_callback=on_failure)
    engines: list[Engine] = []
    for extension in sorted(
        manager.extensions, key=lambda item: (item.name, str(item.entry_point))
    ):
        distribution, version = _distribution(extension.entry_point)
        try:
            engines.append(register(extension.plugin, distribution=distribution, version=version))
        except PluginRefused as refused:
            errors.append(LoadError(extension.name, distribution, str(refused)))
    return Engines(engines, errors)


def _distribution(entry_point: Any) -> tuple[str, str]:
    found = entry_point.dist
    return (found.name, found.version) if found is not None else (entry_point.value, "")
