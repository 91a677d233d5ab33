"""What hurts in one accelerator class: numbers that the API accepts and that mean something else.

Source: OME "Select accelerators" document (v1.3): constraints compare whole GiB, and memory without a unit
means bytes; Cheapest takes the lowest price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ome.api import ApiObject
from ome.api.quantities import InvalidQuantity, parse_quantity
from ome.engines.types import Severity
from ome.lint.findings import LintFinding

__all__ = ["CLASS_RULES"]

_GIB: Final = 2**30
_PRICES: Final = ("perHour", "spotPerHour", "perMillionTokens")


def memory(item: ApiObject) -> Iterator[LintFinding]:
    """Less than a GiB of memory: a unit was forgotten."""
    path = "spec.capabilities.memoryGB"
    text = ((item.raw.get("spec") or {}).get("capabilities") or {}).get("memoryGB")
    if not _is_below(text, _GIB):
        return
    means, fix = "is less than 1 GiB", "write the memory with its unit, such as 80Gi"
    if str(text).isdigit():
        means, fix = f"means {text} bytes", f'write "{text}Gi"'
    message = f'"{text}" {means}: every minMemory rejects the class'
    yield _warning("MemoryBelowGiB", item, path, message, fix)


def prices(item: ApiObject) -> Iterator[LintFinding]:
    """A price below zero."""
    cost = (item.raw.get("spec") or {}).get("cost") or {}
    for name in _PRICES:
        if _is_below(cost.get(name), 0):
            message = (
                f'"{cost[name]}" is a price below zero: the policy Cheapest prefers it to any other'
            )
            fix = "write the price, or leave it out"
            yield _warning("PriceNegative", item, f"spec.cost.{name}", message, fix)


def _is_below(value: Any, limit: int) -> bool:
    try:
        return value is not None and parse_quantity(value) < limit
    except InvalidQuantity:
        return False


def _warning(code: str, item: ApiObject, path: str, message: str, fix: str) -> LintFinding:
    return LintFinding(code, Severity.WARNING, item.ref, path, message, fix)


CLASS_RULES: Final[tuple[Callable[[ApiObject], Iterator[LintFinding]], ...]] = (memory, prices)
