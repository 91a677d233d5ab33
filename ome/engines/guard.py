"""Asking plugins: what one raises, gives, changes or takes too long over costs that answer alone.

A hook that takes longer than `LIMIT` is not asked again in this process. A hook that never returns can't
be stopped in-process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ome.api import Problem

__all__ = ["LIMIT", "Clock", "Guard", "copy_json"]

LIMIT: Final = 1.0
"""Seconds that one call of a hook may take: a thousand times what one takes that does its work."""

Clock = Callable[[], float]


class Guard:
    """Calls hooks. `clock` gives seconds; without one no call is too long."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or (lambda: 0.0)
        self._slow: dict[tuple[str, str], str] = {}

    def ask(
        self,
        plugin: str,
        hook: str,
        call: Callable[[], Any],
        problems: list[Problem],
        accepts: Callable[[Any], bool],
        wanted: str,
    ) -> Any:
        """What a hook answers; None when it fails, with a problem that names `plugin` and `hook`.

        `accepts` says whether an answer is sound, `wanted` is what it should be. None always is.
        """
        if (plugin, hook) in self._slow:
            problems.append(failure(plugin, hook, self._slow[plugin, hook]))
            return None
        started = self._clock()
        try:
            answer = call()
        except (Exception, SystemExit) as error:  # a plugin may raise anything
            problems.append(failure(plugin, hook, f"{type(error).__name__}: {error}"))
            return None
        taken = self._clock() - started
        if taken > LIMIT:
            text = f"it took {taken:.1f} s, more than {LIMIT:g} s, and isn't asked again"
            self._slow[plugin, hook] = text
            problems.append(failure(plugin, hook, text))
            return None
        if answer is None or accepts(answer):
            return answer
        problems.append(failure(plugin, hook, f"it gives something that is no {wanted}"))
        return None


def failure(plugin: str, hook: str, what: str) -> Problem:
    """The problem that reports what a hook did wrong."""
    return Problem("EnginePluginFailed", f"engine plugin {plugin}: {hook} failed: {what}")


def copy_json(value: Any) -> Any:
    """A copy of JSON data, many times faster than a deep copy."""
    if isinstance(value, dict):
        return {
            key: copy_json(item) if isinstance(item, _NESTED) else item
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [copy_json(item) if isinstance(item, _NESTED) else item for item in value]
    return value


_NESTED: Final = (dict, list)
