"""Placeholders: `{{.Name}}` and its kin, filled from the InferenceService's metadata.

Exactly the documented forms are ours: text in `{{ }}` that starts with `.`, `index` or a string
literal. Of those, anything else is an error with its position. Every other `{{ … }}` or `{% … %}`,
an inline chat template say, passes through unchanged and is reported as foreign. Values are put in as
plain text, once: what comes out is never expanded again. Source: OME serving-runtimes document
(v1.3), "Placeholders"; docs/compatibility.md for what passes through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Context", "MalformedPlaceholder", "expand", "expand_text"]

NO_VALUE = "<no value>"
_FORMS = "{{.Name}}, {{.Namespace}}, {{.Labels.key}}, {{.Annotations.key}}, {{index .Labels `key`}}"

# An opening brace pair that is ours, by what follows it; a `-` is a trim mark only before a blank.
_OURS = re.compile(r"\{\{(?P<trim>-(?=\s))?\s*(?=\.|index\b|\"|`)")
_FOREIGN = re.compile(r"\{\{|\{%")
_BODY = re.compile(
    r"""(?:
        \.(?P<field>Name|Namespace)
      | \.(?P<map>Labels|Annotations)\.(?P<key>[^\W\d]\w*)
      | index\s+\.(?P<imap>Labels|Annotations)\s+(?:`(?P<raw>[^`]*)`|"(?P<quoted>[^"\\]*)")
      | (?:"(?P<lit>\{\{|\}\})"|`(?P<rawlit>\{\{|\}\})`)
    )(?P<end>\s*(?:(?<=\s)-)?\}\})""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Context:
    """What placeholders can name: the InferenceService's own metadata."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class MalformedPlaceholder(Exception):
    """A placeholder that is none of the documented forms.

    `path` is the field, such as `args[0]`; `offset` the position of its braces, counted from 1.
    """

    def __init__(self, text: str, offset: int, reason: str, hint: str = "") -> None:
        super().__init__(text, offset, reason, hint)
        self.text, self.offset, self.reason, self.hint = text, offset, reason, hint
        self.path = ""

    def __str__(self) -> str:
        return f"malformed placeholder {self.text} at character {self.offset}: {self.reason}"


def expand(value: Any, context: Context, foreign: list[str], path: str = "") -> Any:
    """Fill the placeholders in every string of a JSON value.

    Returns the value itself where nothing changes. Appends to `foreign` the paths of strings with
    template text that isn't ours. Raises MalformedPlaceholder with `path` set.
    """
    if isinstance(value, str):
        if "{" not in value:
            return value
        return _expand_at(value, context, foreign, path)
    if isinstance(value, dict):
        items = {
            k: expand(v, context, foreign, f"{path}.{k}" if path else k) for k, v in value.items()
        }
        return items if any(items[k] is not value[k] for k in value) else value
    if isinstance(value, list):
        new = [expand(v, context, foreign, f"{path}[{i}]") for i, v in enumerate(value)]
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


def _expand_at(value: str, context: Context, foreign: list[str], path: str) -> str:
    try:
        text, has_foreign = expand_text(value, context)
    except MalformedPlaceholder as error:
        error.path = path
        raise
    if has_foreign:
        foreign.append(path)
    return text


def expand_text(text: str, context: Context) -> tuple[str, bool]:
    """Fill the placeholders of one string; also says whether other template text stands in it."""
    if not _FOREIGN.search(text):
        return text, False
    pieces = list(_pieces(text, context))
    return "".join(piece for piece, _ in pieces), any(is_foreign for _, is_foreign in pieces)


def _pieces(text: str, context: Context) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is plain text that holds foreign template marks."""
    at = 0
    trim_next = False
    while True:
        opening = _OURS.search(text, at)
        plain = text[at : opening.start() if opening else len(text)]
        if trim_next:
            plain = plain.lstrip()
        if opening is not None and opening["trim"]:
            plain = plain.rstrip()
        yield plain, bool(_FOREIGN.search(plain))
        if opening is None:
            return
        body = _BODY.match(text, opening.end())
        if body is None:
            raise _malformed(text, opening)
        yield _value(body, context), False
        at = body.end()
        trim_next = "-" in body["end"]


def _value(body: re.Match[str], context: Context) -> str:
    if body["field"]:
        return context.name if body["field"] == "Name" else context.namespace
    which = body["map"] or body["imap"]
    if which is None:
        return body["lit"] or body["rawlit"]
    mapping = context.labels if which == "Labels" else context.annotations
    if body["map"]:
        return mapping.get(body["key"], NO_VALUE)
    return mapping.get(body["raw"] if body["raw"] is not None else body["quoted"], "")


_LONG_FIELD = re.compile(r"\.(Labels|Annotations)\.([^\s}]+)\s*-?\}\}")


def _malformed(text: str, opening: re.Match[str]) -> MalformedPlaceholder:
    close = text.find("}}", opening.end())
    offset = opening.start() + 1
    if close < 0:
        shown = text[opening.start() : opening.start() + 40]
        return MalformedPlaceholder(shown, offset, "it has no closing }}", "close it with }}")
    shown = text[opening.start() : close + 2]
    keyed = _LONG_FIELD.match(text, opening.end())
    if keyed:
        which, key = keyed.groups()
        bad = re.search(r"\W", key)
        but = f'not "{bad.group()}"' if bad else "and no digit first"
        reason = f'the field form takes letters, digits and "_", {but}'
        return MalformedPlaceholder(shown, offset, reason, f"write {{{{index .{which} `{key}`}}}}")
    return MalformedPlaceholder(
        shown, offset, "it is none of the documented forms", f"use {_FORMS}"
    )
