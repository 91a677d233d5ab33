"""What can be wrong, as data: a stable code, the object, the field and a message.

A rule that finds a fault returns or raises a `Problem`; shells decide how to show it. Codes are
part of the interface and are never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ObjectRef", "OmeError", "Problem"]


@dataclass(frozen=True, slots=True, order=True)
class ObjectRef:
    """Which object: its kind, its namespace (empty for cluster scope) and its name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        if self.namespace:
            return f"{self.kind}/{self.namespace}/{self.name}"
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault or advisory.

    `code` is stable, `message` is complete in itself, `path` is a field path such as
    `spec.engine.runner.env[0].value`, `fix` says what to do about it, `where` is a place
    in the input such as `runtime.yaml: document 2, line 14`, and `reference` tells where the fault is
    documented or was reported. `is_error` marks an advisory about something that can't work, `is_note` one
    that is worth knowing and no more.
    """

    code: str
    message: str
    ref: ObjectRef | None = None
    path: str = ""
    fix: str = ""
    where: str = ""
    reference: str = ""
    is_error: bool = False
    is_note: bool = False

    def __str__(self) -> str:
        """The problem on one line: place, object, field, message, fix; each only if it is known."""
        path = "" if self.message.startswith(self.path) else self.path
        head = [str(part) for part in (self.where, self.ref, path) if part]
        text = ": ".join([*head, self.message])
        return f"{text}; {self.fix}" if self.fix else text

    def as_json(self) -> dict[str, Any]:
        """The problem as JSON data, leaving out what is empty."""
        data: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.ref is not None:
            data["object"] = str(self.ref)
        for key in ("path", "fix", "where", "reference"):
            if value := getattr(self, key):
                data[key] = value
        return data


class OmeError(Exception):
    """Base of OME's own errors; carries every problem found, the first one first."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
