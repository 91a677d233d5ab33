"""An engine's command line as data: every flag of its releases, and how its parser reads them.

A table is made of two JSON texts. `flags` is derived from released packages: `versions` in their
order and `options`, each a list of its spellings, its arity (`none`, `one`, `optional` or `many`,
then `repeatable` and `deprecated` where so), the releases that have it (`0-3 5`) and, for a switch,
the spellings that turn it off. `hints` is written by hand; see `Hints`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ome.engines.kit.versions import order_of
from ome.merging.argv import NULL_DIALECT, Arity, Dialect

__all__ = [
    "AmbiguousFlag",
    "Exclusive",
    "FlagTable",
    "Hints",
    "Option",
    "ParserRules",
    "Release",
    "read_table",
]

_ARITIES: Final = {
    "none": Arity.SWITCH,
    "one": Arity.VALUE,
    "optional": Arity.OPTIONAL,
    "many": Arity.MANY,
}


@dataclass(frozen=True, slots=True)
class ParserRules:
    """How an engine's parser takes a flag that isn't written as it is registered.

    The defaults are those of Python's argparse. With `prefixes` a beginning that fits one option
    counts as it. With `underscores` they stand for dashes in a long flag. With `glued` a flag of one
    letter may have its value in the same word (`-n2`). With `dotted` a key of a JSON value is set by
    `--flag.key`. `tensor` and `pipeline` are the spellings that per-accelerator sizes are written
    to, in the order they are looked for.
    """

    prefixes: bool = True
    underscores: bool = False
    glued: bool = False
    dotted: bool = False
    tensor: tuple[str, ...] = NULL_DIALECT.tensor
    pipeline: tuple[str, ...] = NULL_DIALECT.pipeline

    def dialect(
        self,
        arity: Mapping[str, Arity] | None = None,
        repeatable: frozenset[str] = frozenset(),
        aliases: Mapping[str, str] | None = None,
    ) -> Dialect:
        """The dialect of these rules, with the flags that are given."""
        return Dialect(
            arity=arity or {},
            repeatable=repeatable,
            tensor=self.tensor,
            pipeline=self.pipeline,
            prefixes=self.prefixes,
            underscores=self.underscores,
            glued=self.glued,
            dotted=self.dotted,
            aliases=aliases or {},
        )

    def split(self, flag: str) -> tuple[str, str]:
        """The registered writing of a flag, and the member of it that is set, with `dotted`."""
        name = _plain(self).name_of(flag)
        if not self.dotted:
            return name, ""
        head, _, member = name.partition(".")
        return head, member


@lru_cache(maxsize=64)
def _plain(rules: ParserRules) -> Dialect:
    """The dialect of some rules without any flag."""
    return rules.dialect()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a release: its spellings, and how many values it takes.

    `opposites` turn a switch off. `repeatable` says that it adds up when given again.
    """

    spellings: tuple[str, ...]
    arity: Arity
    repeatable: bool = False
    deprecated: bool = False
    opposites: tuple[str, ...] = ()


class AmbiguousFlag(Exception):
    """A flag that is a prefix of several options; the argument is their spellings."""


