"""Reads the command line of a released `tokenspeed` from its source: the engine's parser, the flags of
`serve` itself, and those of the gateway, to which `serve` passes on what the engine doesn't know.

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

ENGINE = re.compile(r"tokenspeed/(runtime/utils/server_args|cli/_argsplit)\.py")
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
        else:
            yield from (((flag,), "one", False) for flag in _own_flags(tree))


def _own_flags(tree: ast.Module) -> list[str]:
    """The flags that `serve` takes out before the engine and the gateway see them."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and word(node.targets[0]) == "_ORCH_FLAGS":
            assert isinstance(node.value, ast.Set)
            return [str(constant(item)) for item in node.value.elts]
    raise ValueError("no _ORCH_FLAGS")


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
