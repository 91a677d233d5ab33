"""`kubectl ome runtime tree`: what a runtime inherits from, what inherits from it, and who names each.

Lines keep within 80 columns; `-o wide` shortens nothing but the services that couldn't be attributed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ome.api import ClusterServingRuntime, ObjectRef, ServingRuntime
from ome.cli.columns import clip_identity, display_width, printable
from ome.cli.target import Refusal, check_name, guarded, namespace_of, read_input, write_data
from ome.reports.tree import (
    Collection,
    NoTree,
    Path,
    TreeContext,
    TreeIssue,
    TreeReport,
    Unattributed,
    find_target,
    tree,
)

__all__ = ["run", "text"]

WIDTH: Final = 80
KINDS: Final = (ServingRuntime.KIND, ClusterServingRuntime.KIND)
# Below this, a part of an identity isn't shortened while others have more.
_LEAST: Final = 14


def run(options: argparse.Namespace) -> int:
    """Print the report; exit code 0, or 1 with an error on stderr."""
    return guarded(_run, options)


def _run(options: argparse.Namespace) -> None:
    check_name("runtime", options.name)
    if options.kind and options.kind not in KINDS:
        supported = ", ".join(KINDS)
        raise Refusal(f'unsupported runtime kind "{options.kind}" (supported: {supported})')
    snapshot = read_input(options)
    try:
        target = find_target(snapshot, namespace_of(options), options.name, options.kind or "")
        report = tree(snapshot, target)
    except NoTree as error:
        raise Refusal(str(error)) from None
    unattributed = options.show_unattributed_users
    if options.output in ("json", "yaml"):
        write_data(report.as_json(show_unattributed=unattributed), options.output)
    else:
        width = WIDTH if options.output == "table" else None
        sys.stdout.write(text(report, width, show_unattributed=unattributed))


def text(report: TreeReport, width: int | None, *, show_unattributed: bool = False) -> str:
    """The tree in lines of at most `width` columns; None: as long as they are."""
    lines = ["RUNTIME TREE", *_Lines(width).of(report, show_unattributed=show_unattributed)]
    return "\n".join(lines) + "\n"


class _Lines:
    """The lines of a report within a width."""

    def __init__(self, width: int | None) -> None:
        self._width = sys.maxsize if width is None else width

    def of(self, report: TreeReport, *, show_unattributed: bool) -> Iterator[str]:
        """Every line below the title."""
        yield self._identity("Target: ", report.target)
        for context in report.contexts:
            yield self._context(context)
            for path in context.paths:
                yield from self._path(path, context.namespace, report.target)
        if show_unattributed:
            yield "Unattributed users (not attributed to runtime tree):"
            for each in report.unattributed:
                yield from _Lines(WIDTH).unattributed(each)
            if not report.unattributed:
                yield "  none observed"
        yield f"Snapshot: {report.completeness}"
        for collection in report.collections:
            yield from self._collection(collection)
        for code in report.warnings():
            yield f"Warning: {code}"

    def _context(self, context: TreeContext) -> str:
        end = " (resolution: Complete)"
        if not context.namespace:
            return f"Context: {context.mode}{end}"
        return self._parts("Context: ", (context.mode, context.namespace), end)

    def _path(self, path: Path, within: str, target: ObjectRef) -> Iterator[str]:
        yield self._identity("Head: ", path.head, within)
        for depth, step in enumerate(path.steps):
            branch = "    " * (depth - 1) + "`-- " if depth else ""
            mark = " [selected]" if step.ref == target else ""
            yield self._identity(branch, step.ref, within, mark)
        indent = "    " * (len(path.steps) - 1)
        for at, ref in enumerate(path.dependents, 1):
            branch = "`-- " if at == len(path.dependents) else "|-- "
            yield self._identity(indent + branch, ref, within)
        if path.issue is not None:
            yield from self._issue(path.issue, within)

    def _issue(self, issue: TreeIssue, within: str) -> Iterator[str]:
        line = f"Issue: {issue.code} subject={_name(issue.subject, within)} parent={issue.parent}"
        yield from self._whole_or(
            line,
            lambda: [
                f"Issue: {issue.code}",
                self._identity("  subject: ", issue.subject, within),
                self._parts("  parent: ", (issue.parent,)),
            ],
        )
        line = "Issue path: " + " -> ".join(_name(ref, within) for ref in issue.path)
        yield from self._whole_or(
            line,
            lambda: [
                self._identity("  -> " if at else "Issue path: ", ref, within)
                for at, ref in enumerate(issue.path)
            ],
        )

    def _collection(self, collection: Collection) -> Iterator[str]:
        start = f"Collection: {collection.kind} scope="
        listing = collection.listing
        detail = f" status={listing.status} pages={listing.pages} items={collection.items}"
        scope = (collection.scope, *filter(None, (collection.namespace,)))
        yield from self._whole_or(
            start + "/".join(scope) + detail,
            lambda: [self._parts(start, scope), f" {detail}"],
        )

    def unattributed(self, each: Unattributed) -> Iterator[str]:
        """A service that is attributed to no runtime."""
        yield self._identity("  [not attributed] ", each.service)
        yield f"  state={each.state} reason={each.reason}"
        if each.declared:
            yield self._parts("  declared runtime=", (each.declared,))

    def _whole_or(self, line: str, parts: Callable[[], list[str]]) -> list[str]:
        shown = printable(line)
        return [shown] if display_width(shown) <= self._width else parts()

    def _identity(self, start: str, ref: ObjectRef, within: str = "", end: str = "") -> str:
        return self._parts(start, _name_parts(ref, within), end)

    def _parts(self, start: str, parts: Sequence[str], end: str = "") -> str:
        """Parts joined by `/`, each shortened as far as the line asks for."""
        free = self._width - len(start) - len(end) - (len(parts) - 1)
        widths = _share(free, [display_width(printable(part)) for part in parts])
        return start + "/".join(map(clip_identity, parts, widths)) + end


def _name_parts(ref: ObjectRef, within: str) -> Sequence[str]:
    """An identity without the namespace of the context that it stands in."""
    namespace = "" if ref.namespace == within else ref.namespace
    return [part for part in (ref.kind, namespace, ref.name) if part]


def _name(ref: ObjectRef, within: str) -> str:
    return "/".join(_name_parts(ref, within))


def _share(total: int, needs: Sequence[int]) -> list[int]:
    """Widths of parts that share a line: 14 columns each, then one more in turn while it needs it."""
    if sum(needs) <= total:
        return list(needs)
    least = min(_LEAST, total // len(needs))
    widths = [min(need, least) for need in needs]
    left = total - sum(widths)
    while left > 0 and (growing := [at for at, need in enumerate(needs) if widths[at] < need]):
        for at in growing[:left]:
            widths[at] += 1
        left -= len(growing[:left])
    return widths
