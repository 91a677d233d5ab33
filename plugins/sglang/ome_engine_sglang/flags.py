"""SGLang's command line as data: every flag of the releases in `flags.json`, and how each reads it.

The file is derived from the released wheels by `tools/derive_sglang_flags.py`. SGLang's parser is
Python's argparse: a prefix that fits one option counts as that option, the last of repeated flags
wins, underscores don't stand for dashes, and there are no long options with a single dash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

from ome.engines import Arity, Dialect

__all__ = [
    "CONFLICTING",
    "RELEASES",
    "AmbiguousFlag",
    "Option",
    "Release",
    "dialect",
    "order_of",
    "releases_for",
]

_ARITIES: Final = {
    "none": Arity.SWITCH,
    "one": Arity.VALUE,
    "optional": Arity.OPTIONAL,
    "many": Arity.MANY,
}
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:rc\d+|\.post(\d+))?")


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a release: all its spellings and how many values it takes."""

    spellings: tuple[str, ...]
    arity: Arity
    repeatable: bool = False


class AmbiguousFlag(Exception):
    """A flag that is a prefix of several options; the argument is their spellings."""


@dataclass(frozen=True)
class Release:
    """The options of one release."""

    version: str
    options: tuple[Option, ...]
    by_spelling: Mapping[str, Option] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found = {text: option for option in self.options for text in option.spellings}
        object.__setattr__(self, "by_spelling", found)

    def option_of(self, flag: str) -> Option | None:
        """What this release takes a flag for, None if it refuses it. Raises AmbiguousFlag."""
        exact = self.by_spelling.get(flag)
        if exact is not None or not flag.startswith("--"):
            return exact
        fitting = {text: one for text, one in self.by_spelling.items() if text.startswith(flag)}
        if len({one.spellings for one in fitting.values()}) > 1:
            raise AmbiguousFlag(*sorted(fitting))
        return next(iter(fitting.values()), None)


def _load() -> tuple[Release, ...]:
    """The releases in their order. Read at import, so that the hooks themselves do no I/O."""
    data = json.loads(files("ome_engine_sglang").joinpath("flags.json").read_text("utf-8"))
    options: list[list[Option]] = [[] for _ in data["versions"]]
    for row in data["options"]:
        option = _option(row)
        for at in _numbers(row[2]):
            options[at].append(option)
    return tuple(
        Release(version, tuple(found))
        for version, found in zip(data["versions"], options, strict=True)
    )


def _option(row: Sequence[Any]) -> Option:
    arity, _, repeatable = row[1].partition(" ")
    return Option(tuple(row[0].split()), _ARITIES[arity], bool(repeatable))


def _numbers(spans: str) -> list[int]:
    """Every number of `0-3 5`."""
    found: list[int] = []
    for span in spans.split():
        first, _, last = span.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def order_of(version: str) -> tuple[int, int, int, int] | None:
    """A key that sorts versions (`.post1` after the release, `rc1` before), None if it is none."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    major, minor, patch, post = found.groups()
    last = int(post) + 1 if post else (-1 if "rc" in version else 0)
    return int(major), int(minor), int(patch), last


RELEASES: Final = _load()
_ORDERED: Final = tuple(
    (order_of(release.version) or (0, 0, 0, 0), release) for release in RELEASES
)


def releases_for(version: str) -> tuple[Release, ...]:
    """The releases that a version may parse like, newest first.

    The release itself when its flags are known, else its neighbours, and all of them for a version
    that isn't known: what holds for each of these holds for the version.
    """
    at = order_of(version)
    if at is None:
        return RELEASES[::-1]
    older = [release for order, release in _ORDERED if order <= at]
    newer = [release for order, release in _ORDERED if order >= at]
    if older and newer:
        return (older[-1],) if older[-1] is newer[0] else (newer[0], older[-1])
    return (older[-1],) if older else (newer[0],)


def _arities(releases: Sequence[Release]) -> tuple[dict[str, Arity], frozenset[str]]:
    """The arity of each flag, and the flags whose arity differs between the releases."""
    arity: dict[str, Arity] = {}
    differing: set[str] = set()
    for release in releases:
        for text, option in release.by_spelling.items():
            if arity.setdefault(text, option.arity) is not option.arity:
                differing.add(text)
    return {text: one for text, one in arity.items() if text not in differing}, frozenset(differing)


_ALL, CONFLICTING = _arities(RELEASES)
"""CONFLICTING: flags that take another number of values in one release than in another."""


def dialect(version: str = "") -> Dialect:
    """How a version ("" when unknown) reads its command line.

    Holds the flags of every release: one that the version has lost or not yet got is grouped as
    where it exists. A flag whose arity differs between the releases it may be is left out.
    """
    known = releases_for(version)
    own, _ = _arities(known)
    repeatable = {
        text for one in known for text, option in one.by_spelling.items() if option.repeatable
    }
    return Dialect(arity={**_ALL, **own}, repeatable=frozenset(repeatable), prefixes=True)
