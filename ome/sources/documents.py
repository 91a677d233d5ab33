"""Texts to JSON documents, each with its place: YAML as Kubernetes reads it, and JSON.

The YAML is the JSON-compatible part of YAML 1.1: no tags, no timestamps, no base-60 numbers; keys
are strings and stand once. Aliases are expanded, but no document may grow beyond a bound.
Everything that can't be read is refused with file, document number and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from ome.api import OmeError, Problem

__all__ = ["Document", "UnreadableInput", "read_documents"]

# libyaml where PyYAML was built with it, else the ten times slower parser in Python.
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_PLAIN: Final = "plain"
_STRING: Final = "string"

# A manifest is at most 1.5 MiB in a cluster; its nodes can't be more than this.
MAX_NODES: Final = 200_000
MAX_DEPTH: Final = 100
_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*|0[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


class UnreadableInput(OmeError):
    """The input can't be used as a whole."""


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document of a text; `number` counts from 1 and `line` is where it begins."""

    value: Any
    file: str
    number: int
    line: int
    node: yaml.Node | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """The document's place, for messages."""
        return place(self.file, self.number, self.line)

    def where_of(self, path: Iterable[str | int]) -> str:
        """The place of a field in it, or of the nearest parent that stands in the text."""
        return place(self.file, self.number, self.line_of(path))

    def line_of(self, path: Iterable[str | int]) -> int:
        """The line of a field in it, or of the nearest parent that stands in the text."""
        node, line = self.node, self.line
        for step in path:
            node = _child(node, step)
            if node is None:
                break
            line = node.start_mark.line + 1
        return line


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    if isinstance(node, yaml.MappingNode):
        found = [value for key, value in node.value if key.value == step]
        return found[-1] if found else None
    return None


def place(file: str, number: int, line: int) -> str:
    """A place in the input, for messages."""
    return f"{file}: document {number}, line {line}"


def _refuse(code: str, message: str, where: str, fix: str = "") -> UnreadableInput:
    return UnreadableInput(Problem(code, message, where=where, fix=fix))


