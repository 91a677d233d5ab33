"""What lint says: one finding per place, with a stable code, why it hurts and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ome.api import ObjectRef, Problem
from ome.engines.types import Severity

__all__ = ["LintFinding", "from_problem"]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding: `path` is a field of the object, `message` says why, `fix` what to do."""

    code: str
    severity: Severity
    ref: ObjectRef | None
    path: str
    message: str
    fix: str = ""
    where: str = ""
    reference: str = ""

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON data, leaving out what is empty."""
        data: dict[str, Any] = {"code": self.code, "severity": str(self.severity)}
        if self.ref is not None:
            data["object"] = str(self.ref)
        for key in ("path", "message", "fix", "where", "reference"):
            if value := getattr(self, key):
                data[key] = value
        return data


def from_problem(problem: Problem, severity: Severity) -> LintFinding:
    """A problem found elsewhere (reading, planning) as a finding."""
    return LintFinding(
        problem.code,
        severity,
        problem.ref,
        problem.path,
        problem.message,
        problem.fix,
        problem.where,
        problem.reference,
    )
