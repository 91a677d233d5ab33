"""Shell scripts, as far as they are one plain command; anything else is left unread, with the reason."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "LONGEST",
    "LONGEST_ARGUMENT",
    "ScriptUnread",
    "read_command",
]

LONGEST: Final = 16_384
# Linux starts no program with a longer argument.
LONGEST_ARGUMENT: Final = 131_072

SEVERAL: Final = "it is launched by a shell script of several commands"
REDIRECTED: Final = "its shell script redirects its input or output"
SUBSTITUTED: Final = "its shell script runs other commands to compute its arguments"
UNBALANCED: Final = "its shell script has an unbalanced quote"
LONG: Final = "its shell script is too long"

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:[ \t\r]|\\\r?\n)+)
    | (?P<end>[;&|\n])
    | (?P<comment>(?<!\S)\#[^\n]*)
    | (?P<redirect>[<>])
    | (?P<reference>\$\([A-Za-z_][\w.-]*\))
    | (?P<substitution>\$\(|`|[()])
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | \\(?P<escaped>.)
    | (?P<plain>[^\s;&|<>`()'"\\$\#]+|[$\#])
    | (?P<quote>.)""",
    re.VERBOSE | re.DOTALL,
)
_SUBSTITUTION: Final = re.compile(r"`|\$\((?![A-Za-z_][\w.-]*\))")
_UNESCAPED: Final = re.compile(r'\\([\\"$`])|\\\n')


class ScriptUnread(Exception):
    """A script that isn't one plain command; the message says why."""


def read_command(text: str) -> list[str]:
    """The words of a script that is one plain command. Raises ScriptUnread.

    Variables stay as they are written. `$(NAME)` is a reference that Kubernetes replaces before the
    shell starts, so it is a word like any other.
    """
    if len(text) > LONGEST:
        raise ScriptUnread(LONG)
    commands: list[list[str]] = [[]]
    word: str | None = None
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup or "plain"
        if kind in ("space", "end", "comment"):
            if word is not None:
                commands[-1].append(word)
                word = None
            if kind == "end":
                commands.append([])
        else:
            word = (word or "") + _piece(kind, token[kind])
    if word is not None:
        commands[-1].append(word)
    written = [command for command in commands if command]
    if len(written) > 1:
        raise ScriptUnread(SEVERAL)
    return written[0] if written else []


def _piece(kind: str, text: str) -> str:
    """The text that a token adds to its word."""
    if kind == "redirect":
        raise ScriptUnread(REDIRECTED)
    if kind == "substitution" or (kind == "double" and _SUBSTITUTION.search(text)):
        raise ScriptUnread(SUBSTITUTED)
    if kind == "quote":
        raise ScriptUnread(UNBALANCED)
    return _UNESCAPED.sub(r"\1", text) if kind == "double" else text
