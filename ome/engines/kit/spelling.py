"""Rules about flags that a parser refuses, or takes for less than they seem.

Each function makes a rule that reports under the given codes. Where the engine's version isn't known,
only what is so in every release is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ome.engines.kit.commandline import CommandLine, Flag
from ome.engines.kit.flags import Release
from ome.engines.kit.versions import order_of
from ome.engines.types import Finding, PodView, Severity

__all__ = [
    "Rule",
    "ambiguous",
    "deprecated",
    "exclusive",
    "misspelt",
    "prefixes",
    "repeated",
    "unknown",
]

Rule = Callable[[PodView, CommandLine], Iterator[Finding]]
"""One rule: what it finds in a pod whose engine has a command line."""

AMBIGUOUS: Final = (
    "{flag} fits several options of {engine}{version} ({options}), so its parser stops"
)
PREFIX: Final = "{flag} is no flag of {engine}{version}, it works as an abbreviation of {name} only"
OTHER: Final = "{flag} is no flag of {engine}{version}, whose parser takes it for {name}"
SPELLING: Final = "{flag} is refused by {engine}'s parser: {why}"
REPEATED: Final = "{flag} is given again with another value; {engine} takes the last one, {value}"
REMOVED: Final = "{engine} {version} no longer has {flag}; it was last seen in {last}"
UNKNOWN: Final = "{engine} {version} has no flag {flag}"
LATER: Final = "{engine} {version} has no flag {flag} yet; it is first seen in {first}"
DEPRECATED: Final = "{flag} is deprecated in {engine}{version}"
EXCLUSIVE: Final = "{flag} can't be given with {other}: {engine} stops"


def ambiguous(code: str, references: Mapping[str, str] | None = None) -> Rule:
    """A prefix of several options. `references` names reports by flag."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        for flag in line.checked:
            options = [release.is_ambiguous(flag.key) for release in line.releases]
            if not all(options):
                continue
            text = AMBIGUOUS.format(
                flag=flag.key, options=", ".join(options[0][:4]), **_named(line)
            )
            name = line.server.table.hints.short.get(flag.name)
            fix = f"write {name}" if name else "write the flag in full"
            reference = (references or {}).get(flag.key, "")
            yield Finding(code, Severity.ERROR, text, flag.path, fix, reference)

    return rule


def prefixes(code: str) -> Rule:
    """The short forms of the hints where they are prefixes and no flags, or those of another flag."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        for flag in line.checked:
            name = line.server.table.hints.short.get(flag.name)
            if name is None or flag.option is None:
                continue
            if not all(_is_prefix(flag.key, release) for release in line.releases):
                continue
            if name in flag.option.spellings:
                text, severity, shown = PREFIX, Severity.WARNING, name
            else:
                text, severity, shown = OTHER, Severity.ERROR, flag.option.spellings[-1]
            text = text.format(flag=flag.key, name=shown, **_named(line))
            yield Finding(code, severity, text, flag.path, f"write {name}")

    return rule


def misspelt(code: str) -> Rule:
    """A long flag with one dash, with underscores where those count, or in one word with its value,
    and a short form of the hints that is nothing to the parser."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        for flag in line.checked:
            found = _misspelling(flag, line)
            if found is None:
                continue
            why, wanted = found
            wanted = line.server.table.hints.short.get(wanted, wanted)
            fix = f"write {wanted}" if line.server.table.has(wanted) else "remove it"
            text = SPELLING.format(flag=flag.key, engine=line.server.name, why=why)
            yield Finding(code, Severity.ERROR, text, flag.path, fix)

    return rule


_APART: Final = "its value must be a word of its own, or follow an ="


def _misspelling(flag: Flag, line: CommandLine) -> tuple[str, str] | None:
    """Why the parser refuses a flag, and how it is written; None when that isn't for its spelling."""
    if flag.is_joined:
        return _APART, flag.key.replace("_", "-")
    if flag.option is not None:
        return None
    if not flag.key.startswith("--"):
        start = _start_of(flag.key, line.releases[0])
        if start:
            return _APART, start
        return "a long flag takes two dashes", "-" + flag.key.replace("_", "-")
    if "_" in flag.name:
        return "its flags have dashes, not underscores", flag.key.replace("_", "-")
    return ("it has no such flag", flag.name) if _is_no_flag(flag, line) else None


def _is_no_flag(flag: Flag, line: CommandLine) -> bool:
    """Whether a short form of the hints means nothing in any of the releases."""
    is_short = flag.name in line.server.table.hints.short
    return is_short and not any(release.takes(flag.key) for release in line.releases)


