"""Reading and editing argument lists, driven by a dialect.

A dialect says how an engine's parser groups words into flags and values; without one the documented
grouping holds: a flag takes the next word unless that is a flag too (`-1` is a number). Edits
replace in place, add at the end and leave every other word as it was. Source: OME serving-runtimes
document (v1.3), "Per-accelerator configuration".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "NULL_DIALECT",
    "Arity",
    "Dialect",
    "Group",
    "code_and_comment",
    "is_script",
    "override",
    "parse",
    "replace_flags",
    "script_groups",
    "set_value",
]


class Arity(Enum):
    """How many values a flag takes."""

    SWITCH = "none"
    VALUE = "one"
    OPTIONAL = "at most one"
    MANY = "one or more"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine's command line is read.

    `arity` maps known flags to how many values they take; flags it lacks follow the documented
    grouping. `repeatable` flags add up when given again. `tensor` and `pipeline` are the spellings
    of the parallelism flags, in the order they are looked for. With `prefixes` a unique prefix of a
    known flag counts as that flag, with `underscores` they stand for dashes in a long flag's name,
    with `glued` a flag of one letter may have its value in the same word (`-n2`), and with `dotted`
    a key of a flag's value is set by `--flag.key VALUE`. `aliases` maps further spellings of a flag
    to the one that it is known by.
    """

    arity: Mapping[str, Arity] = field(default_factory=dict)
    repeatable: frozenset[str] = frozenset()
    tensor: tuple[str, ...] = ("--tp-size", "--tp", "--tensor-parallel-size")
    pipeline: tuple[str, ...] = ("--pp-size", "--pp", "--pipeline-parallel-size")
    prefixes: bool = False
    underscores: bool = False
    glued: bool = False
    dotted: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, flag: str) -> str:
        """What a flag is compared by: itself, or with dashes for underscores before the first dot."""
        if not self.underscores or not flag.startswith("--"):
            return flag
        head, dot, member = flag.partition(".")
        return head.replace("_", "-") + dot + member

    def flag_of(self, flag: str) -> str:
        """One name for all spellings of a flag: aliases, parallelism spellings, unique prefixes."""
        flag = self.name_of(flag)
        known = {*self.arity, *self.aliases, *self.tensor, *self.pipeline}
        if self.prefixes and flag.startswith("--") and flag not in known:
            names = {self._main(name) for name in known if name.startswith(flag)}
            return names.pop() if len(names) == 1 else flag
        return self._main(flag)

    def _main(self, flag: str) -> str:
        for spellings in (self.tensor, self.pipeline):
            if flag in spellings:
                flag = spellings[0]
        return self.aliases.get(flag, flag)

    def arity_of(self, flag: str) -> Arity | None:
        """The arity of a flag or of its unique prefix; None when the dialect doesn't know it."""
        flag = self.name_of(flag)
        if self.dotted and "." in flag:
            return Arity.VALUE
        found = self.arity.get(flag)
        if found is not None:
            return found
        is_long = flag.startswith("--")
        if self.glued and not is_long and self.arity.get(flag[:2], Arity.SWITCH) != Arity.SWITCH:
            return Arity.SWITCH
        if self.prefixes:
            matches = {
                self.arity[name]
                for name in self.arity
                if name.startswith(flag) and name.startswith("--") is is_long
            }
            found = matches.pop() if len(matches) == 1 else None
        return found


NULL_DIALECT = Dialect()


@dataclass(frozen=True, slots=True)
class Group:
    """Words that belong together: a flag with its values, or one positional word (`key` is "")."""

    key: str
    words: tuple[str, ...]
    open_ended: bool = False
    """A bare flag that would take the next word if that were no flag."""


_NUMBER = re.compile(r"-\d|-\.\d")
_WORD = re.compile(r"""(?:[^\s"'\\]+|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|["'\\])+""")
REFERENCE = re.compile(r"\$\([A-Za-z_][\w.-]*\)")
_CONTINUED = re.compile(r"\s*\\\s*$")


def parse(argv: Sequence[str], dialect: Dialect = NULL_DIALECT) -> list[Group]:
    """Group words into flags and positionals; everything after `--` is positional."""
    groups: list[Group] = []
    at = 0
    while at < len(argv):
        word = argv[at]
        if word == "--":
            groups.extend(Group("", (rest,)) for rest in argv[at:])
            break
        taken = _read_group(argv, at, dialect) if _is_flag(word) else Group("", (word,))
        groups.append(taken)
        at += len(taken.words)
    return groups


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-" and not _NUMBER.match(word)


def _key_of(word: str) -> str:
    return re.split(r"[=\s]", word, maxsplit=1)[0]