def read_documents(data: bytes, file: str) -> Iterator[Document]:
    """The documents of a file's bytes; empty ones are left out. Raises UnreadableInput."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = f"byte 0x{data[error.start]:02x} is not UTF-8 text"
        raise _refuse("NotUtf8", text, f"{file}: line {line}", "save the file as UTF-8") from None
    if text.lstrip()[:1] in ("{", "["):
        yield from _read_json(text, file)
    else:
        yield from _read_yaml(text, file)


def _read_json(text: str, file: str) -> Iterator[Document]:
    """One JSON document, or several one after the other as `kubectl` takes them."""
    at, number = 0, 0
    decoder = json.JSONDecoder(object_pairs_hook=_unique_pairs, parse_constant=_no_constant)
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return
        number += 1
        line = text.count("\n", 0, at) + 1
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            if number == 1 and not file.endswith(".json"):
                yield from _read_yaml(text, file)  # a YAML flow mapping begins with a brace too
                return
            raise _refuse(
                "JsonSyntax", f"not valid JSON: {error.msg}", place(file, number, error.lineno)
            ) from None
        except (ValueError, RecursionError) as error:
            text = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
            raise _refuse("JsonSyntax", text, place(file, number, line)) from None
        _check_json(value, place(file, number, line))
        yield Document(value, file, number, line)


def _check_json(value: Any, where: str, depth: int = 0) -> None:
    """JSON that is as deep as YAML may be, and whose strings are text."""
    if depth > MAX_DEPTH:
        raise _refuse("JsonDepth", f"it is nested more than {MAX_DEPTH} levels deep", where)
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, where, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, where)
            _check_json(item, where, depth + 1)


def _check_text(text: str, where: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise _refuse(
            "NotText", "a string holds half of a surrogate pair", where, "write whole characters"
        )


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f'key "{key}" stands twice in one object')
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


class _Composer(_Loader):  # type: ignore[misc]
    """Composes nodes without deciding what plain scalars mean: that is done here, not by tags."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """Plain scalars are marked as such; quoted ones are strings; collections have no tag."""
        if kind is not yaml.ScalarNode:
            return ""
        return _PLAIN if implicit[0] else _STRING


def _read_yaml(text: str, file: str) -> Iterator[Document]:
    number, line = 0, 1
    try:
        loader = _Composer(text)
        while loader.check_node():
            node = loader.get_node()
            number += 1
            line = node.start_mark.line + 1
            value = _Reader(file, number).read(node)
            if value is not None:
                yield Document(value, file, number, line, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else line
        raise _syntax_error(error, text, place(file, number + 1, line), line) from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", None) or str(error)
        raise _refuse(
            "YamlSyntax", f"not valid YAML: {reason}", place(file, number + 1, line)
        ) from None
    except RecursionError:
        raise _refuse(
            "YamlDepth", "it is nested too deeply", place(file, number + 1, line)
        ) from None


def _syntax_error(error: yaml.MarkedYAMLError, text: str, where: str, line: int) -> UnreadableInput:
    source = text.split("\n")[line - 1 : line] or [""]
    if "\t" in source[0][: len(source[0]) - len(source[0].lstrip())]:
        return _refuse(
            "YamlTab", "a tab indents this line", where, "YAML is indented with spaces only"
        )
    parts = [part for part in (error.context, error.problem) if part]
    return _refuse("YamlSyntax", f"not valid YAML: {', '.join(parts)}", where)


class _Reader:
    """Builds the JSON value of one document's nodes, within the bounds."""

    def __init__(self, file: str, number: int) -> None:
        self._file, self._number = file, number
        self._nodes = 0

    def _fail(self, code: str, message: str, node: yaml.Node, fix: str = "") -> UnreadableInput:
        where = place(self._file, self._number, node.start_mark.line + 1)
        return _refuse(code, message, where, fix)

    def read(self, node: yaml.Node, depth: int = 0) -> Any:
        """The JSON value of a node."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            text = f"the document has more than {MAX_NODES:,} values once its aliases are expanded"
            raise self._fail("AliasBomb", text, node)
        if depth > MAX_DEPTH:
            raise self._fail("YamlDepth", f"it is nested more than {MAX_DEPTH} levels deep", node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag:
            raise self._fail("YamlTag", f'the tag "{node.tag}" is not JSON', node, "remove the tag")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        return [self.read(item, depth + 1) for item in node.value]

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                merged = {**self._merge_key(value_node, depth), **merged}
                continue
            key = self._key(key_node)
            if key in result:
                text = f'key "{key}" stands twice in one mapping'
                raise self._fail("DuplicateKey", text, key_node, "keep one of them")
            result[key] = self.read(value_node, depth + 1)
        return {**merged, **result} if merged else result

    def _merge_key(self, node: yaml.Node, depth: int) -> dict[str, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in parts:
            value = self.read(part, depth + 1)
            if not isinstance(value, dict):
                raise self._fail("YamlMerge", "<< takes a mapping or a list of mappings", node)
            merged = {**value, **merged}
        return merged

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fail("YamlKey", "a key must be a string", node)
        return str(node.value)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        _check_text(text, place(self._file, self._number, node.start_mark.line + 1))
        if node.tag == _STRING or node.tag == "tag:yaml.org,2002:str":
            return text
        if node.tag != _PLAIN:
            raise self._fail("YamlTag", f'the tag "{node.tag}" is not JSON', node, "remove the tag")
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in "+-.0123456789":
            return text
        try:
            return _number(text)
        except ValueError as error:
            raise self._fail("YamlNumber", str(error), node, "quote it if it is text") from None


def _number(text: str) -> Any:
    """The number that a plain scalar is, or the text itself. Raises ValueError for `.inf`, `.nan`."""
    if _INT.fullmatch(text):
        bare = text.replace("_", "")
        if re.fullmatch(r"[-+]?0[0-7]+", bare):
            return int(bare, 8)
        if len(bare) > 40:
            raise ValueError(f"{text[:20]}… is too large a number")
        return int(bare, 0)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise ValueError(f"{text} is too large a number")
        return value
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a JSON number")
    return text
