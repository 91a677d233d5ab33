"""What a container's command line says to an engine's server, for rules to ask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from ome.engines.kit.flags import AmbiguousFlag, Option, Release
from ome.engines.kit.launch import Launch, read_launch
from ome.engines.kit.server import Server
from ome.engines.types import Basis, PodView
from ome.merging.argv import Group, parse

__all__ = ["CommandLine", "Flag", "read_command_line"]

_INTEGER: Final = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as written: its option in the releases it may be for, and the field it stands in.

    `member` is what follows the dot where a key of a JSON value is set.
    """

    key: str
    values: tuple[str, ...]
    path: str
    option: Option | None
    is_joined: bool = False
    """It stands in one word with its value, a space between them."""
    name: str = ""
    """The registered writing of the key."""
    member: str = ""

    @property
    def is_opposite(self) -> bool:
        """Whether it turns its switch off."""
        return self.option is not None and self.name in self.option.opposites


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The flags of a launch.

    `positional` are the plain words, `launch` how the server is started. `is_whole` says that no flag
    can come from elsewhere (a file, the image's own entrypoint), so what is absent has its default.
    `is_tabled` is false when another parser than the one of the server's table reads the flags.
    """

    server: Server
    launch: Launch
    flags: tuple[Flag, ...]
    positional: tuple[str, ...]
    version: str
    releases: tuple[Release, ...]
    path: str
    is_readable: bool
    is_whole: bool
    is_tabled: bool = True

    def last(self, name: str) -> Flag | None:
        """The flag that decides an option, which is the last one of all its spellings."""
        found = [
            flag
            for flag in self.flags
            if flag.option is not None and name in flag.option.spellings and not flag.member
        ]
        return found[-1] if found else None

    def number(self, name: str, default: int) -> int | None:
        """The integer that an option is given, its default, or None if it can't be known."""
        flag = self.last(name)
        if flag is None:
            return default if self.is_whole else None
        value = flag.values[0] if len(flag.values) == 1 else ""
        return int(value) if _INTEGER.fullmatch(value) else None

    def value(self, name: str) -> str:
        """The one value that an option is given, else ""."""
        flag = self.last(name)
        return flag.values[0] if flag is not None and len(flag.values) == 1 else ""

    def has(self, name: str) -> bool:
        """Whether an option is given, and not turned off."""
        flag = self.last(name)
        return flag is not None and not flag.is_opposite

    @property
    def checked(self) -> tuple[Flag, ...]:
        """The flags, if they can be read and it is the table's parser that reads them."""
        return self.flags if self.is_tabled and self.is_readable else ()


def read_command_line(server: Server, view: PodView) -> CommandLine:
    """The command line of the container in view. Read once for all rules and hooks that ask."""
    raw = view.container
    command, args = (
        tuple(str(word) for word in raw.get(part) or ()) for part in ("command", "args")
    )
    by_command = view.detection.basis is Basis.COMMAND
    return _read(server, command, args, view.detection.version, by_command)


@lru_cache(maxsize=256)
def _read(
    server: Server,
    command: tuple[str, ...],
    args: tuple[str, ...],
    version: str,
    by_command: bool,
) -> CommandLine:
    argv = command + args
    launch = read_launch(server, argv)
    if launch is None:  # recognised by its image alone
        launch = Launch(args, len(command), is_serve=server.image_runs)
    releases = server.table.releases_for(version)
    groups = parse(launch.arguments, server.table.dialect(version))
    flags = _flags_of(server, groups, launch, len(command), releases)
    is_configured = any(flag.key == server.config for flag in flags)
    return CommandLine(
        server=server,
        launch=launch,
        flags=flags,
        positional=tuple(group.words[0] for group in groups if not group.key),
        version=version,
        releases=releases,
        path=_path_of(min(launch.start, max(len(argv) - 1, 0)), len(command)),
        is_readable=not launch.opaque,
        is_whole=by_command and not launch.opaque and not is_configured,
    )


def _flags_of(
    server: Server,
    groups: Sequence[Group],
    launch: Launch,
    commands: int,
    releases: Sequence[Release],
) -> tuple[Flag, ...]:
    flags: list[Flag] = []
    at = launch.start
    for group in groups:
        if group.key:
            flag = _flag_of(group, _path_of(at, commands), releases)
            name, member = server.table.rules.split(group.key)
            flags.append(replace(flag, name=name, member=member))
        at += 0 if launch.script else len(group.words)
    return tuple(flags)


def _flag_of(group: Group, path: str, releases: Sequence[Release]) -> Flag:
    first = group.words[0]
    option = _option_of(group.key, releases)
    glued = releases[0].glued_value(group.key)
    is_joined = first[len(group.key) : len(group.key) + 1].isspace()
    values = group.words[1:]
    if glued is not None and option is not None:
        values = (first[2:],)
    elif len(first) > len(group.key):
        values = (first[len(group.key) + 1 :],)
    return Flag(group.key, values, path, option, is_joined)


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