def _read_group(argv: Sequence[str], at: int, dialect: Dialect) -> Group:
    word = argv[at]
    key = _key_of(word)
    if len(key) < len(word):
        return Group(key, (word,))
    arity = dialect.arity_of(key)
    most = {Arity.SWITCH: 0, Arity.MANY: len(argv)}.get(arity, 1) if arity else 1
    end = at + 1
    while end < len(argv) and end - at <= most and not _is_flag(argv[end]):
        end += 1
    return Group(key, tuple(argv[at:end]), open_ended=end - at == 1 and arity is not Arity.SWITCH)


def override(
    args: Sequence[str],
    overrides: Sequence[str],
    dialect: Dialect = NULL_DIALECT,
    *,
    as_script: bool = False,
) -> list[str]:
    """Set the flags of `overrides` in `args`: same flag, replaced in place; new flag, appended.

    The replacement has the override's form. Other words stay, repeats included; a repeated flag that
    is overridden collapses at its first position. One multi-line shell string is edited on its lines
    and keeps being one string; so is a word that the caller knows to be one (`as_script`).
    """
    if not overrides:
        return list(args)
    if not args:
        return list(overrides)
    return replace_flags(args, _wanted(overrides, dialect), dialect, as_script=as_script)


def replace_flags(
    args: Sequence[str],
    wanted: Mapping[str, list[Group]],
    dialect: Dialect = NULL_DIALECT,
    *,
    as_script: bool = False,
) -> list[str]:
    """Put groups in the place of the flags of their keys; none takes the flag away. Keys that don't
    stand there are appended. One word is edited as a script if it is one, or if the caller knows."""
    if len(args) == 1 and (as_script or is_script(args[0])):
        return [_override_script(args[0], wanted, dialect)]
    edited = _override_groups(parse(args, dialect), wanted, dialect)
    return [word for group in edited for word in group.words]


def script_groups(text: str, dialect: Dialect = NULL_DIALECT) -> list[Group]:
    """The flags and words of a script, line by line and without comments."""
    return [
        group
        for line in _script_lines(text)[0]
        for group in parse([word.group() for word in _split_comment(line)[0]], dialect)
    ]


def _wanted(overrides: Sequence[str], dialect: Dialect) -> dict[str, list[Group]]:
    """The override's groups by key (a positional's key is its text); the last wins unless repeatable."""
    wanted: dict[str, list[Group]] = {}
    for group in parse(overrides, dialect):
        key = _name_of(group, dialect)
        if group.key and key in dialect.repeatable:
            wanted.setdefault(key, []).append(group)
        else:
            wanted[key] = [group]
    return wanted


def _name_of(group: Group, dialect: Dialect) -> str:
    return dialect.name_of(group.key) if group.key else group.words[0]


def _replace(
    groups: list[Group], wanted: Mapping[str, list[Group]], done: set[str], dialect: Dialect
) -> list[Group]:
    """The wanted groups where the first of their key stands; later ones, and those done, are dropped."""
    edited: list[Group] = []
    for group in groups:
        key = _name_of(group, dialect)
        is_word = not group.key and _is_flag(key)  # a flag's text after --
        if key not in wanted or is_word:
            edited.append(group)
        elif key not in done:
            done.add(key)
            edited.extend(wanted[key])
    return edited


def _override_groups(
    groups: list[Group], wanted: Mapping[str, list[Group]], dialect: Dialect
) -> list[Group]:
    done: set[str] = set()
    kept, moved = _separate(_replace(groups, wanted, done, dialect))
    added = [group for key, new in wanted.items() if key not in done for group in new]
    return _append(kept, [*moved, *added])


