"""`ome diff`: what a change of manifests does to services, for a terminal, a program or a pull request."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ome.api import OmeError, Problem
from ome.cli.input import read_engines, read_objects, snapshot_of
from ome.cli.otherside import render_with, versions_changed
from ome.cli.output import error, to_json, warn
from ome.engines.engines import Engines
from ome.planning.diff import Between, FieldChange, ServiceChange, compare, render_all
from ome.planning.rendered import Rendered

__all__ = ["run"]

_MOST_NAMES: Final = 10


def run(options: argparse.Namespace) -> int:
    """Print the changes; exit code 0 without any, 1 with some, 2 when the input can't be used."""
    try:
        engines = read_engines(options)
        changes, versions = _changes(options, engines)
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        return 2
    sys.stdout.write(_FORMATS[options.output](changes, versions))
    return 1 if changes else 0


def _changes(options: argparse.Namespace, engines: Engines) -> tuple[list[ServiceChange], str]:
    """The changes between the inputs and, with another interpreter, between the versions; and what
    differs between those."""
    python, after_paths = options.before_python, options.after
    if after_paths is None:
        if python is None:
            text = "AFTER is missing: there is one input only"
            raise OmeError(Problem("NothingToCompare", text, fix="name AFTER, or --before-python"))
        after_paths = options.before
    if python is not None and options.before == "-":
        text = "BEFORE can't be standard input with --before-python: it is read twice"
        raise OmeError(Problem("NothingToCompare", text, fix="write it to a file"))
    before = _render(options, options.before, engines, "before")
    after = before
    if after_paths != options.before:
        after = _render(options, after_paths, engines, "after")
    if python is None:
        return list(compare(before, after)), ""
    other = render_with(python, options, options.before)
    versions = versions_changed(other.versions, engines)
    return list(compare(other.services, after, Between(before, versions))), versions


def _render(options: argparse.Namespace, paths: str, engines: Engines, side: str) -> list[Rendered]:
    """What one side renders to; warnings say which side they are of."""
    own = argparse.Namespace(**{**vars(options), "filename": [paths]})
    loaded = read_objects(own, engines)
    snapshot = snapshot_of(loaded, own, engines)
    for problem in (*loaded.warnings, *snapshot.preset_problems):
        if problem.code != "ObjectsSkipped":
            warn(Problem(problem.code, f"{side}: {problem}"))
    return render_all(snapshot, engines)


def _causes(changes: Sequence[ServiceChange]) -> dict[tuple[str, str], list[str]]:
    """Cause and field → the services that it reaches, most first."""
    found: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        keys = dict.fromkeys((each.cause, each.field) for each in change.fields)
        for key in keys:
            found.setdefault(key, []).append(_name(change))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _name(change: ServiceChange) -> str:
    return f"{change.service.namespace}/{change.service.name}"


def _summary(changes: Sequence[ServiceChange]) -> str:
    restarts = sum(len(change.restarts) for change in changes)
    moved = sum(change.chooses_anew for change in changes)
    refused = sum(change.refusal[1] is not None for change in changes)
    parts = [f"{len(changes)} service(s) change", f"{restarts} Deployment(s) restart their pods"]
    if moved:
        parts.append(f"{moved} service(s) get another runtime")
    if refused:
        parts.append(f"{refused} service(s) are refused")
    return ", ".join(parts)


def _as_text(changes: Sequence[ServiceChange], versions: str) -> str:
    head = [f"Versions: {versions}"] if versions else []
    if not changes:
        return "\n".join([*head, "no service changes"]) + "\n"
    lines = [*head, _summary(changes), "", "By cause:"]
    for (cause, field), services in _causes(changes).items():
        lines.append(f"  {cause}: {field}: {_listed(services)}")
    for change in changes:
        lines += ["", f"{change.kind} {_name(change)}", *(f"  {line}" for line in _facts(change))]
        lines += [f"  {line}" for each in change.fields for line in _field_lines(each)]
    return "\n".join(lines) + "\n"


