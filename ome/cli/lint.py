"""`ome lint`: findings as text, JSON, SARIF or annotations of a CI run."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ome import __version__
from ome.api import OmeError
from ome.cli.input import read_engines, read_objects, snapshot_of
from ome.cli.output import error, to_json
from ome.engines.types import Severity
from ome.lint.findings import LintFinding, from_problem
from ome.lint.lint import lint
from ome.sources import Loaded

__all__ = ["run"]

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# What reading says and lint shows more precisely, or what is no fault of the input.
_NOT_FINDINGS: Final = frozenset({"ObjectsSkipped"})


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding with its file and line, as far as they are known."""

    finding: LintFinding
    file: str = ""
    line: int = 0

    @property
    def subject(self) -> str:
        """The object and the field."""
        parts = [str(self.finding.ref or ""), self.finding.path]
        return ": ".join(part for part in parts if part)

    @property
    def text(self) -> str:
        """Why it hurts and what to do."""
        fix = self.finding.fix
        return f"{self.finding.message}; {fix}" if fix else self.finding.message


def run(options: argparse.Namespace) -> int:
    """Print the findings; exit code 1 on errors, with --strict on warnings, 2 for unusable flags."""
    try:
        engines = read_engines(options)
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        return 2
    try:
        loaded = read_objects(options, engines, keep_places=True)
    except OmeError as refused:
        found = [_of_reading(from_problem(each, Severity.ERROR)) for each in refused.problems]
    else:
        snapshot = snapshot_of(loaded, options, engines)
        read = [each for each in loaded.warnings if each.code not in _NOT_FINDINGS]
        found = [_of_reading(from_problem(each, Severity.WARNING)) for each in read]
        found += [_placed(each, loaded) for each in lint(snapshot, engines)]
    sys.stdout.write(_FORMATS[options.output](found))
    counts = Counter(each.finding.severity for each in found)
    return 1 if counts[Severity.ERROR] or (options.strict and counts[Severity.WARNING]) else 0


def _placed(finding: LintFinding, loaded: Loaded) -> Placed:
    place = None if finding.ref is None else loaded.line_of(finding.ref, finding.path)
    return Placed(finding) if place is None else Placed(finding, *place)


def _of_reading(finding: LintFinding) -> Placed:
    """A finding of reading, whose place stands in its text: `FILE: document N, line L`."""
    file, _, rest = finding.where.rpartition(": ")
    line = rest.rpartition("line ")[2]
    return Placed(finding, file or finding.where, int(line) if line.isdecimal() else 0)


def _as_text(found: Sequence[Placed]) -> str:
    lines = []
    for each in found:
        place = f"{each.file}:{each.line}: " if each.line else f"{each.file}: " if each.file else ""
        subject = f"{each.subject}: " if each.subject else ""
        lines.append(f"{place}{each.finding.severity}: {subject}{each.text} [{each.finding.code}]")
    counts = Counter(each.finding.severity for each in found)
    errors, warnings, notes = (
        counts[each] for each in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    )
    total = f"{errors} error(s), {warnings} warning(s)" + (f", {notes} note(s)" if notes else "")
    lines.append(total if found else "no findings")
    return "\n".join(lines) + "\n"


def _as_json(found: Sequence[Placed]) -> str:
    data = []
    for each in found:
        entry = each.finding.as_json()
        entry.pop("where", None)
        if each.file:
            entry["file"] = each.file
        if each.line:
            entry["line"] = each.line
        data.append(entry)
    return to_json({"apiVersion": "cli.ome.io/v1alpha1", "kind": "LintReport", "findings": data})


def _as_sarif(found: Sequence[Placed]) -> str:
    codes = sorted({each.finding.code for each in found})
    results: list[dict[str, Any]] = []
    for each in found:
        result: dict[str, Any] = {
            "ruleId": each.finding.code,
            "level": str(each.finding.severity),
            "message": {"text": f"{each.subject}: {each.text}" if each.subject else each.text},
        }
        if each.file:
            location: dict[str, Any] = {"artifactLocation": {"uri": each.file}}
            if each.line:
                location["region"] = {"startLine": each.line}
            result["locations"] = [{"physicalLocation": location}]
        results.append(result)
    driver = {
        "name": "ome lint",
        "version": __version__,
        "rules": [{"id": code, "name": code} for code in codes],
    }
    return to_json(
        {
            "$schema": _SARIF_SCHEMA,
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}],
        }
    )


def _as_github(found: Sequence[Placed]) -> str:
    """Workflow commands: https://docs.github.com/actions, "Workflow commands"."""
    lines = []
    for each in found:
        properties = {"file": each.file, "line": str(each.line or ""), "title": each.finding.code}
        shown = ",".join(
            f"{name}={_escape(value, property_value=True)}"
            for name, value in properties.items()
            if value
        )
        text = f"{each.subject}: {each.text}" if each.subject else each.text
        command = "notice" if each.finding.severity is Severity.NOTE else str(each.finding.severity)
        lines.append(f"::{command} {shown}::{_escape(text)}\n")
    return "".join(lines)


def _escape(text: str, *, property_value: bool = False) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if property_value else escaped


_FORMATS: Final[Mapping[str, Callable[[Sequence[Placed]], str]]] = {
    "text": _as_text,
    "json": _as_json,
    "sarif": _as_sarif,
    "github": _as_github,
}
