"""Carrying out `argsPatch`: the operations that layers left on a container's argument list.

An operation works on the whole command line, `command` and then `args`: a flag is edited where it
stands, and what is new goes to the end of `args`. The script of a shell counts as the command line.
Everything else stays word for word. docs/merging.md has the rules; `ome.api.argspatch` the form.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ome.api.argspatch import ARGS_PATCH
from ome.merging.argv import (
    NULL_DIALECT,
    REFERENCE,
    Dialect,
    Group,
    code_and_comment,
    is_script,
    parse,
    replace_flags,
    script_groups,
)

__all__ = [
    "apply_operation",
    "flags_of",
    "has_operators",
    "pending",
    "script_of",
    "without_pending",
    "without_pending_anywhere",
    "words_of",
]

Json = Mapping[str, Any]

_QUOTED: Final = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""")
_SHELL: Final = re.compile(r"(?:.*/)?(?:a|ba|da|k|z)?sh")
_SHELL_FLAG: Final = re.compile(r"-[a-z]*c")


def pending(container: Json) -> list[Json]:
    """The operations that wait on a container, in their order."""
    return list(container.get(ARGS_PATCH) or ())


def without_pending(container: Json) -> dict[str, Any]:
    """The container without its operations: what a pod may hold."""
    return {name: value for name, value in container.items() if name != ARGS_PATCH}


def apply_operation(
    container: Json, operation: Json, dialect: Dialect = NULL_DIALECT
) -> tuple[dict[str, Any], bool]:
    """The container after one operation, and whether it found what it is about (`unset` may not)."""
    line = _Line.of(container, dialect)
    found = True
    if words := operation.get("append"):
        line.append([str(word) for word in words])
    elif name := operation.get("unset"):
        found = line.replace(str(name), None)
    elif wanted := operation.get("set"):
        line.set(str(wanted["name"]), wanted.get("value"))
    return line.written(container), found


def flags_of(container: Json, dialect: Dialect = NULL_DIALECT) -> list[str]:
    """The flags of a container's command line as they are spelled there."""
    return list(dict.fromkeys(_Line.of(container, dialect).keys()))


def script_of(container: Json) -> tuple[str, str] | None:
    """The shell script that a container runs, and the field that holds it; None without one."""
    line = _Line.of(container, NULL_DIALECT)
    for words, where, script in line._parts():
        if script:
            return words[where][0], "args" if words is line.args else "command"
    return None


def has_operators(script: str) -> bool:
    """Whether a shell does more with a script than run one command: operators, redirections, groups,
    substitutions. What stands in quotes or comments, and Kubernetes' `$(NAME)`, doesn't count."""
    for line in script.splitlines():
        code = REFERENCE.sub("", _QUOTED.sub("", code_and_comment(line)[0]))
        if not line.lstrip().startswith("#") and re.search(r"[;&|<>()`]", code):
            return True
    return False


def words_of(
    container: Json, flag: str, dialect: Dialect = NULL_DIALECT
) -> Iterator[tuple[str, int]]:
    """Where the words of a flag stand, whatever its spelling: the field and the place in it."""
    wanted = dialect.flag_of(flag)
    for field in ("args", "command"):
        at = 0
        for group in parse(_texts(container.get(field)), dialect):
            if group.key and dialect.flag_of(group.key) == wanted:
                yield from ((field, at + step) for step in range(len(group.words)))
            at += len(group.words)


def without_pending_anywhere(value: Any) -> Any:
    """A JSON value without the operations of any container in it."""
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name != ARGS_PATCH}
        return {name: without_pending_anywhere(item) for name, item in kept.items()}
    return [without_pending_anywhere(item) for item in value] if isinstance(value, list) else value


def _texts(words: Any) -> list[str]:
    return [str(word) for word in words or ()]


