"""Runtime inheritance: from a runtime to its chain of parents and the merged spec.

Source: OME "Runtime inheritance" document (v1.3). Only specs are inherited, never metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ome.merging.schema import RUNTIME_SPEC
from ome.merging.strategic import merge_chain
from ome.snapshot import Runtime, Snapshot

__all__ = ["INHERIT_FROM", "MAX_CHAIN", "BrokenChain", "resolve_chain", "spec_of_chain"]

INHERIT_FROM: Final = "ome.io/inherit-from"
MAX_CHAIN: Final = 5


@dataclass(frozen=True, slots=True)
class BrokenChain(Exception):
    """The chain has no end that counts; `reason` is that of the `InheritanceReady` condition."""

    reason: str
    message: str

    def __str__(self) -> str:
        return self.message


def resolve_chain(snapshot: Snapshot, head: Runtime) -> tuple[Runtime, ...]:
    """The runtimes that `head` inherits from, root first and `head` last. Raises BrokenChain."""
    chain = [head]
    names = [head.name]
    while parent := chain[-1].annotations.get(INHERIT_FROM):
        if len(chain) == MAX_CHAIN:
            text = f"inheritance chain exceeds max depth {MAX_CHAIN} (chain: [{' '.join(names)}])"
            raise BrokenChain("MaxDepthExceeded", text)
        if parent in names:
            text = f"inheritance cycle detected: [{' '.join([*names, parent])}]"
            raise BrokenChain("InheritanceCycle", text)
        found = _find_parent(snapshot, head, parent)
        if found is None:
            text = f'inherit-from parent "{parent}" not found (chain so far: [{" ".join(names)}])'
            raise BrokenChain("ParentNotFound", text)
        chain.append(found)
        names.append(parent)
    return tuple(reversed(chain))


def _find_parent(snapshot: Snapshot, head: Runtime, name: str) -> Runtime | None:
    """A parent of a ServingRuntime may stand in its namespace or at cluster scope, in that order."""
    local = snapshot.runtime(head.namespace, name) if head.namespace else None
    return local or snapshot.cluster_runtime(name)


def spec_of_chain(chain: tuple[Runtime, ...]) -> dict[str, Any]:
    """The effective spec: merged from the root down. Shares unchanged parts with the runtimes."""
    return merge_chain((runtime.raw.get("spec") or {} for runtime in chain), RUNTIME_SPEC)
