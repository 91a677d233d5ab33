"""What every reader of command lines needs: archives, literals, and the meaning of `add_argument`."""

from __future__ import annotations

import ast
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

SWITCHES = {
    "store_true",
    "store_false",
    "store_const",
    "count",
    "help",
    "BooleanOptionalAction",
    "DeprecatedAction",
    "DeprecatedStoreTrueAction",
    "DeprecatedStoreConstAction",
}
VALUES = {
    "store",
    "append",
    "DeprecatedAliasStoreAction",
    "DeprecatedLogConfigFileAction",
    "LoRAParserAction",
    "LoRAPathAction",
    "PromptAdapterParserAction",
    "StoreBoolean",
}
REPEATABLE = {"append", "extend"}
NARGS = {"0": "none", "None": "one", "?": "optional", "*": "many", "+": "many", "1": "one"}


class Option(NamedTuple):
    """The spellings of an option, its arity, whether it adds up when given again, whether it is
    deprecated, and the spellings that turn it off."""

    names: tuple[str, ...]
    arity: str
    repeatable: bool = False
    deprecated: bool = False
    opposites: tuple[str, ...] = ()


def read_archive(path: Path, wanted: re.Pattern[str]) -> dict[str, bytes]:
    """The files of a wheel or source archive whose name matches, without an archive's own folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {
                name: wheel.read(name)
                for name in sorted(wheel.namelist())
                if wanted.fullmatch(name)
            }
    found: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            file = archive.extractfile(member) if wanted.fullmatch(name) else None
            if file is not None:
                found[name] = file.read()
    return found


def action_of(names: tuple[str, ...], action: str) -> str:
    """An action that is known; another one is refused."""
    if action not in SWITCHES | VALUES | REPEATABLE:
        raise ValueError(f"{names[0]}: unknown action {action}")
    return action


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    """The named arguments of a call; any other form is refused."""
    if any(keyword.arg is None for keyword in call.keywords):
        raise ValueError(f"line {call.lineno}: arguments given as a mapping")
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def dictionary(node: ast.expr | None) -> dict[str, ast.expr]:
    """The entries of a literal with constant keys."""
    if not isinstance(node, ast.Dict):
        return {}
    return {str(constant(key)): value for key, value in zip(node.keys, node.values, strict=True)}


def constant(node: ast.expr | None, default: Any = None) -> Any:
    """The value of a literal."""
    return node.value if isinstance(node, ast.Constant) else default


def word(node: ast.expr) -> str:
    """The last name of `a.b.c`, or the text of a literal."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else str(constant(node, ""))
