"""Flags that SGLang's parser refuses, or takes for less than they seem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ome.engines import Finding, Severity
from ome_engine_sglang.commandline import CommandLine, Flag
from ome_engine_sglang.flags import RELEASES, AmbiguousFlag, Release, order_of

__all__ = [
    "find_ambiguous",
    "find_misspelt",
    "find_prefixes",
    "find_repeated",
    "find_unknown",
]

# Abbreviations that people take for real flags. Others are left alone: they mean one option today.
_SHORT: Final = {
    "--tp": "--tp-size",
    "--pp": "--pp-size",
    "--ep": "--ep-size",
    "--dp": "--dp-size",
}
_INSTEAD: Final = {
    "--enable-ep-moe": "use --ep-size",
    "--enable-deepep-moe": "use --moe-a2a-backend=deepep",
}
# Not the parser's: `sglang serve` takes it out before it parses.
_OF_SERVE: Final = frozenset({"--model-type"})

AMBIGUOUS: Final = "{flag} fits several options of SGLang{version} ({options}), so its parser stops"
PREFIX: Final = "{flag} is no flag of SGLang{version}, it works as an abbreviation of {name} only"
SPELLING: Final = "{flag} is refused by SGLang's parser: {why}"
REPEATED: Final = "{flag} is given again with another value; SGLang takes the last one, {value}"
REMOVED: Final = "SGLang {version} no longer has {flag}; it was last seen in {last}"
UNKNOWN: Final = "SGLang {version} has no flag {flag}"
LATER: Final = "SGLang {version} has no flag {flag} yet; it is first seen in {first}"


def find_ambiguous(line: CommandLine) -> Iterator[Finding]:
    """A prefix of several options. With an unknown version, only what is so in every release."""
    for flag in _language_flags(line):
        options = [_ambiguity(flag.key, release) for release in line.releases]
        if all(options):
            text = AMBIGUOUS.format(
                flag=flag.key, version=_spaced(line.version), options=", ".join(options[0][:4])
            )
            name = _SHORT.get(flag.key)
            fix = f"write {name}" if name else "write the flag in full"
            yield Finding(
                "SGLangFlagAmbiguous",
                Severity.ERROR,
                text,
                flag.path,
                fix,
                "sgl-project/sglang#11279" if flag.key == "--pp" else "",
            )


def find_prefixes(line: CommandLine) -> Iterator[Finding]:
    """`--tp` and its like, where they are prefixes and no flags."""
    for flag in _language_flags(line):
        name = _SHORT.get(flag.key)
        if name is None or not all(_is_prefix(flag.key, release) for release in line.releases):
            continue
        text = PREFIX.format(flag=flag.key, version=_spaced(line.version), name=name)
        yield Finding("SGLangFlagPrefix", Severity.WARNING, text, flag.path, f"write {name}")


def find_misspelt(line: CommandLine) -> Iterator[Finding]:
    """A long flag with one dash, with underscores, or in one word with its value."""
    for flag in _language_flags(line):
        if flag.option is not None and not flag.is_joined:
            continue
        if flag.is_joined:
            why, wanted = "its value must be a word of its own, or follow an =", flag.key
        elif not flag.key.startswith("--"):
            why, wanted = "a long flag takes two dashes", "-" + flag.key
        elif "_" in flag.key:
            why, wanted = "its flags have dashes, not underscores", flag.key
        else:
            continue
        wanted = wanted.replace("_", "-")
        wanted = _SHORT.get(wanted, wanted)
        yield Finding(
            "SGLangFlagSpelling",
            Severity.ERROR,
            SPELLING.format(flag=flag.key, why=why),
            flag.path,
            f"write {wanted}" if _known(wanted, RELEASES) else "remove it",
        )


def find_unknown(line: CommandLine) -> Iterator[Finding]:
    """A flag that the version has lost, or (where its flags are known exactly) never had."""
    if order_of(line.version) is None:
        return
    for flag in _language_flags(line):
        if flag.key in _OF_SERVE or not flag.key.startswith("--") or "_" in flag.key:
            continue
        if not any(_known(flag.key, [release]) for release in line.releases):
            found = _absence(flag, line)
            if found is not None:
                yield found


def _absence(flag: Flag, line: CommandLine) -> Finding | None:
    named = [release for release in RELEASES if flag.key in release.by_spelling]
    before = [release for release in named if _is_older(release, line.version)]
    fix = _INSTEAD.get(flag.key, "remove it")
    if before:
        text = REMOVED.format(version=line.version, flag=flag.key, last=before[-1].version)
        return Finding("SGLangFlagRemoved", Severity.ERROR, text, flag.path, fix)
    if line.releases[0].version != line.version:
        return None
    text = UNKNOWN.format(version=line.version, flag=flag.key)
    if named:
        text = LATER.format(version=line.version, flag=flag.key, first=named[0].version)
        fix = "remove it, or use a newer image"
    return Finding("SGLangFlagUnknown", Severity.ERROR, text, flag.path, fix, "kserve/kserve#6035")


def find_repeated(line: CommandLine) -> Iterator[Finding]:
    """An option that is given twice with different values, also by different spellings."""
    given: dict[tuple[str, ...], Flag] = {}
    differing: dict[tuple[str, ...], Flag] = {}
    for flag in _language_flags(line):
        key = flag.option.spellings if flag.option is not None else (flag.key,)
        adds_up = flag.option is not None and flag.option.repeatable
        before = given.setdefault(key, flag)
        if not adds_up and (before.values != flag.values or key in differing):
            differing[key] = flag
    for key, flag in differing.items():
        text = REPEATED.format(flag=flag.key, value=" ".join(flag.values) or "without a value")
        fix = f"keep one of {', '.join(key)}" if len(key) > 1 else "keep one of them"
        yield Finding("SGLangFlagRepeated", Severity.WARNING, text, flag.path, fix)


def _language_flags(line: CommandLine) -> tuple[Flag, ...]:
    """The flags, if it is the parser of the language server that reads them."""
    return line.flags if line.is_language and line.is_readable else ()


def _spaced(version: str) -> str:
    return f" {version}" if version else ""


def _ambiguity(flag: str, release: Release) -> tuple[str, ...]:
    """The options that a flag is a prefix of, if they are several."""
    try:
        release.option_of(flag)
    except AmbiguousFlag as error:
        return error.args
    return ()


def _is_prefix(flag: str, release: Release) -> bool:
    if flag in release.by_spelling or _ambiguity(flag, release):
        return False
    return release.option_of(flag) is not None


def _known(flag: str, releases: Sequence[Release]) -> bool:
    """Whether one of the releases takes a flag, or at least finds it ambiguous."""
    return any(_ambiguity(flag, one) or one.option_of(flag) is not None for one in releases)


def _is_older(release: Release, version: str) -> bool:
    mine, other = order_of(release.version), order_of(version)
    return mine is not None and other is not None and mine < other