@dataclass(frozen=True)
class Release:
    """The options of one release, and the rules by which they are looked up."""

    version: str
    options: tuple[Option, ...]
    rules: ParserRules = field(default_factory=ParserRules)
    by_spelling: Mapping[str, Option] = field(init=False, repr=False)
    _sorted: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found = {
            text: option
            for option in self.options
            for text in (*option.spellings, *option.opposites)
        }
        object.__setattr__(self, "by_spelling", found)
        object.__setattr__(self, "_sorted", tuple(sorted(found)))

    def option_of(self, flag: str) -> Option | None:
        """What this release takes a flag for, None if it refuses it. Raises AmbiguousFlag."""
        name, _ = self.rules.split(flag)
        exact = self.by_spelling.get(name)
        if exact is not None:
            return exact
        fitting = self._beginning_with(name) if self.rules.prefixes else {}
        if self.glued_value(name) is not None:
            fitting[name[:2]] = self.by_spelling[name[:2]]
        if len({one.spellings for one in fitting.values()}) > 1:
            raise AmbiguousFlag(*sorted(fitting))
        return next(iter(fitting.values()), None)

    def _beginning_with(self, name: str) -> dict[str, Option]:
        found: dict[str, Option] = {}
        for text in self._sorted[bisect_left(self._sorted, name) :]:
            if not text.startswith(name):
                break
            if text.startswith("--") is name.startswith("--"):
                found[text] = self.by_spelling[text]
        return found

    def glued_value(self, flag: str) -> str | None:
        """The value that a flag of one letter has in the same word, None if it has none there."""
        if not self.rules.glued or flag.startswith("--") or flag in self.by_spelling:
            return None
        short = self.by_spelling.get(flag[:2])
        return None if short is None or short.arity is Arity.SWITCH else flag[2:]

    def is_ambiguous(self, flag: str) -> tuple[str, ...]:
        """The options that a flag is a prefix of, if they are several."""
        try:
            self.option_of(flag)
        except AmbiguousFlag as error:
            return error.args
        return ()

    def takes(self, flag: str) -> bool:
        """Whether it takes a flag, or at least finds it ambiguous."""
        return bool(self.is_ambiguous(flag)) or self.option_of(flag) is not None


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Alternatives, each a list of flags: from a version on, the server stops at flags of two of them."""

    since: str
    alternatives: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Hints:
    """What people need to know of flags beside what the parser does.

    `short`: what is meant by an abbreviation that people take for a flag. `instead`: what to do in
    place of a flag that is deprecated or gone. `unparsed`: flags that are taken out before the parser
    sees them. `exclusive`: flags that can't be given together.
    """

    short: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    unparsed: frozenset[str] = frozenset()
    exclusive: tuple[Exclusive, ...] = ()


class FlagTable:
    """The releases of an engine whose flags are known, and what follows for any version.

    `conflicting` are the flags that take another number of values in one release than in another.
    """

    def __init__(
        self, releases: Sequence[Release], rules: ParserRules, hints: Hints | None = None
    ) -> None:
        self.releases = tuple(releases)
        self.rules = rules
        self.hints = hints or Hints()
        self._ordered = tuple((order_of(one.version) or (), one) for one in self.releases)
        self._all, self.conflicting = _arities(self.releases)
        self._dialects: dict[tuple[str, ...], Dialect] = {}

    def releases_for(self, version: str) -> tuple[Release, ...]:
        """The releases that a version may parse like, newest first.

        The release itself when its flags are known, else its neighbours, and all of them for a version
        that isn't known: what holds for each of these holds for the version.
        """
        at = order_of(version)
        if at is None:
            return self.releases[::-1]
        older = [release for order, release in self._ordered if order <= at]
        newer = [release for order, release in self._ordered if order >= at]
        if older and newer:
            return (older[-1],) if older[-1] is newer[0] else (newer[0], older[-1])
        return (older[-1],) if older else (newer[0],)

    def dialect(self, version: str = "") -> Dialect:
        """How a version ("" when unknown) reads its command line.

        Holds the flags of every release: one that the version has lost or not yet got is grouped as
        where it exists. A flag whose arity differs between the releases it may be is left out.
        """
        known = self.releases_for(version)
        key = tuple(one.version for one in known)
        if key not in self._dialects:
            self._dialects[key] = self._dialect(known)
        return self._dialects[key]

    def _dialect(self, known: tuple[Release, ...]) -> Dialect:
        own, _ = _arities(known)
        repeatable = {
            text for one in known for text, option in one.by_spelling.items() if option.repeatable
        }
        aliases: dict[str, str] = {}
        for one in known:
            for option in one.options:
                for text in option.spellings:
                    aliases.setdefault(text, option.spellings[0])
        return self.rules.dialect({**self._all, **own}, frozenset(repeatable), aliases)

    def has(self, flag: str) -> bool:
        """Whether any release takes a flag."""
        return any(release.takes(flag) for release in self.releases)


def _arities(releases: Sequence[Release]) -> tuple[dict[str, Arity], frozenset[str]]:
    """The arity of each flag, and the flags whose arity differs between the releases."""
    arity: dict[str, Arity] = {}
    differing: set[str] = set()
    for release in releases:
        for text, option in release.by_spelling.items():
            if arity.setdefault(text, option.arity) is not option.arity:
                differing.add(text)
    return {text: one for text, one in arity.items() if text not in differing}, frozenset(differing)


def read_table(flags: str, rules: ParserRules | None = None, hints: str = "{}") -> FlagTable:
    """The table in two JSON texts, `flags` and `hints`. Raises KeyError, ValueError on junk."""
    data = json.loads(flags)
    rules = rules or ParserRules()
    options: list[list[Option]] = [[] for _ in data["versions"]]
    for row in data["options"]:
        option = _option(row)
        for at in _numbers(row[2]):
            options[at].append(option)
    releases = [
        Release(version, tuple(found), rules)
        for version, found in zip(data["versions"], options, strict=True)
    ]
    return FlagTable(releases, rules, _hints(json.loads(hints)))


def _option(row: Sequence[Any]) -> Option:
    arity, *marks = row[1].split()
    opposites = tuple(row[3].split()) if len(row) > 3 else ()
    spellings = tuple(row[0].split())
    return Option(
        spellings, _ARITIES[arity], "repeatable" in marks, "deprecated" in marks, opposites
    )


def _numbers(spans: str) -> list[int]:
    """Every number of `0-3 5`."""
    found: list[int] = []
    for span in spans.split():
        first, _, last = span.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _hints(data: Mapping[str, Any]) -> Hints:
    return Hints(
        short=data.get("short", {}),
        instead=data.get("instead", {}),
        unparsed=frozenset(data.get("unparsed", ())),
        exclusive=tuple(
            Exclusive(group["since"], tuple(map(tuple, group["alternatives"])))
            for group in data.get("exclusive", ())
        ),
    )
