"""Which layer set a flag that an engine finds fault with. Worked out only for those who show it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ome.api import Problem
from ome.planning.plan import Plan

__all__ = ["name_setters"]

_WORD: Final = re.compile(r"(engine|decoder|router) container (\S+): ((?:args|command)\[\d+\])")


def name_setters(rendered: Plan, again: Callable[[], Plan]) -> tuple[Problem, ...]:
    """The plan's warnings; those about a word of a command line say which layer set it.

    `again` plans the service once more, with provenance; it is called only when there is such a warning
    and the plan has none.
    """
    if not any(_WORD.fullmatch(warning.path) for warning in rendered.warnings):
        return rendered.warnings
    source = rendered if rendered.provenance else again()
    return tuple(_named(warning, source) for warning in rendered.warnings)


def _named(warning: Problem, source: Plan) -> Problem:
    found = _WORD.fullmatch(warning.path)
    if found is None:
        return warning
    component, container, word = found.groups()
    leaf = source.provenance.get(component, {}).get(f"containers[{container}].{word}")
    if leaf is None:
        return warning
    return replace(warning, message=f"{warning.message} (set by {leaf[1]})")