class _Line:
    """A command line that is edited: the parts that hold flags, `args` before `command`.

    Each part is a list of words, and the one that is a shell's script the word alone.
    """

    def __init__(self, command: list[str], args: list[str], dialect: Dialect) -> None:
        self.command, self.args, self._dialect = command, args, dialect
        shell = _after_shell_flag(command)
        self._in_args = bool(args) and (
            shell == len(command) or (len(args) == 1 and is_script(args[0]))
        )
        self._in_command = shell if shell is not None and shell < len(command) else None

    @classmethod
    def of(cls, container: Json, dialect: Dialect) -> _Line:
        return cls(_texts(container.get("command")), _texts(container.get("args")), dialect)

    def _parts(self) -> list[tuple[list[str], slice, bool]]:
        """Which words are edited, where they stand, and whether they are a script."""
        parts = []
        if self._in_args:
            parts.append((self.args, slice(0, 1), True))
        elif self.args and self._in_command is None:
            parts.append((self.args, slice(0, len(self.args)), False))
        if self._in_command is not None:
            parts.append((self.command, slice(self._in_command, self._in_command + 1), True))
        elif self.command and not self._in_args:
            parts.append((self.command, slice(0, len(self.command)), False))
        return parts

    def _groups(self, words: Sequence[str], *, script: bool) -> list[Group]:
        return script_groups(words[0], self._dialect) if script else parse(words, self._dialect)

    def keys(self) -> Iterator[str]:
        """The flags, as they are spelled."""
        for words, where, script in self._parts():
            yield from (
                group.key for group in self._groups(words[where], script=script) if group.key
            )

    def replace(self, flag: str, value: str | None, *, sets: bool = False) -> bool:
        """Take a flag away, or with `sets` put it where it first stands; whether it was there."""
        found = False
        for words, where, script in self._parts():
            present = [
                group
                for group in self._groups(words[where], script=script)
                if group.key and self._dialect.flag_of(group.key) == self._dialect.flag_of(flag)
            ]
            if not present:
                continue
            names = [self._dialect.name_of(group.key) for group in present]
            wanted: dict[str, list[Group]] = {name: [] for name in names}
            if sets:
                wanted[names[0]] = [self._group(flag, value, present[0], script=script)]
            words[where] = replace_flags(words[where], wanted, self._dialect, as_script=script)
            found = True
            if sets:
                break
        return found

    def set(self, flag: str, value: str | None) -> None:
        """Put a flag where it stands, or at the end."""
        if self.replace(flag, value, sets=True):
            return
        for words, where, script in self._parts():
            if script:
                group = self._group(flag, value, None, script=True)
                words[where] = [_with_line(words[where][0], group.words)]
                return
        group = self._group(flag, value, None, script=False)
        name = self._dialect.name_of(flag)
        self.args = replace_flags(self.args, {name: [group]}, self._dialect)

    def _group(self, flag: str, value: str | None, old: Group | None, *, script: bool) -> Group:
        """The flag as it is written: a value keeps the form, one word or two, of the one before."""
        if value is None:
            return parse([flag], self._dialect)[0]
        text = shlex.quote(value) if script else value
        takes_word = old is not None and len(old.words) == 2 and not value.startswith("-")
        return Group(flag, (flag, text) if takes_word and value else (f"{flag}={text}",))

    def append(self, words: Sequence[str]) -> None:
        """Put words at the end as they are."""
        for part, where, script in self._parts():
            if script:
                part[where] = [_with_line(part[where][0], words)]
                return
        self.args = [*self.args, *words]

    def written(self, container: Json) -> dict[str, Any]:
        """The container with this command line, and without the fields that came to be empty."""
        edited = dict(container)
        for field, words in (("command", self.command), ("args", self.args)):
            if words != _texts(container.get(field)):
                edited[field] = words
                if not words:
                    del edited[field]
        return edited


def _after_shell_flag(command: Sequence[str]) -> int | None:
    """Where a shell's script stands in its command (at its end: in `args`); None without a shell."""
    if not command or not _SHELL.fullmatch(command[0]):
        return None
    for at, word in enumerate(command[1:], start=1):
        if _SHELL_FLAG.fullmatch(word):
            return at + 1
    return None


def _with_line(text: str, words: Sequence[str]) -> str:
    """A script with words at the end of its last command: on a line of their own, or before the
    comment that ends it."""
    lines = text.rstrip().split("\n")
    last = len(lines) - 1
    while last and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    code, comment = code_and_comment(lines[last])
    code = code.rstrip().removesuffix("\\").rstrip()
    added = " ".join(words)
    new = [f"{code} {added} {comment}"] if comment else [f"{code} \\", added]
    return "\n".join([*lines[:last], *new, *lines[last + 1 :]])