def _start_of(flag: str, release: Release) -> str:
    """The flag of one dash and several letters that stands in one word with a number, or ""."""
    bare = flag.rstrip("0123456789")
    return bare if bare != flag and len(bare) > 2 and bare in release.by_spelling else ""


def unknown(removed: str, never: str, reference: str = "kserve/kserve#6035") -> Rule:
    """A flag that the version has lost, or (where its flags are known exactly) never had."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        hints = line.server.table.hints
        for flag in line.checked if order_of(line.version) is not None else ():
            if flag.key in hints.unparsed or not flag.key.startswith("--") or "_" in flag.name:
                continue
            if flag.name in hints.short:
                continue  # a matter of spelling
            if any(release.takes(flag.key) for release in line.releases):
                continue
            named = [one for one in line.server.table.releases if flag.name in one.by_spelling]
            before = [release for release in named if _is_older(release, line.version)]
            fix = hints.instead.get(flag.name, "remove it")
            given = {"engine": line.server.name, "version": line.version, "flag": flag.key}
            if before:
                text = REMOVED.format(**given, last=before[-1].version)
                yield Finding(removed, Severity.ERROR, text, flag.path, fix)
            elif line.releases[0].version == line.version:
                text = UNKNOWN.format(**given)
                if named:
                    text = LATER.format(**given, first=named[0].version)
                    fix = "remove it, or use a newer image"
                yield Finding(never, Severity.ERROR, text, flag.path, fix, reference)

    return rule


def deprecated(code: str) -> Rule:
    """A flag that still works and that the engine wants gone."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        for flag in line.checked:
            if not all(_is_deprecated(flag, release) for release in line.releases):
                continue
            text = DEPRECATED.format(flag=flag.key, **_named(line))
            fix = line.server.table.hints.instead.get(flag.name, "remove it")
            yield Finding(code, Severity.WARNING, text, flag.path, fix)

    return rule


def repeated(code: str) -> Rule:
    """An option that is given twice with different values, also by different spellings."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        given: dict[tuple[str, ...], Flag] = {}
        differing: dict[tuple[str, ...], Flag] = {}
        for flag in line.checked:
            key = flag.option.spellings if flag.option is not None else (flag.key,)
            key = tuple(f"{name}.{flag.member}" for name in key) if flag.member else key
            adds_up = (flag.option is not None and flag.option.repeatable) or key[0].endswith("+")
            before = given.setdefault(key, flag)
            is_other = (before.values, before.is_opposite) != (flag.values, flag.is_opposite)
            if not adds_up and (is_other or key in differing):
                differing[key] = flag
        for key, flag in differing.items():
            value = " ".join(flag.values) or "without a value"
            text = REPEATED.format(flag=flag.key, engine=line.server.name, value=value)
            fix = f"keep one of {', '.join(key)}" if len(key) > 1 else "keep one of them"
            yield Finding(code, Severity.WARNING, text, flag.path, fix)

    return rule


def exclusive(code: str) -> Rule:
    """Flags of which the server takes one, by the groups of the hints."""

    def rule(_: PodView, line: CommandLine) -> Iterator[Finding]:
        for group in line.server.table.hints.exclusive if line.checked else ():
            if any(_is_older(release, group.since) for release in line.releases):
                continue
            given = [_first(line, names) for names in group.alternatives]
            found = [flag for flag in given if flag is not None]
            if len(found) > 1:
                flag, other = found[1], found[0]
                text = EXCLUSIVE.format(flag=flag.key, other=other.key, engine=line.server.name)
                yield Finding(code, Severity.ERROR, text, flag.path, "keep one of them")

    return rule


def _first(line: CommandLine, names: tuple[str, ...]) -> Flag | None:
    """The flag that gives one of the options; one that is turned off gives none."""
    return next((line.last(name) for name in names if line.has(name)), None)


def _named(line: CommandLine) -> dict[str, str]:
    version = f" {line.version}" if line.version else ""
    return {"engine": line.server.name, "version": version}


def _is_deprecated(flag: Flag, release: Release) -> bool:
    option = None if release.is_ambiguous(flag.key) else release.option_of(flag.key)
    return option is not None and option.deprecated


def _is_prefix(flag: str, release: Release) -> bool:
    if flag in release.by_spelling or release.is_ambiguous(flag):
        return False
    return release.option_of(flag) is not None


def _is_older(release: Release, version: str) -> bool:
    mine, other = order_of(release.version), order_of(version)
    return mine is not None and other is not None and mine < other