def _listed(services: Sequence[str]) -> str:
    shown = ", ".join(services[:_MOST_NAMES])
    left = len(services) - _MOST_NAMES
    return f"{shown} and {left} more" if left > 0 else shown


def _facts(change: ServiceChange) -> list[str]:
    lines = []
    if change.chooses_anew:
        lines.append(f"runtime: {change.runtime[0]} -> {change.runtime[1]}")
    if change.refusal[1]:
        lines.append(f"refused: {change.refusal[1]}")
    elif change.refusal[0]:
        lines.append(f"no longer refused: {change.refusal[0]}")
    for what, names in (
        ("restarts the pods of", change.restarts),
        ("adds", change.added),
        ("removes", change.removed),
    ):
        if names:
            lines.append(f"{what} {', '.join(names)}")
    return lines


def _field_lines(each: FieldChange) -> list[str]:
    if isinstance(each.before, list) and isinstance(each.after, list):
        gone = [word for word in each.before if word not in each.after]
        new = [word for word in each.after if word not in each.before]
        values = [f"    - {_shown(word)}" for word in gone] + [
            f"    + {_shown(word)}" for word in new
        ]
    else:
        values = [
            f"    {mark} {_shown(value)}"
            for mark, value in (("-", each.before), ("+", each.after))
            if value is not None
        ]
    return [f"{each.object} {each.path} ({each.cause})", *values]


def _shown(value: Any) -> str:
    """A value on one line; one with line breaks as a JSON string."""
    is_plain = isinstance(value, str) and value.isprintable()
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _as_markdown(changes: Sequence[ServiceChange], versions: str) -> str:
    head = [f"Versions: {versions}", ""] if versions else []
    if not changes:
        return "\n".join([*head, "No service changes."]) + "\n"
    table = ["| Cause | Field | Services |", "| --- | --- | --- |"]
    lines = [*head, f"**{_summary(changes)}**", "", *table]
    for (cause, field), services in _causes(changes).items():
        lines.append(
            f"| {_cell(cause)} | {_code(field)} | {len(services)}: {_cell(_listed(services))} |"
        )
    lines += ["", "| Service | Change | Restarts | Notes |", "| --- | --- | --- | --- |"]
    for change in changes:
        restarts = ", ".join(_cell(name) for name in change.restarts) or "-"
        notes = "; ".join(line for line in _facts(change) if not line.startswith("restarts"))
        lines.append(
            f"| {_cell(_name(change))} | {change.kind} | {restarts} | {_cell(notes) or '-'} |"
        )
    lines += ["", "<details><summary>Fields</summary>", ""]
    for change in changes:
        if change.fields:
            lines += [f"`{_name(change)}`", "", "```diff"]
            lines += [
                line.strip() if line.startswith("    ") else f"# {line}"
                for each in change.fields
                for line in _field_lines(each)
            ]
            lines += ["```", ""]
    return "\n".join([*lines, "</details>"]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _as_json(changes: Sequence[ServiceChange], versions: str) -> str:
    causes = [
        {"cause": cause, "field": field, "services": services}
        for (cause, field), services in _causes(changes).items()
    ]
    return to_json(
        {
            "apiVersion": "cli.ome.io/v1alpha1",
            "kind": "DiffReport",
            **({"versions": versions} if versions else {}),
            "causes": causes,
            "services": [_service_data(change) for change in changes],
        }
    )


def _service_data(change: ServiceChange) -> dict[str, Any]:
    data: dict[str, Any] = {
        "service": str(change.service),
        "change": change.kind,
        "restarts": list(change.restarts),
        "added": list(change.added),
        "removed": list(change.removed),
        "fields": [
            {
                "object": each.object,
                "path": each.path,
                "before": each.before,
                "after": each.after,
                "cause": each.cause,
            }
            for each in change.fields
        ],
    }
    if change.chooses_anew:
        data["runtime"] = {"before": change.runtime[0], "after": change.runtime[1]}
    if any(change.refusal):
        data["refusal"] = {"before": change.refusal[0], "after": change.refusal[1]}
    return data


_FORMATS: Final[Mapping[str, Callable[[Sequence[ServiceChange], str], str]]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
}
