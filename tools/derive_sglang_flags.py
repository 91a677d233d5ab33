"""Write the flag table of the SGLang plugin from released wheels.

`python tools/derive_sglang_flags.py WHEEL...` reads the command line of each `sglang` wheel from its
source with `ast` (nothing is imported, nothing is fetched) and rewrites the plugin's `flags.json`.
`--check` writes nothing and exits 1 when the file isn't what would be written; `--print` shows the
number of flags per release. Get the wheels with `pip download --no-deps sglang==VERSION`.

What it can't read (an action or a type it has never seen) is an error, never a guess.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "plugins" / "sglang" / "ome_engine_sglang" / "flags.json"

SOURCES = re.compile(r"sglang/srt/(server_args\.py|arg_groups/(fields/)?\w+\.py)")
WHEEL = re.compile(r"sglang-([^-]+)-")
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:\.post(\d+))?")
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
VALUES = {"store", "append", "LoRAPathAction", "DeprecatedAliasStoreAction"}
REPEATABLE = {"append", "extend"}
NARGS = {"0": "none", "None": "one", "?": "optional", "*": "many", "+": "many", "1": "one"}

Option = tuple[tuple[str, ...], str, bool]
"""The spellings of an option, its arity, and whether it adds up when given again."""


def read_wheel(path: Path) -> tuple[str, list[Option]]:
    """The release of a wheel and the options of its server."""
    named = WHEEL.match(path.name)
    if named is None:
        raise SystemExit(f"{path}: no wheel of sglang")
    found: dict[tuple[str, ...], Option] = {}
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(filter(SOURCES.fullmatch, wheel.namelist())):
            try:
                options = list(read_options(ast.parse(wheel.read(name))))
            except ValueError as error:
                raise SystemExit(f"{path}: {name}: {error}") from error
            found |= {option[0]: option for option in options}
    found["--help", "-h"] = (("--help", "-h"), "none", False)
    return named[1], list(found.values())


def read_options(tree: ast.AST) -> Iterator[Option]:
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


def of_call(names: tuple[str, ...], given: dict[str, ast.expr]) -> Iterator[Option]:
    """The options of `add_argument(*names, **given)`."""
    action = word(given["action"]) if "action" in given else "store"
    if action not in SWITCHES | VALUES | REPEATABLE:
        raise ValueError(f"{names[0]}: unknown action {action}")
    nargs = "0" if action in SWITCHES else "None"
    if "nargs" in given:
        nargs = str(constant(given["nargs"]))
    yield names, NARGS[nargs], action in REPEATABLE
    if action == "BooleanOptionalAction":
        yield tuple(f"--no-{name[2:]}" for name in names if name.startswith("--")), "none", False


def of_field(name: str, annotation: ast.expr) -> Iterator[Option]:
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


def order(version: str) -> tuple[int, ...]:
    """Releases in their order."""
    found = VERSION.fullmatch(version)
    if found is None:
        raise SystemExit(f"{version}: no release")
    return tuple(int(part or -1) for part in found.groups())


def table(releases: dict[str, list[Option]]) -> dict[str, Any]:
    """One table of all releases: spellings, arity and the releases that have them so."""
    versions = sorted(releases, key=order)
    rows: dict[tuple[str, str], list[int]] = {}
    for at, version in enumerate(versions):
        for names, arity, repeatable in releases[version]:
            spellings = " ".join(sorted(names, key=lambda name: (len(name), name)))
            key = (spellings, arity + (" repeatable" if repeatable else ""))
            rows.setdefault(key, []).append(at)
    options = [[names, arity, spans(found)] for (names, arity), found in sorted(rows.items())]
    return {"versions": versions, "options": options}


def spans(numbers: Sequence[int]) -> str:
    """`0-3 5` for 0, 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def text_of(found: dict[str, Any]) -> str:
    """The file: one option a line."""
    rows = ",\n".join("  " + json.dumps(row) for row in found["options"])
    return f'{{\n"versions": {json.dumps(found["versions"])},\n"options": [\n{rows}\n]\n}}\n'


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--print", action="store_true", help="show the flags per release")
    given = parser.parse_args()
    releases = dict(map(read_wheel, given.wheels))
    if given.print:
        for version in sorted(releases, key=order):
            options = releases[version]
            print(version, len(options), "options,", sum(len(o[0]) for o in options), "flags")
    text = text_of(table(releases))
    if given.check:
        return int(not TARGET.is_file() or TARGET.read_text() != text)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
