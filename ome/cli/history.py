"""`kubectl ome runtime history`: the stored revisions of the runtime behind a service."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Final

from ome.cli.columns import clip, display_width, fingerprint, printable
from ome.cli.target import (
    check_name,
    find_service,
    guarded,
    namespace_of,
    read_input,
    write_data,
    write_table,
)
from ome.reports.evidence import timestamp
from ome.reports.history import Entry, HistoryReport, history
from ome.reports.revisions import created_at

__all__ = ["run", "shown_revision"]

HEADER: Final = ("WINDOW", "REVISION", "CREATED", "ROLES", "CHECK", "LIVE", "ISSUES")
WIDE: Final = (
    *("OBSERVATION", "COMPLETENESS", "PAGES", "REVISION", "CREATED", "HASH", "ROLES", "SOURCE"),
    *("CONSISTENCY", "RELATION", "REVISION-ISSUES", "REPORT-ISSUES"),
)
_NAME: Final = 14
_NAME_START: Final = 5
_ROLES: Final = {"Active": "A", "Requested": "Q", "Reported": "R", "History": "H"}
_CHECKS: Final = {"Consistent": "OK", "Inconsistent": "BAD", "Unknown": "?"}
_RELATIONS: Final = {
    "MatchesLive": "MATCH",
    "DiffersFromLive": "DIFF",
    "Ambiguous": "AMB",
    "Unknown": "?",
}


def run(options: argparse.Namespace) -> int:
    """Print the report; exit code 0, or 1 with an error on stderr."""
    return guarded(_run, options)


def _run(options: argparse.Namespace) -> None:
    check_name("InferenceService", options.name)
    snapshot = read_input(options)
    service = find_service(snapshot, namespace_of(options), options.name, "get InferenceService: ")
    report = history(snapshot, service)
    if options.output == "table":
        write_table(HEADER, list(_rows(report)))
    elif options.output == "wide":
        write_table(WIDE, list(_wide_rows(report)))
    else:
        write_data(report.as_json(), options.output)


def _rows(report: HistoryReport) -> Iterator[Sequence[str]]:
    bound = "B" if report.completeness == "RetentionBounded" else "I"
    listing = report.listing
    window = f"{report.observation[0]}/{bound}/{_pages(listing.pages)}/{_pages(listing.asked)}"
    general = _count(len(report.issues()))
    for entry in report.entries:
        created = created_at(entry.seen.revision)
        yield (
            window,
            shown_revision(entry.seen.revision.name),
            "-" if created is None else created.astimezone(UTC).strftime("%y-%m-%dT%H:%MZ"),
            "".join(_ROLES[role] for role in entry.roles),
            _CHECKS[entry.seen.consistency],
            _RELATIONS[entry.relation],
            f"R{_count(len(entry.seen.issues))}/G{general}",
        )
    if not report.entries:
        yield (window, *"-----", f"R0/G{general}")


def shown_revision(name: str) -> str:
    """A revision's name within 14 columns."""
    shown = printable(name)
    return shown if display_width(shown) <= _NAME else clip(name, _NAME_START) + fingerprint(name)


def _pages(count: int) -> str:
    return str(count) if count < 100 else "99+"


def _count(issues: int) -> str:
    return str(issues) if issues < 10 else "9+"


def _wide_rows(report: HistoryReport) -> Iterator[Sequence[str]]:
    window = (
        report.observation,
        report.completeness,
        f"{report.listing.pages}/{report.listing.asked}",
    )
    issues = ",".join(map(str, report.issues())) or "-"
    for entry in report.entries:
        yield (*window, *_wide_cells(entry), issues)
    if not report.entries:
        yield (*window, *"--------", issues)


def _wide_cells(entry: Entry) -> Sequence[str]:
    seen = entry.seen
    created = created_at(seen.revision)
    cells = (
        seen.revision.name,
        "" if created is None else timestamp(created),
        seen.hash,
        ",".join(entry.roles),
        str(seen.source or ""),
        seen.consistency,
        entry.relation,
        ",".join(seen.issues),
    )
    return [cell or "-" for cell in cells]