def _separate(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """Take out bare flags that now stand before a plain word, which they would take as value."""
    kept: list[Group] = []
    moved: list[Group] = []
    for group in reversed(groups):
        following = kept[-1] if kept else None
        if group.open_ended and following and not following.key and following.words != ("--",):
            moved.append(group)
        else:
            kept.append(group)
    return kept[::-1], moved[::-1]


def _append(groups: list[Group], added: Iterable[Group]) -> list[Group]:
    """Append, but before `--`, and a positional before bare flags that would take it as value."""
    cut = next((at for at, group in enumerate(groups) if group.words == ("--",)), len(groups))
    head, tail = groups[:cut], groups[cut:]
    for group in added:
        place = len(head)
        while not group.key and place and head[place - 1].open_ended:
            place -= 1
        head.insert(place, group)
    return head + tail


def is_script(text: str) -> bool:
    """Whether one argument is a shell string of several lines (or continued ones)."""
    return "\n" in text or bool(re.search(r"\\\s", text))


def _override_script(text: str, wanted: Mapping[str, list[Group]], dialect: Dialect) -> str:
    lines, joints = _script_lines(text)
    done: set[str] = set()
    kept: list[str] = []
    kept_joints: list[str] = []
    for line, joint in zip(lines, joints, strict=True):
        edited = _override_line(line, wanted, done, dialect)
        if edited:
            kept.append(edited)
            kept_joints.append(joint)
    for key, groups in wanted.items():
        if key not in done:
            kept.extend(" ".join(group.words) for group in groups)
            kept_joints.extend([_JOINT] * len(groups))
    body = [line + joint for line, joint in zip(kept, kept_joints[1:], strict=False)]
    return "".join([*body, *kept[-1:]])


_JOINT = " \\\n"


def _script_lines(text: str) -> tuple[list[str], list[str]]:
    """Lines without continuations, and what joins each line to the one before it."""
    lines: list[str] = []
    joints: list[str] = []
    continued = True
    for raw in text.split("\n"):
        line = _CONTINUED.sub("", raw).strip()
        if line:
            lines.append(line)
            joints.append(_JOINT if continued or line.startswith("-") else "\n")
        continued = bool(_CONTINUED.search(raw)) or (continued and not line)
    return lines, joints


def _override_line(
    line: str, wanted: Mapping[str, list[Group]], done: set[str], dialect: Dialect
) -> str:
    """One line with its flags replaced; a flag that was replaced on an earlier line is dropped."""
    words, comment = _split_comment(line)
    groups = parse([word.group() for word in words], dialect)
    if not any(_name_of(group, dialect) in wanted for group in groups):
        return line
    edited = _replace(groups, wanted, done, dialect)
    return " ".join([*(word for group in edited for word in group.words), *comment])


def _split_comment(line: str) -> tuple[list[re.Match[str]], list[str]]:
    """The words of a line, and its comment, if it has one."""
    words = list(_WORD.finditer(line))
    at = next((i for i, word in enumerate(words) if word.group().startswith("#")), len(words))
    return words[:at], [line[words[at].start() :]] if at < len(words) else []


def _end_of_value(word: re.Match[str], start: int) -> int | None:
    """Where a value in a script's word ends: before what the shell takes for itself. None without one."""
    text = word.group()[start:]
    if REFERENCE.match(text):
        return word.end()
    found = re.match(r"[^;&|<>()`]+", text)
    if found is None or text[found.end() :].startswith("("):
        return None
    return word.start() + start + found.end()


def code_and_comment(line: str) -> tuple[str, str]:
    """A script's line, cut before the comment that ends it."""
    words, comment = _split_comment(line)
    return (line.removesuffix(comment[0]), comment[0]) if comment and words else (line, "")


def set_value(
    argv: Sequence[str], spellings: Sequence[str], value: int, dialect: Dialect = NULL_DIALECT
) -> list[str] | None:
    """Rewrite the value of the first spelling found, once; None when there is nothing to rewrite.

    Looks for the spellings in their order. Forms: `--flag=value` (stays so), `--flag` followed by a
    value, and inside a multi-line first element `--flag=N` or `--flag N` (becomes `--flag=N`). Never
    adds a flag, and matches whole flags only. A flag stays as it is written, underscores included.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    for flag in spellings:
        if argv and is_script(argv[0]):
            text = _set_in_script(argv[0], flag, value, dialect)
            if text is not None:
                return [text, *argv[1:]]
        for at, word in enumerate(argv[:end]):
            written, has_value, _ = word.partition("=")
            if dialect.name_of(written) != flag:
                continue
            if has_value:
                return [*argv[:at], f"{written}={value}", *argv[at + 1 :]]
            if at + 1 < end and not _is_flag(argv[at + 1]):
                return [*argv[: at + 1], str(value), *argv[at + 2 :]]
    return None


def _set_in_script(text: str, flag: str, value: int, dialect: Dialect) -> str | None:
    """Rewrite the first whole word that is the flag, with its value; comments and quotes are left."""
    start = 0
    for line in text.splitlines(keepends=True):
        words, _ = _split_comment(line)
        for at, word in enumerate(words):
            end = None
            written, has_value, _ = word.group().partition("=")
            if dialect.name_of(written) != flag:
                continue
            if has_value:
                end = _end_of_value(word, len(written) + 1)
            elif at + 1 < len(words):
                following = words[at + 1]
                is_value = not _is_flag(following.group()) and following.group() != "\\"
                end = _end_of_value(following, 0) if is_value else None
            if end is not None:
                return f"{text[: start + word.start()]}{written}={value}{text[start + end :]}"
        start += len(line)
    return None
