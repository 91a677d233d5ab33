"""The launch of an engine's server in an argument vector: which words are its arguments.

Sees through `env`, `exec`, init processes and `sh -c`, as far as that needs no guess. A launch whose
arguments a reader can't know is `opaque`, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ome.engines.kit.script import LONGEST_ARGUMENT, ScriptUnread, read_command
from ome.engines.kit.server import Server
from ome.merging.argv import parse

__all__ = ["COMPUTED", "WRAPPED", "Launch", "read_launch"]

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_INITS: Final = frozenset({"tini", "dumb-init", "catatonit", "nvidia_entrypoint.sh"})
_PYTHON: Final = re.compile(r"python[\d.]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_SHELL_TAKES_VALUE: Final = frozenset({"--rcfile", "--init-file"})
_VARIABLE: Final = re.compile(r"\$(?!\([A-Za-z_][\w.-]*\))|\$\(")

WRAPPED: Final = "it is launched through {program}, whose own arguments OME doesn't read"
COMPUTED: Final = "its shell script computes flags"


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a server.

    `start` is where in the argument vector its arguments begin; with `script` they stand inside
    that one word. `is_serve` says that a command with a subcommand runs, which takes the model as a
    plain word. `program` is the module, or the command with its subcommand.
    """

    arguments: tuple[str, ...]
    start: int
    script: bool = False
    opaque: str = ""
    is_serve: bool = False
    program: str = field(default="", compare=False)


def read_launch(server: Server, argv: Sequence[str]) -> Launch | None:
    """The launch of the server, or None when something else runs."""
    at = _unwrap(argv)
    if at >= len(argv):
        return None
    if _name(argv[at]) in _SHELLS:
        where = _script_of(argv, at)
        return None if where is None else _read_script(server, argv[where], where)
    found = _direct(server, argv, at)
    return found if found is not None else _wrapped(server, argv, at)


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _unwrap(argv: Sequence[str]) -> int:
    """Where the program stands after assignments, `exec`, `env` and init processes."""
    at = 0
    while at < len(argv):
        name = _name(argv[at])
        if name == "env":
            at = _after_options(argv, at + 1, ("-u", "--unset", "-C", "--chdir"))
        elif name == "exec" or _ASSIGNMENT.match(argv[at]):
            at += 1
        elif name in _INITS:
            at = _after_options(argv, at + 1, ("-p", "-e", "-r"))
        else:
            break
    return at


def _after_options(argv: Sequence[str], at: int, with_value: Sequence[str]) -> int:
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] == "--":
            return at + 1
        at += 2 if argv[at] in with_value else 1
    return at


def _script_of(argv: Sequence[str], at: int) -> int | None:
    """Where the script of `sh -c SCRIPT` stands, or None."""
    reads_string = False
    at += 1
    while at < len(argv) and argv[at][:1] in ("-", "+") and argv[at] != "--":
        word = argv[at]
        if not word.startswith("--"):
            reads_string = reads_string or (word[0] == "-" and "c" in word)
            at += 1 if word.endswith(("o", "O")) else 0
        elif word in _SHELL_TAKES_VALUE:
            at += 1
        at += 1
    if at < len(argv) and argv[at] == "--":
        at += 1
    return at if reads_string and at < len(argv) else None


def _read_script(server: Server, text: str, where: int) -> Launch | None:
    if server.mentioned.search(text, 0, LONGEST_ARGUMENT) is None:
        return None
    try:
        words = read_command(text)
    except ScriptUnread as unread:
        return Launch((), where, script=True, opaque=str(unread))
    found = read_launch(server, words)
    if found is None:
        return None
    opaque = found.opaque or (COMPUTED if _computes(server, found) else "")
    return Launch(found.arguments, where, True, opaque, found.is_serve, found.program)


def _computes(server: Server, launch: Launch) -> bool:
    """Whether a variable stands where a flag may: a variable as value, or as model, is fine."""
    groups = parse(launch.arguments, server.table.dialect())
    if launch.is_serve and groups and not groups[0].key:
        del groups[0]
    return any(_VARIABLE.search(group.key or group.words[0]) for group in groups)


def _direct(server: Server, argv: Sequence[str], at: int) -> Launch | None:
    """A console command, with its subcommand if it has one, or Python with a module."""
    name = _name(argv[at])
    for words in server.commands:
        start = at + len(words)
        if (name, *argv[at + 1 : start]) == words:
            is_serve = len(words) > 1
            return Launch(tuple(argv[start:]), start, is_serve=is_serve, program=" ".join(words))
    if not _PYTHON.fullmatch(name):
        return None
    found = _after_module(server, argv, at + 1)
    if found is None:
        return None
    module, start = found
    return Launch(tuple(argv[start:]), start, program=module)


def _after_module(server: Server, argv: Sequence[str], at: int) -> tuple[str, int] | None:
    """The server's module that Python runs, and where the arguments begin."""
    while at < len(argv):
        word = argv[at]
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            at += 2
            continue
        if not word.startswith("-"):
            run = [
                module
                for module, file in zip(server.modules, server.files, strict=True)
                if ("/" + word).endswith("/" + file)
            ]
            return (run[0], at + 1) if run else None
        option = re.match(r"-[bBdEhiIOPqRsSuvx]*([mc])", word)
        if option is not None:
            if option[1] == "c":
                return None
            rest = word[option.end() :]
            module, start = (rest, at + 1) if rest else (" ".join(argv[at + 1 : at + 2]), at + 2)
            return (module, start) if module in server.modules else None
        at += 1
    return None


def _wrapped(server: Server, argv: Sequence[str], at: int) -> Launch | None:
    """A whole launch further on, behind a program that isn't known here.

    A command of one word isn't looked for: a model or a file may be called like it.
    """
    for later in range(at + 1, len(argv)):
        found = _direct(server, argv, later)
        if found is not None and (found.program,) not in server.commands:
            opaque = WRAPPED.format(program=_name(argv[at])[:40])
            return Launch((), found.start, opaque=opaque, program=found.program)
    return None
