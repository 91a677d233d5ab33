"""Choosing an accelerator class by policy and constraints.

Source: OME "Select accelerators" document (v1.3), "How OME picks a class". Ties go to the class that
stands first in the runtime's list; compute capabilities compare as numbers, part by part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from ome.api.quantities import InvalidQuantity, parse_quantity

__all__ = ["POLICIES", "choose_class", "failed_constraint", "matches_node"]

Json = Mapping[str, Any]
Named = tuple[str, Json]

_GIB: Final = 2**30
_PRECISIONS: Final = {
    "fp32": "fp32Tflops",
    "fp16": "fp16Tflops",
    "int8": "int8Tops",
    "fp8": "int8Tops",
    "int4": "int4Tops",
}
_TIERS: Final = {"low": 1, "medium": 2, "high": 3}
_UNKNOWN_TIER: Final = 2


def choose_class(policy: str, classes: Sequence[Named], constraints: Json) -> str | None:
    """The class that a policy picks from a runtime's list; None when no class is left.

    `classes` are names with specs in the runtime's order, each once and existing.
    """
    left = [each for each in classes if failed_constraint(*each, constraints) is None]
    if len(left) <= 1:
        return left[0][0] if left else None
    return POLICIES[policy](left, constraints)


def failed_constraint(name: str, spec: Json, constraints: Json) -> str | None:
    """The first constraint that a class fails, by its field's name; None when it passes all.

    `minComputePerformanceTFLOPS` and `preferredPrecisions` never filter.
    """
    for field, passes in _CONSTRAINTS.items():
        wanted = constraints.get(field)
        if wanted not in (None, "", []) and not passes(name, spec, wanted):
            return field
    return None


def _capabilities(spec: Json) -> Json:
    found: Json = spec.get("capabilities") or {}
    return found


def _number(value: Any) -> Decimal | None:
    if value is None:
        return None
    try:
        return parse_quantity(value)
    except InvalidQuantity:
        return None


def _gib(spec: Json) -> int | None:
    """Whole GiB of memory, rounded down; None when unknown."""
    memory = _number(_capabilities(spec).get("memoryGB"))
    return None if memory is None else int(memory // _GIB)


def _in_family(_: str, spec: Json, families: Sequence[str]) -> bool:
    family = str(spec.get("family") or "").lower()
    full = f"{spec.get('vendor') or ''}-{family}".lower()
    return any(
        each.lower() == full or ("-" not in each and each.lower() == family) for each in families
    )


def _has_features(_: str, spec: Json, wanted: Sequence[str]) -> bool:
    features = {each.lower() for each in _capabilities(spec).get("features") or ()}
    return all(each.lower() in features for each in wanted)


def _version(text: Any) -> tuple[int, ...] | None:
    numbers = re.findall(r"\d+", str(text), re.ASCII) if text else []
    return tuple(map(int, numbers)) if numbers else None


def _at_least_version(_: str, spec: Json, wanted: str) -> bool:
    least = _version(wanted)
    have = _version(_capabilities(spec).get("computeCapability"))
    return least is None or (have is not None and have >= least)


_CONSTRAINTS: Final[Mapping[str, Callable[[str, Json, Any], bool]]] = {
    "excludedClasses": lambda name, _, excluded: name not in excluded,
    "architectureFamilies": _in_family,
    "minMemory": lambda _, spec, least: (_gib(spec) or -1) >= least,
    "maxMemory": lambda _, spec, most: (gib := _gib(spec)) is not None and gib <= most,
    "requiredFeatures": _has_features,
    "minArchitectureVersion": _at_least_version,
}


def _tflops(spec: Json, precisions: Sequence[str]) -> float:
    """Compute performance: the largest known without preferences; with them the first that the class
    has, halved for each one skipped, fp16 as the last resort."""
    performance = _capabilities(spec).get("performance") or {}
    if not precisions:
        return float(
            max((performance.get(name) or 0 for name in set(_PRECISIONS.values())), default=0)
        )
    share = 1.0
    for precision in [*precisions, "fp16"]:
        found = performance.get(_PRECISIONS.get(precision.lower(), ""))
        if found:
            return float(found) * share
        share /= 2
    return 0.0


def _best(classes: Sequence[Named], score: Callable[[Json], float]) -> str:
    """The name of the highest score, the first of equals."""
    return max(enumerate(classes), key=lambda item: (score(item[1][1]), -item[0]))[1][0]


def _best_fit(classes: Sequence[Named], constraints: Json) -> str:
    least_memory = constraints.get("minMemory")
    least_compute = constraints.get("minComputePerformanceTFLOPS")
    precisions = constraints.get("preferredPrecisions") or ()

    def score(spec: Json) -> float:
        memory = 1.0
        if least_memory:
            gib = _gib(spec)
            memory = least_memory / gib if gib and gib >= least_memory else 0.0
        tflops = _tflops(spec, precisions)
        compute = min(1.0, tflops / least_compute) if least_compute else float(tflops > 0)
        return 0.7 * memory + 0.3 * compute

    return _best(classes, score)


def _most_capable(classes: Sequence[Named], constraints: Json) -> str:
    precisions = constraints.get("preferredPrecisions") or ("fp16",)

    def facts(spec: Json) -> tuple[float, float, float]:
        capabilities = _capabilities(spec)
        memory = _number(capabilities.get("memoryGB")) or 0
        bandwidth = _number(capabilities.get("memoryBandwidthGBps")) or 0
        performance = capabilities.get("performance") or {}
        fields = [_PRECISIONS.get(each.lower(), "") for each in precisions]
        compute = next((performance[each] for each in fields if performance.get(each)), 0)
        return float(memory), float(bandwidth), float(compute)

    found = {name: facts(spec) for name, spec in classes}
    most = [max(each[at] for each in found.values()) or 1.0 for at in range(3)]
    shares = {
        name: sum(part * each[at] / most[at] for at, part in enumerate((0.5, 0.3, 0.2)))
        for name, each in found.items()
    }
    names = [name for name, _ in classes]
    return max(names, key=lambda name: (shares[name], -names.index(name)))


def _cheapest(classes: Sequence[Named], _: Json) -> str | None:
    """Classes without a cost drop out; hourly prices count before token prices before tiers."""
    priced = [(name, spec["cost"]) for name, spec in classes if spec.get("cost")]
    if not priced:
        return None
    hourly = [
        (price, at)
        for at, (_, cost) in enumerate(priced)
        if (price := _first(cost, "spotPerHour", "perHour")) is not None
    ]
    tokens = [
        (price, at)
        for at, (_, cost) in enumerate(priced)
        if (price := _first(cost, "perMillionTokens")) is not None
    ]
    tiers = [
        (Decimal(_TIERS.get(cost.get("tier"), _UNKNOWN_TIER)), at)
        for at, (_, cost) in enumerate(priced)
    ]
    return priced[min(hourly or tokens or tiers)[1]][0]


def _first(cost: Json, *fields: str) -> Decimal | None:
    return next(
        (price for field in fields if (price := _number(cost.get(field))) is not None), None
    )


POLICIES: Final[Mapping[str, Callable[[Sequence[Named], Json], str | None]]] = {
    "BestFit": _best_fit,
    "Cheapest": _cheapest,
    "MostCapable": _most_capable,
    "FirstAvailable": lambda classes, _: classes[0][0],
}


def matches_node(spec: Json, labels: Mapping[str, str], capacity: Mapping[str, Any]) -> bool:
    """Whether a node belongs to a class: every label of its selector, and some of each resource.

    Affinity, quantities, cordons and readiness don't count; a class that asks for nothing matches
    every node.
    """
    selector = (spec.get("discovery") or {}).get("nodeSelector") or {}
    names = [item["name"] for item in spec.get("resources") or () if item.get("name")]
    return all(labels.get(key) == value for key, value in selector.items()) and all(
        (_number(capacity.get(name)) or 0) > 0 for name in names
    )
