"""Asking plugins: what one raises, gives, changes or takes too long over costs that answer alone.

A hook that takes longer than `LIMIT` is not asked again in this process. A hook that never returns can't
be stopped in-process.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, Final

from ome.api import Problem

__all__ = ["HOOK_FAILED", "LIMIT", "Clock", "Guard", "copy_json", "failure", "is_the_users"]

LIMIT: Final = 1.0
"""Seconds that one call of a hook may take: a thousand times what one takes that does its work."""

HOOK_FAILED: Final = "EnginePluginFailed"
"""The code of problems that a hook's failure is."""

Clock = Callable[[], float]


class Guard:
    """Calls hooks. `clock` gives seconds; without one no call is too long."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or (lambda: 0.0)
        self._slow: dict[tuple[str, str], str] = {}
        self._failing: set[tuple[str, str]] = set()

    def fails(self, plugin: str) -> bool:
        """Whether a hook of a plugin failed the last time that it was asked, or isn't asked any more."""
        return any(name == plugin for name, _ in self._failing)

    def fail(self, plugin: str, hook: str, what: str, problems: list[Problem]) -> None:
        """Take down what a hook did wrong, which its answer alone may not show."""
        self._failing.add((plugin, hook))
        problems.append(failure(plugin, hook, what))

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
        key = plugin, hook
        answer, wrong = None, self._slow.get(key, "")
        if not wrong:
            answer, wrong = self._called(key, call)
        if not wrong and answer is not None and not accepts(answer):
            wrong = f"it gives something that is no {wanted}"
        if wrong:
            self.fail(plugin, hook, wrong, problems)
            return None
        self._failing.discard(key)
        return answer

    def _called(self, key: tuple[str, str], call: Callable[[], Any]) -> tuple[Any, str]:
        """An answer, and what went wrong in getting it."""
        started = self._clock()
        try:
            answer = call()
        except BaseException as error:  # a plugin may raise anything
            if is_the_users(error):
                raise
            return None, f"{type(error).__name__}: {error}"
        taken = self._clock() - started
        if taken > LIMIT:
            text = f"it took {taken:.1f} s, more than {LIMIT:g} s, and isn't asked again"
            self._slow[key] = text
            return None, text
        return answer, ""


def is_the_users(error: BaseException) -> bool:
    """Whether an exception is a Ctrl-C. It can't be where the process handles that signal itself, as the
    controller does; then a plugin has raised it."""
    return (
        isinstance(error, KeyboardInterrupt)
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def failure(plugin: str, hook: str, what: str) -> Problem:
    """The problem that reports what a hook did wrong."""
    return Problem(HOOK_FAILED, f"engine plugin {plugin}: {hook} failed: {what}")


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
