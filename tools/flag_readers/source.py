"""A package read without importing it: its modules, what a name in one stands for, and its dataclasses."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flag_readers.common import word

GENERICS = {
    "Callable": "other",
    "Counter": "other",
    "Dict": "dict",
    "List": "list",
    "Literal": "Literal",
    "Mapping": "other",
    "Sequence": "other",
    "Set": "set",
    "Tuple": "tuple",
    "Type": "other",
    "dict": "dict",
    "list": "list",
    "set": "set",
    "tuple": "tuple",
    "type": "other",
}
BUILTINS = {
    "bool",
    "bytes",
    "dict",
    "float",
    "int",
    "list",
    "object",
    "set",
    "str",
    "tuple",
    "type",
}
TRANSPARENT = {"Annotated", "Final", "Required", "SkipValidation"}
UNIONS = {"Optional", "Union"}


@dataclass(frozen=True)
class Found:
    """What a name stands for: a class, a function or an alias, and the module it is written in."""

    module: str
    node: ast.ClassDef | ast.FunctionDef | ast.expr


class Package:
    """The modules of a package by name, each parsed when it is first looked at."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self._names: dict[str, dict[str, Found | tuple[str, str]]] = {}

    def text(self, module: str) -> str:
        """The source of a module, "" when the package has none of that name."""
        path = module.replace(".", "/")
        for name in (f"{path}.py", f"{path}/__init__.py"):
            if name in self.files:
                return self.files[name].decode()
        return ""

    def has(self, module: str) -> bool:
        """Whether there is a module of that name."""
        path = module.replace(".", "/")
        return f"{path}.py" in self.files or f"{path}/__init__.py" in self.files

    def names(self, module: str) -> dict[str, Found | tuple[str, str]]:
        """What a module defines, and what it imports as (module, name)."""
        if module not in self._names:
            found: dict[str, Found | tuple[str, str]] = {}
            is_package = f"{module.replace('.', '/')}/__init__.py" in self.files
            for node in executed(ast.parse(self.text(module)).body):
                found.update(bound(node, module, is_package))
            self._names[module] = found
        return self._names[module]

    def find(self, module: str, name: str) -> Found | None:
        """What a name in a module stands for; None for what comes from another package."""
        seen = set()
        while (module, name) not in seen:
            seen.add((module, name))
            if not self.has(module):
                return None
            found = self.names(module).get(name)
            if found is None or isinstance(found, Found):
                return found
            module, name = found
        return None

    def class_of(self, module: str, name: str) -> tuple[str, ast.ClassDef]:
        """A class by its name in a module."""
        found = self.find(module, name)
        if found is None or not isinstance(found.node, ast.ClassDef):
            raise ValueError(f"{module}: {name} is no class that can be read")
        return found.module, found.node

    def lineage(self, module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
        """A class and its bases, as far as they are the package's, nearest first."""
        yield module, node
        for base in node.bases:
            found = self.find(module, word(base))
            if found is not None and isinstance(found.node, ast.ClassDef):
                yield from self.lineage(found.module, found.node)

    def method(self, module: str, node: ast.ClassDef, name: str) -> tuple[str, ast.FunctionDef]:
        """A method of a class or of the nearest base that has it."""
        for where, each in self.lineage(module, node):
            for item in each.body:
                if isinstance(item, ast.FunctionDef) and item.name == name:
                    return where, item
        raise ValueError(f"{module}: {node.name} has no {name}")

    def fields(self, module: str, node: ast.ClassDef) -> dict[str, set[str]]:
        """The fields of a dataclass in their order, each with the kinds of its type."""
        found: dict[str, set[str]] = {}
        for where, each in reversed(list(self.lineage(module, node))):
            for item in each.body:
                if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
                    continue
                head = item.annotation
                head = head.value if isinstance(head, ast.Subscript) else head
                if word(head) not in ("ClassVar", "InitVar"):
                    found[item.target.id] = self.kinds(where, item.annotation)
        return found

    def kinds(self, module: str, node: ast.expr) -> set[str]:
        """What a type is made of: built-in names, `Literal`, `None`, `dataclass` or `other`.

        A fixed tuple is `tuple`, one of any length `tuple...`.
        """
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.kinds(module, node.left) | self.kinds(module, node.right)
        if isinstance(node, ast.Constant):
            return {"None"} if node.value is None else {"other"}
        if isinstance(node, ast.Subscript):
            return self._generic(module, node)
        if isinstance(node, ast.Attribute):
            return {"other"}  # `torch.dtype`: of another package, or an enumeration
        if not isinstance(node, ast.Name):
            raise ValueError(f"{module}: a type that can't be read: {ast.unparse(node)}")
        return self._named(module, node.id)

    def _generic(self, module: str, node: ast.Subscript) -> set[str]:
        name = word(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in TRANSPARENT:
            return self.kinds(module, parts[0])
        if name in UNIONS:
            kinds = {kind for part in parts for kind in self.kinds(module, part)}
            return kinds | ({"None"} if name == "Optional" else set())
        if name not in GENERICS:
            raise ValueError(f"{module}: an unknown generic type: {ast.unparse(node)}")
        is_open = any(isinstance(part, ast.Constant) and part.value is ... for part in parts)
        return {"tuple..." if name in ("tuple", "Tuple") and is_open else GENERICS[name]}

    def _named(self, module: str, name: str) -> set[str]:
        found = self.find(module, name)
        if found is None:
            return {name if name in BUILTINS else "other"}
        if isinstance(found.node, ast.ClassDef):
            decorators = [
                each.func if isinstance(each, ast.Call) else each
                for each in found.node.decorator_list
            ]
            is_data = any(word(each) in ("config", "dataclass") for each in decorators)
            bases = {word(base) for base in found.node.bases}
            return {"dataclass"} if is_data else {"dict"} & bases or {"other"}
        if isinstance(found.node, ast.FunctionDef | ast.Call):
            return {"other"}
        return self.kinds(found.module, found.node)


def executed(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module that run when it is imported, not those for type checkers."""
    for node in body:
        if isinstance(node, ast.If):
            is_typing = word(node.test) == "TYPE_CHECKING"
            yield from executed(node.orelse if is_typing else node.body)
        elif isinstance(node, ast.Try):
            yield from executed(node.body)
        else:
            yield node


def bound(
    node: ast.stmt, module: str, is_package: bool
) -> Iterator[tuple[str, Found | tuple[str, str]]]:
    """The names that a statement binds."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        yield node.name, Found(module, node)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, Found(module, node.value)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, Found(module, node.value)
    elif isinstance(node, ast.ImportFrom):
        source = node.module or ""
        if node.level:
            parts = module.split(".")
            keep = len(parts) - node.level + is_package
            source = ".".join([*parts[:keep], *([source] if source else [])])
        for alias in node.names:
            yield alias.asname or alias.name, (source, alias.name)
