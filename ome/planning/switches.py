"""Values of which a layer may hold one of several kinds: a volume's source, a variable's, a probe's
handler. A merge that leaves two is refused with the layers that set them, and how to switch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ome.api import Problem
from ome.planning.podchecks import HANDLERS

__all__ = ["SWITCHES", "name_layers"]

# By the problem's code: where in the value the kinds stand, and which fields are kinds (none: all but
# the name).
SWITCHES: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "VolumeSourceConflict": ("", frozenset()),
    "EnvSourceConflict": ("", frozenset({"value", "valueFrom"})),
    "EnvSourceInvalid": (".valueFrom", frozenset()),
    "ProbeHandlerConflict": ("", frozenset(HANDLERS)),
}
_FIELD: Final = re.compile(r"[^.\[]+")


def name_layers(
    problem: Problem, leaves: Mapping[str, tuple[Any, str]], order: Sequence[str]
) -> Problem:
    """The problem with the layer of each kind, by the provenance of the pod's `leaves`.

    `order` names the layers from the weakest to the strongest. Other problems come back as they are.
    """
    if problem.code not in SWITCHES:
        return problem
    below, kinds = SWITCHES[problem.code]
    start = f"{problem.path}{below}."
    layers: dict[str, str] = {}
    fields: dict[str, None] = {}
    for path, (value, layer) in leaves.items():
        field = _FIELD.match(path.removeprefix(start)) if path.startswith(start) else None
        if field is None or value is None:
            continue
        fields[field.group()] = None
        if field.group() in kinds or (not kinds and field.group() != "name"):
            known = layers.get(field.group(), layer)
            layers[field.group()] = max(known, layer, key=lambda each: _rank(each, order))
    if len(layers) < 2:
        return problem
    ordered = sorted(layers, key=lambda each: (_rank(layers[each], order), each))
    told = ", ".join(f"{layers[each]} sets {start}{each}" for each in ordered)
    text = re.sub(r"( after the merge)?: .*$", "", problem.message)
    text = f"{text.removesuffix(' after the merge')} after the merge: {told}"
    last = ordered[-1]
    if layers[last] == layers[ordered[0]]:
        return replace(problem, message=text, fix="keep one of them")
    kept = ["name"] if "name" in fields else []
    kept += [each for each in fields if each != "name" and each not in ordered[:-1]]
    place = start.removesuffix(".")
    fix = f"to switch, {layers[last]} lists what stays: $retainKeys: [{', '.join(kept)}] in {place}"
    return replace(problem, message=text, fix=fix)


def _rank(layer: str, order: Sequence[str]) -> int:
    return order.index(layer) if layer in order else len(order)
