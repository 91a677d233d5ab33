"""Runtime inheritance: the chain of every runtime, the spec merged from it, and whom a runtime reaches.

Chains are followed and specs merged when somebody first asks, and kept until a runtime of the chain
changes. Source: OME "Runtime inheritance" document (v1.3). Only specs are inherited, never metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ome.api import ClusterServingRuntime, ObjectRef, Problem, ServingRuntime
from ome.merging.canonical import content_hash
from ome.merging.directives import Report, problems_of
from ome.merging.schema import RUNTIME_SPEC
from ome.merging.strategic import merge, merge_settled
from ome.snapshot.filling import Filling, Presets, Runtime, no_presets

__all__ = ["INHERIT_FROM", "MAX_CHAIN", "BrokenChain", "Effective", "Lineage", "Runtime"]

INHERIT_FROM: Final = "ome.io/inherit-from"
MAX_CHAIN: Final = 5


@dataclass(frozen=True, slots=True)
class BrokenChain:
    """Why a chain doesn't resolve; `reason` is that of the `InheritanceReady` condition. `preset` is there
    when a runtime of the chain asks for a preset that it can't have."""

    reason: str
    message: str
    preset: Problem | None = None


@dataclass(frozen=True)
class Effective:
    """A runtime with what it inherits: `chain` root first and itself last.

    When `broken` says why the chain doesn't resolve, `chain` holds the part that was found.
    """

    chain: tuple[Runtime, ...]
    broken: BrokenChain | None = None
    fillings: Mapping[ObjectRef, Filling] = field(default_factory=dict, repr=False)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The specs merged from the root down. Shares unchanged parts with the runtimes."""
        return self._merged[0]

    @property
    def unmatched(self) -> tuple[Problem, ...]:
        """A warning for every directive that found nothing to remove, by the runtime that has it."""
        return self._merged[1]

    @cached_property
    def _merged(self) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
        merged: Mapping[str, Any] = {}
        unmatched: list[Problem] = []
        for each in self.chain:
            runtime, filling = each, self.fillings.get(each.ref)
            if filling is not None and filling.own.has_directives:
                # They remove from the preset and from the parents, so the preset isn't filled in before.
                merged = merge_settled(merged, filling.fragment, RUNTIME_SPEC)
                runtime = filling.own
            spec = runtime.raw.get("spec") or {}
            if runtime.has_directives:
                report: Report = []
                merged = merge(merged, spec, RUNTIME_SPEC, report)
                unmatched += problems_of(report, runtime.ref)
            else:
                merged = merge_settled(merged, spec, RUNTIME_SPEC)
        return merged, tuple(unmatched)

    @cached_property
    def digest(self) -> str:
        """The content hash of the merged spec."""
        return content_hash(self.spec)


class Lineage:
    """Who inherits from whom. Kept up one runtime at a time; a change costs what it reaches.

    `presets` fills the runtimes that name a preset, before anything is merged. `kept` is where the runtimes
    are kept, if not in a dict of its own; it may hold other objects, too. At most `remembered` merged specs
    are kept for the next who asks, those that were asked for last; all of them without a number.
    """

    def __init__(
        self,
        runtimes: Iterable[Runtime] = (),
        presets: Presets = no_presets,
        kept: MutableMapping[ObjectRef, Any] | None = None,
        remembered: int | None = None,
    ) -> None:
        self._remembered = remembered
        self._presets = presets
        self._runtimes: MutableMapping[ObjectRef, Runtime] = {} if kept is None else kept
        self._fillings: dict[ObjectRef, Filling] = {}
        self._children: dict[str, set[ObjectRef]] = {}
        self._effective: dict[ObjectRef, Effective] = {}
        for runtime in runtimes:
            self._add(runtime)

    def effective(self, ref: ObjectRef) -> Effective:
        """The chain of a runtime and its merged spec. Raises KeyError for one that isn't there."""
        known = self._effective.pop(ref, None) or self._follow(self._runtimes[ref])
        self._effective[ref] = known
        if self._remembered is not None and len(self._effective) > self._remembered:
            del self._effective[next(iter(self._effective))]
        return known

    def reaches(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """The runtimes whose chain goes through a runtime, itself included when it is there."""
        return frozenset(
            each
            for each in self._candidates(ref)
            if any(member.ref == ref for member in self.effective(each).chain)
        )

    def put(self, runtime: Runtime) -> frozenset[ObjectRef]:
        """Take in a runtime, or what became of it. Returns the runtimes that this changes."""
        old, old_filling = self._runtimes.get(runtime.ref), self._fillings.get(runtime.ref)
        before = self._release(runtime.ref)
        self._drop(runtime.ref)
        self._add(runtime)
        new, new_filling = self._runtimes[runtime.ref], self._fillings.get(runtime.ref)
        same_preset = _problem(old_filling) == _problem(new_filling)
        if old is not None and same_preset and _says_the_same(old, new):
            return frozenset()
        return before | self.reaches(runtime.ref)

    def remove(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """Forget a runtime. Returns the runtimes that this changes, itself included."""
        before = self._release(ref)
        self._drop(ref)
        return before | self.reaches(ref)

    def _release(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """Drop every result that a change of a runtime can concern. Returns those that it does."""
        reached = self.reaches(ref)
        for each in self._candidates(ref):
            self._effective.pop(each, None)
        return reached

    def _add(self, runtime: Runtime) -> None:
        filling = self._presets(runtime)
        if filling is not None:
            self._fillings[runtime.ref] = filling
            runtime = filling.runtime
        self._runtimes[runtime.ref] = runtime
        if parent := runtime.annotations.get(INHERIT_FROM):
            self._children.setdefault(parent, set()).add(runtime.ref)

    def _drop(self, ref: ObjectRef) -> None:
        runtime = self._runtimes.pop(ref, None)
        self._fillings.pop(ref, None)
        parent = runtime.annotations.get(INHERIT_FROM) if runtime is not None else None
        if parent:
            self._children[parent].discard(ref)
            if not self._children[parent]:
                del self._children[parent]

    def _candidates(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """Every runtime whose chain can go through a runtime, by the names of parents alone."""
        found = {ref} if ref in self._runtimes else set()
        names, seen = [ref.name], {ref.name}
        while names:
            for child in self._children.get(names.pop(), ()):
                if not ref.namespace or child.namespace in ("", ref.namespace):
                    found.add(child)
                    if child.name not in seen:
                        seen.add(child.name)
                        names.append(child.name)
        return frozenset(found)

    def _follow(self, head: Runtime) -> Effective:
        chain = [head]
        names = [head.name]
        broken = None
        while parent := chain[-1].annotations.get(INHERIT_FROM):
            found = self.parent(head, parent)
            broken = _fault(names, parent, found)
            if broken is not None or found is None:
                break
            chain.append(found)
            names.append(parent)
        members = [each.ref for each in chain if each.ref in self._fillings]
        fillings = {ref: self._fillings[ref] for ref in members}
        return Effective(tuple(reversed(chain)), broken or _refused(fillings), fillings)

    def parent(self, head: Runtime, name: str) -> Runtime | None:
        """A parent in the chain of `head`, or None. That of a ServingRuntime may stand in its namespace or
        at cluster scope, in that order."""
        found = None
        if head.namespace:
            found = self._runtimes.get(ObjectRef(ServingRuntime.KIND, head.namespace, name))
        return found or self._runtimes.get(ObjectRef(ClusterServingRuntime.KIND, "", name))


def _fault(names: list[str], parent: str, found: Runtime | None) -> BrokenChain | None:
    """What keeps a chain from going on to a parent, in the documented order."""
    listed = " ".join(names)
    if len(names) == MAX_CHAIN:
        text = f"inheritance chain exceeds max depth {MAX_CHAIN} (chain: [{listed}])"
        return BrokenChain("MaxDepthExceeded", text)
    if parent in names:
        return BrokenChain("InheritanceCycle", f"inheritance cycle detected: [{listed} {parent}]")
    if found is None:
        text = f'inherit-from parent "{parent}" not found (chain so far: [{listed}])'
        return BrokenChain("ParentNotFound", text)
    return None


def _refused(fillings: Mapping[ObjectRef, Filling]) -> BrokenChain | None:
    """What keeps a runtime of a chain, the nearest first, from having the preset that it names."""
    for filling in fillings.values():
        if (problem := filling.problem) is not None:
            return BrokenChain(problem.code, problem.message, problem)
    return None


def _problem(filling: Filling | None) -> Problem | None:
    return None if filling is None else filling.problem


def _says_the_same(old: Runtime, new: Runtime) -> bool:
    """Whether two states of a runtime differ in nothing that a plan reads."""
    return old.raw.get("spec") == new.raw.get("spec") and old.annotations == new.annotations
