"""Reads the command line of a released `tokenspeed` from its source: the engine's parser, the flags of
`serve` itself, also those that it takes out before others see them, and those of the gateway, to which
`serve` passes on what the engine doesn't know.

The gateway is a package of its own: its wheel, of the version that the engine's wheel requires, has to
lie in the same folder.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from flag_readers import sglang
from flag_readers.common import constant, keywords, read_archive, word

ENGINE = re.compile(
    r"tokenspeed/(runtime/utils/server_args|cli/(_argsplit|serve_smg|__main__))\.py"
)
METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
GATEWAY = re.compile(r"smg/router_args\.py")
REQUIRED = re.compile(r"^Requires-Dist: tokenspeed-smg==(\S+)$", re.MULTILINE)

Found = sglang.Found


def read(path: Path) -> list[Found]:
    """The options of `tokenspeed serve`; of a flag that engine and gateway have, the engine's."""
    found: dict[tuple[str, ...], Found] = {}
    taken: set[str] = set()
    for options in (_engine(path), _gateway(path)):
        for option in options:
            names = tuple(name for name in option[0] if name.startswith("-"))
            if names and not taken & set(names):
                found[names] = (names, *option[1:])
        taken.update(name for names in found for name in names)
    return list(found.values())


def _engine(path: Path) -> Iterator[Found]:
    for name, source in read_archive(path, ENGINE).items():
        tree = ast.parse(source)
        if name.endswith("server_args.py"):
            yield from sglang.read_options(tree)
        elif name.endswith("_argsplit.py"):
            own = _flags(tree, "_ORCH_FLAGS")
            if not own:
                raise ValueError("no _ORCH_FLAGS")
            yield from (((flag,), "one", False) for flag in own)
        elif name.endswith("serve_smg.py"):
            switches = _flags(tree, "_TOKENIZER_CACHE_FLAGS")
            yield from ((("--no-" + flag[2:],), "none", False) for flag in switches)
        else:
            yield from _parser_of_serve(tree)


def _flags(tree: ast.Module, name: str) -> list[str]:
    """The flags of a collection that a module assigns to a name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and word(node.targets[0]) == name:
            assert isinstance(node.value, ast.Set | ast.Tuple)
            return [str(constant(item)) for item in node.value.elts]
    return []


def _parser_of_serve(tree: ast.Module) -> Iterator[Found]:
    """What the command `serve` itself registers."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "add_argument" and word(node.func.value) == "serve_parser":
            names = tuple(str(constant(name)) for name in node.args)
            yield from sglang.of_call(names, keywords(node))


def _gateway(path: Path) -> Iterator[Found]:
    """The gateway's options, without the prefix that they have in other programs."""
    (metadata,) = read_archive(path, METADATA).values()
    required = REQUIRED.search(metadata.decode())
    if required is None:
        raise ValueError("it requires no tokenspeed-smg")
    wheels = sorted(path.parent.glob(f"tokenspeed_smg-{required[1]}-*.whl"))
    if not wheels:
        raise ValueError(f"tokenspeed_smg-{required[1]} doesn't lie beside it")
    (source,) = read_archive(wheels[0], GATEWAY).values()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names = tuple(filter(None, map(_text, node.args)))
            if names:
                yield from sglang.of_call(names, keywords(node))


def _text(node: ast.expr) -> str:
    """A literal, or `f"--{prefix}name"` without the prefix."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(constant(part, "")) for part in node.values)
    found = constant(node)
    return found if isinstance(found, str) else ""
