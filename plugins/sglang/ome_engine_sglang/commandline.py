"""What a container's command line says to SGLang, for the rules to ask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ome.engines import Basis, Container, Group, PodView, parse
from ome_engine_sglang.flags import (
    AmbiguousFlag,
    Option,
    Release,
    dialect,
    releases_for,
)
from ome_engine_sglang.launch import Launch, read_launch

__all__ = ["CommandLine", "Flag", "read_command_line"]

_INTEGER: Final = re.compile(r"-?\d{1,9}")
_DIFFUSION_ONLY: Final = frozenset({"--num-gpus", "--pipeline-class-name", "--ulysses-degree"})


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as written: its option in the releases it may be for, and the field it stands in."""

    key: str
    values: tuple[str, ...]
    path: str
    option: Option | None
    is_joined: bool = False
    """It stands in one word with its value, a space between them."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The flags of a launch.

    `is_whole` says that no flag can come from elsewhere (a file, the image's own entrypoint), so
    what is absent has its default. `is_language` is false for the diffusion server of
    `sglang serve`, which has a parser and defaults of its own.
    """

    flags: tuple[Flag, ...]
    version: str
    releases: tuple[Release, ...]
    path: str
    is_readable: bool
    is_whole: bool
    is_language: bool

    def last(self, name: str) -> Flag | None:
        """The flag that decides an option, which is the last one of all its spellings."""
        found = [
            flag for flag in self.flags if flag.option is not None and name in flag.option.spellings
        ]
        return found[-1] if found else None

    def number(self, name: str, default: int) -> int | None:
        """The integer that an option is given, its default, or None if it can't be known."""
        flag = self.last(name)
        if flag is None:
            return default if self.is_whole else None
        value = flag.values[0] if len(flag.values) == 1 else ""
        return int(value) if _INTEGER.fullmatch(value) else None

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return self.last(name) is not None


def read_command_line(view: PodView) -> CommandLine:
    """The command line of the container in view."""
    container = _container_of(view.container)
    argv = container.argv
    launch = read_launch(argv)
    if launch is None:  # recognised by its image alone
        launch = Launch(container.args, len(container.command))
    version = view.detection.version
    releases = releases_for(version)
    groups = parse(launch.arguments, dialect(version))
    flags = _flags_of(groups, launch, len(container.command), releases)
    by_command = view.detection.basis is Basis.COMMAND
    return CommandLine(
        flags=flags,
        version=version,
        releases=releases,
        path=_path_of(min(launch.start, max(len(argv) - 1, 0)), len(container.command)),
        is_readable=not launch.opaque,
        is_whole=by_command and not launch.opaque and not any(f.key == "--config" for f in flags),
        is_language=not _is_diffusion(launch, flags, container.image),
    )


def _container_of(raw: Mapping[str, Any]) -> Container:
    return Container(
        image=str(raw.get("image") or ""),
        command=tuple(str(word) for word in raw.get("command") or ()),
        args=tuple(str(word) for word in raw.get("args") or ()),
    )


def _flags_of(
    groups: Sequence[Group], launch: Launch, commands: int, releases: Sequence[Release]
) -> tuple[Flag, ...]:
    flags: list[Flag] = []
    at = launch.start
    for group in groups:
        if group.key:
            first = group.words[0]
            values = (
                (first[len(group.key) + 1 :],) if len(first) > len(group.key) else group.words[1:]
            )
            is_joined = first[len(group.key) : len(group.key) + 1].isspace()
            option = _option_of(group.key, releases)
            flags.append(Flag(group.key, values, _path_of(at, commands), option, is_joined))
        at += 0 if launch.script else len(group.words)
    return tuple(flags)


def _path_of(at: int, commands: int) -> str:
    """The field of a word of the argument vector."""
    return f"command[{at}]" if at < commands else f"args[{at - commands}]"


def _option_of(key: str, releases: Sequence[Release]) -> Option | None:
    """What a flag means in the newest release that takes it."""
    for release in releases:
        try:
            found = release.option_of(key)
        except AmbiguousFlag:
            continue
        if found is not None:
            return found
    return None


def _is_diffusion(launch: Launch, flags: Sequence[Flag], image: str) -> bool:
    if not launch.is_serve:
        return False
    declared = [flag.values[0] for flag in flags if flag.key == "--model-type" and flag.values]
    if declared and declared[-1] != "auto":
        return declared[-1] != "llm"
    return "diffusion" in image or any(flag.key in _DIFFUSION_ONLY for flag in flags)
