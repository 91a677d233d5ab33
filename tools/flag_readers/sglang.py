"""Reads the command line of a released `sglang` from its source: calls, and annotated fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from flag_readers.common import (
    NARGS,
    REPEATABLE,
    SWITCHES,
    action_of,
    constant,
    dictionary,
    keywords,
    read_archive,
    word,
)

SOURCES = re.compile(r"sglang/srt/(server_args\.py|arg_groups/(fields/)?\w+\.py)")

Found = tuple[tuple[str, ...], str, bool]
"""The spellings of an option, its arity, and whether it adds up when given again."""


def read(path: Path) -> list[Found]:
    """The options of the server in a wheel or source archive."""
    found: dict[tuple[str, ...], Found] = {}
    for name, source in read_archive(path, SOURCES).items():
        try:
            options = list(read_options(ast.parse(source)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        found |= {option[0]: option for option in options}
    found["--help", "-h"] = (("--help", "-h"), "none", False)
    return list(found.values())


def read_options(tree: ast.AST) -> Iterator[Found]:
    """Options that a module registers, by call or by annotated field."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names = tuple(text for text in map(constant, node.args) if isinstance(text, str))
            if names:
                yield from of_call(names, keywords(node))
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield from of_field(field.target.id, field.annotation)


def of_call(names: tuple[str, ...], given: dict[str, ast.expr]) -> Iterator[Found]:
    """The options of `add_argument(*names, **given)`."""
    action = action_of(names, word(given["action"]) if "action" in given else "store")
    nargs = "0" if action in SWITCHES else "None"
    if "nargs" in given:
        nargs = str(constant(given["nargs"]))
    yield names, NARGS[nargs], action in REPEATABLE
    if action == "BooleanOptionalAction":
        yield tuple(f"--no-{name[2:]}" for name in names if name.startswith("--")), "none", False


def of_field(name: str, annotation: ast.expr) -> Iterator[Found]:
    """The options of a field `name: A[type, meta]`; other fields have none."""
    if not isinstance(annotation, ast.Subscript) or word(annotation.value) not in (
        "A",
        "Annotated",
    ):
        return
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
    given: dict[str, ast.expr] | None = None
    for part in reversed(parts[1:]):
        if isinstance(part, ast.Call):
            given = keywords(part) if word(part.func) == "Arg" else given
        else:
            given = {}  # the bare help text
    if given is None or ("no_cli" in given and constant(given["no_cli"]) is not False):
        return
    flag = constant(given["cli_name"]) if "cli_name" in given else "--" + name.replace("_", "-")
    aliases = given.get("aliases")
    rest = [constant(item) for item in aliases.elts] if isinstance(aliases, ast.List) else []
    names = tuple(str(text) for text in (flag, *rest))
    if "action" in given:
        yield from of_call(names, given | dictionary(given.get("action_kwargs")))
        return
    yield names, of_type(parts[0], given), False


def of_type(annotation: ast.expr, given: dict[str, ast.expr]) -> str:
    """The arity that SGLang infers from a field's type."""
    inner = without_none(annotation)
    name = word(inner.value) if isinstance(inner, ast.Subscript) else word(inner)
    if name == "bool":
        return "none"
    nargs = str(constant(given["nargs"])) if "nargs" in given else "None"
    if name in ("List", "list") and "type_parser" not in given:
        return NARGS["+" if nargs == "None" else nargs]
    return NARGS[nargs]


def without_none(annotation: ast.expr) -> ast.expr:
    """`X` of `Optional[X]` and of `X | None`."""
    if isinstance(annotation, ast.Subscript) and word(annotation.value) == "Optional":
        return annotation.slice
    if isinstance(annotation, ast.BinOp) and constant(annotation.right, ...) is None:
        return annotation.left
    return annotation
