"""Reads the command line of a released `vllm` from its source.

`vllm serve` registers its options by statements (`add_argument`) whose settings come from the fields of
configuration classes. Those statements are followed one by one, as far as they decide which options
there are and how many values each takes; a statement that isn't understood is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flag_readers.common import (
    NARGS,
    REPEATABLE,
    SWITCHES,
    Option,
    action_of,
    constant,
    read_archive,
    word,
)
from flag_readers.source import Package

SOURCES = re.compile(r"vllm/.*\.py")
# Settings of an option that don't change which words it takes.
IRRELEVANT = {"choices", "const", "default", "dest", "help", "metavar", "required", "type"}
# Calls that register nothing (on the platforms that have images), or only shape the help.
SILENT = {
    "load_general_plugins",
    "pre_register_and_update",
    "show_filtered_argument_or_group_from_help",
}
INVERSES = {"--enable-": "--disable-", "--disable-": "--enable-"}

Given = dict[str, Any]
"""The settings of an option that matter: `action`, `nargs` and `deprecated`."""


def read(path: Path) -> list[Option]:
    """The options of `vllm serve` in a wheel or source archive."""
    package = Package(read_archive(path, SOURCES))
    parser = Parser(package)
    command = "vllm.entrypoints.cli.serve"
    module, node = package.class_of(command, "ServeSubcommand")
    parser.run(*package.method(module, node, "subparser_init"), module, node)
    return parser.found()


class Parser:
    """The options that the statements of a package have registered."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.options: dict[tuple[str, ...], Option] = {}
        text = package.text("vllm.utils") + package.text("vllm.utils.argparse_utils")
        arguments = package.text("vllm.engine.arg_utils")
        self.has_inverses = "EnableDisableAction" in text
        self.short_level = "processed_args" in text and "--optimization-level" in text
        self.takes_sets = "contains_type(type_hints, set)" in arguments
        self.optional_text = "type_hints == {bool, str, type(None)}" in arguments

    def found(self) -> list[Option]:
        """The options, with those that the parser has by itself."""
        options = list(self.options.values())
        if self.short_level:
            at = next(
                (i for i, one in enumerate(options) if "--optimization-level" in one.names), None
            )
            if at is not None and not any("-O" in one.names for one in options):
                options[at] = options[at]._replace(names=("-O", *options[at].names))
        return [*options, Option(("--help", "-h"), "none")]

    def run(
        self,
        module: str,
        function: ast.FunctionDef,
        owner_module: str = "",
        owner: ast.ClassDef | None = None,
        env: dict[str, Any] | None = None,
    ) -> Any:
        """Follow the statements of a function; the value it returns, if that matters."""
        frame = Frame(self, module, owner_module, owner, dict(env or {}), function)
        return frame.body(function.body)

    def register(self, names: tuple[str, ...], given: Given) -> None:
        """Take in `add_argument(*names, **given)`."""
        if not names[0].startswith("-"):
            return
        action = action_of(names, given.get("action", "store"))
        nargs = "0" if action in SWITCHES else str(given.get("nargs", "None"))
        nargs = "+" if nargs.isdecimal() and int(nargs) > 1 else nargs
        is_deprecated = bool(given.get("deprecated")) or action.startswith("Deprecated")
        off = self.opposites(names) if action == "BooleanOptionalAction" else ()
        arity = NARGS[nargs]
        self.options[names] = Option(names, arity, action in REPEATABLE, is_deprecated, off)

    def opposites(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The spellings that turn a switch off."""
        found = [f"--no-{name[2:]}" for name in names if name.startswith("--")]
        if self.has_inverses:
            found += [
                inverse + name.removeprefix(prefix)
                for name in names
                for prefix, inverse in INVERSES.items()
                if name.startswith(prefix)
            ]
        return tuple(found)

    def settings(self, module: str, name: str) -> dict[str, Given]:
        """What `get_kwargs` gives for a configuration class."""
        fields = self.package.fields(*self.package.class_of(module, name))
        return {field: self.of_kinds(kinds) for field, kinds in fields.items()}

    def of_kinds(self, kinds: set[str]) -> Given:
        """What vLLM infers from the type of a field."""
        if "dataclass" in kinds:
            return {}
        if self.optional_text and kinds == {"bool", "str", "None"}:
            return {"nargs": "?"}
        if "bool" in kinds:
            return {"action": "BooleanOptionalAction"}
        if "Literal" in kinds:
            return {}
        many = {"list", "tuple", "tuple..."} | ({"set"} if self.takes_sets else set())
        return {"nargs": "+"} if kinds & many else {}


class Frame:
    """One function that is followed: its module, the class it belongs to, and its variables."""

    def __init__(
        self,
        parser: Parser,
        module: str,
        owner_module: str,
        owner: ast.ClassDef | None,
        env: dict[str, Any],
        function: ast.FunctionDef,
    ) -> None:
        self.parser = parser
        self.module = module
        self.owner_module = owner_module
        self.owner = owner
        self.env = env
        self.function = function

    def body(self, statements: list[ast.stmt]) -> Any:
        """Follow statements until one returns."""
        for node in statements:
            if isinstance(node, ast.Return):
                return self.value(node.value) if node.value else None
            handler = getattr(self, f"on_{type(node).__name__.lower()}", None)
            if handler is None:
                raise self.unread(node)
            handler(node)
        return None

    def unread(self, node: ast.AST) -> ValueError:
        """The error for a statement that isn't understood."""
        return ValueError(f"{self.module}.{self.function.name}: {ast.unparse(node)[:200]}")

    def on_import(self, node: ast.stmt) -> None:
        """Imports inside functions name what the module's own imports name."""

    on_importfrom = on_functiondef = on_pass = on_import

    def on_expr(self, node: ast.Expr) -> None:
        """A call for its effect."""
        call = node.value
        if isinstance(call, ast.Constant):
            return
        if not isinstance(call, ast.Call):
            raise self.unread(node)
        name = word(call.func)
        if name == "add_argument":
            self.add(call)
        elif name not in SILENT and not (
            name in ("append", "remove") and self.is_irrelevant(call.func)
        ):
            raise self.unread(node)

    def is_irrelevant(self, node: ast.AST) -> bool:
        """Whether an expression only reaches settings that don't matter."""
        return any(
            isinstance(each, ast.Subscript) and constant(each.slice) in IRRELEVANT
            for each in ast.walk(node)
        )

    def on_assign(self, node: ast.Assign) -> None:
        """A variable, or one setting of an option."""
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.env[target.id] = self.value(node.value)
        elif isinstance(target, ast.Subscript) and constant(target.slice) in IRRELEVANT:
            return
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            given = self.value(target.value)
            if not isinstance(given, dict) or target.slice.value not in (
                "action",
                "nargs",
                "deprecated",
            ):
                raise self.unread(node)
            given[target.slice.value] = self.setting(node.value)
        elif not (isinstance(target, ast.Attribute) and target.attr == "epilog"):
            raise self.unread(node)

    def on_augassign(self, node: ast.AugAssign) -> None:
        """Only longer texts and more choices are expected."""
        if not self.is_irrelevant(node.target):
            raise self.unread(node)

    def on_delete(self, node: ast.Delete) -> None:
        """A setting that is taken back."""
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                raise self.unread(node)
            given = self.value(target.value)
            del given[constant(target.slice)]

    def on_if(self, node: ast.If) -> None:
        """Conditions on the settings, on the program's name, and on how the function is called."""
        text = ast.unparse(node.test)
        if "sys.argv" in text or text == "not async_args_only":
            self.body(node.body)
        elif isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.In):
            given = self.value(node.test.comparators[0])
            is_in = constant(node.test.left) in given
            self.body(node.body if is_in else node.orelse)
        else:
            raise self.unread(node)

    def on_for(self, node: ast.For) -> None:
        """A loop over the options of a class, or over a list in the source."""
        if not isinstance(node.target, ast.Tuple):
            raise self.unread(node)
        names = [word(each) for each in node.target.elts]
        if isinstance(node.iter, ast.Call) and word(node.iter.func) == "items":
            func = node.iter.func
            rows = list(self.value(func.value).items()) if isinstance(func, ast.Attribute) else []
        elif isinstance(node.iter, ast.List):
            rows = [
                [constant(part) for part in each.elts]
                for each in node.iter.elts
                if isinstance(each, ast.Tuple)
            ]
        else:
            raise self.unread(node)
        for row in rows:
            self.env.update(zip(names, row, strict=True))
            self.body(node.body)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, as far as it can matter; else None."""
        if isinstance(node, ast.Name):
            return self.env.get(node.id)
        if isinstance(node, ast.Subscript):
            holder = self.value(node.value)
            return holder.get(constant(node.slice)) if isinstance(holder, dict) else None
        return self.call(node) if isinstance(node, ast.Call) else None

    def call(self, node: ast.Call) -> Any:
        """The value of a call: the settings of a class, or what another function returns."""
        name = word(node.func)
        if name == "get_kwargs":
            argument = word(node.args[0])
            if argument == "cls":
                assert self.owner is not None
                return self.parser.settings(self.owner_module, self.owner.name)
            return self.parser.settings(self.module, argument)
        if name in ("add_cli_args", "_customize_cli_kwargs"):
            return self.method(node, name)
        if isinstance(node.func, ast.Name) and name == "make_arg_parser":
            found = self.parser.package.find(self.module, name)
            if found is None or not isinstance(found.node, ast.FunctionDef):
                raise self.unread(node)
            return self.parser.run(found.module, found.node)
        if name == "pop":
            return []
        return None

    def method(self, node: ast.Call, name: str) -> Any:
        """A class method that registers options or changes settings."""
        assert isinstance(node.func, ast.Attribute)
        package = self.parser.package
        holder = node.func.value
        arguments = [self.value(each) for each in node.args]
        if isinstance(holder, ast.Call):  # super()
            assert self.owner is not None
            lineage = list(package.lineage(self.owner_module, self.owner))
            here = next(i for i, (_, each) in enumerate(lineage) if self.function in each.body)
            where, owner = lineage[here + 1]
            module, function = package.method(where, owner, name)
            owner_module, owner = self.owner_module, self.owner
        else:
            if word(holder) == "cls":
                assert self.owner is not None
                owner_module, owner = self.owner_module, self.owner
            else:
                owner_module, owner = package.class_of(self.module, word(holder))
            module, function = package.method(owner_module, owner, name)
        names = [each.arg for each in function.args.args if each.arg not in ("cls", "self")]
        env = dict(zip(names, arguments, strict=False))
        return self.parser.run(module, function, owner_module, owner, env)

    def add(self, call: ast.Call) -> None:
        """`add_argument(...)`."""
        names = tuple(name for each in call.args for name in self.names(each))
        given: Given = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                given |= self.mapping(keyword.value)
            elif keyword.arg in ("action", "nargs", "deprecated"):
                given[keyword.arg] = self.setting(keyword.value)
            elif keyword.arg == "help":
                given["deprecated"] = given.get("deprecated") or self.says_deprecated(keyword.value)
            elif keyword.arg not in IRRELEVANT:
                raise self.unread(call)
        if not names:
            raise self.unread(call)
        self.parser.register(names, given)

    def names(self, node: ast.expr) -> Iterator[str]:
        """The spellings that an argument of `add_argument` gives."""
        if isinstance(node, ast.Constant):
            yield str(node.value)
        elif isinstance(node, ast.Name) and isinstance(self.env.get(node.id), str):
            yield self.env[node.id]
        elif isinstance(node, ast.Starred) and self.value(node.value) == []:
            return
        elif isinstance(node, ast.JoinedStr) and ast.unparse(node).replace('"', "'").endswith(
            "--{key.replace('_', '-')}'"
        ):
            yield "--" + self.env["key"].replace("_", "-")
        else:
            raise self.unread(node)

    def mapping(self, node: ast.expr) -> Given:
        """The settings that are given as a mapping."""
        if isinstance(node, ast.Dict):
            found: Given = {}
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    found |= self.mapping(value)
                elif constant(key) in ("action", "nargs", "deprecated"):
                    found[constant(key)] = self.setting(value)
                elif constant(key) == "help":
                    found["deprecated"] = found.get("deprecated") or self.says_deprecated(value)
                elif constant(key) not in IRRELEVANT:
                    raise self.unread(node)
            return found
        given = self.value(node)
        if not isinstance(given, dict):
            raise self.unread(node)
        return dict(given)

    def setting(self, node: ast.expr) -> Any:
        """An action by its name, or a literal."""
        return constant(node, word(node))

    def says_deprecated(self, node: ast.expr) -> bool:
        """Whether the help text of an option starts by saying that it is deprecated."""
        if isinstance(node, ast.Name):
            return node.id.endswith("_DEPRECATION_MESSAGE")
        text = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        return str(constant(text, "")).lstrip().lower().startswith(("[deprecated", "deprecated"))
