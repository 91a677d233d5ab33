"""What a service renders to, in the form in which versions of OME hand it to each other.

The form is an interface: another version of OME wrote it, or will read it. `PROTOCOL` changes when a reader
of the old form would misread the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import ObjectRef
from ome.planning.plan import Plan

__all__ = ["PROTOCOL", "Rendered"]

Json = dict[str, Any]

PROTOCOL: Final = 1


@dataclass(frozen=True, slots=True)
class Rendered:
    """One service: its objects, the runtime that it uses, the first problem that holds something back,
    and by component the layer of every leaf and of everything that was removed."""

    service: ObjectRef
    objects: tuple[Json, ...] = ()
    runtime: str | None = None
    refusal: str | None = None
    layers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    removals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Rendered:
        """What a plan made with provenance renders to."""
        decision = plan.decision
        return cls(
            plan.service,
            tuple(plan.objects()),
            None if decision is None else str(decision["runtime"]),
            next((problem.message for _, problem in plan.refusals()), None),
            {
                component: {path: layer for path, (_, layer) in leaves.items()}
                for component, leaves in plan.provenance.items()
            },
            plan.removals,
        )

    def as_json(self) -> Json:
        """The form."""
        ref = self.service
        return {
            "service": {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name},
            "objects": list(self.objects),
            "runtime": self.runtime,
            "refusal": self.refusal,
            "layers": self.layers,
            "removals": {name: dict(found) for name, found in self.removals.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rendered:
        """Reads the form. Raises KeyError or TypeError for anything else."""
        ref = data["service"]
        return cls(
            ObjectRef(ref["kind"], ref["namespace"], ref["name"]),
            tuple(data["objects"]),
            data["runtime"],
            data["refusal"],
            data["layers"],
            data["removals"],
        )
