"""From a plain dict to an API object, and back.

Manifests come from people: a fault is told by its field path and in plain words, every fault at
once, so that nobody has to fix and retry one line at a time.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ome.api.acceleratorclass import AcceleratorClass
from ome.api.base import API_VERSION, ApiObject
from ome.api.basemodel import BaseModel, ClusterBaseModel
from ome.api.directives import (
    DELETE,
    PATCH,
    directive_faults,
    has_directives,
    is_directive,
    without_directives,
)
from ome.api.inferenceservice import InferenceService
from ome.api.path import field_path
from ome.api.problems import ObjectRef, OmeError, Problem
from ome.api.servingruntime import ClusterServingRuntime, ServingRuntime

__all__ = ["KINDS", "InvalidObject", "dump", "parse"]

KINDS: Final[dict[str, type[ApiObject]]] = {
    each.KIND: each
    for each in (
        AcceleratorClass,
        BaseModel,
        ClusterBaseModel,
        ClusterServingRuntime,
        InferenceService,
        ServingRuntime,
    )
}

_LONGEST_VALUE: Final = 60


class InvalidObject(OmeError):
    """The object cannot be read; carries one problem a fault, code `SchemaInvalid` or, for a
    directive, `DirectiveInvalid`."""


def parse(raw: dict[str, Any]) -> ApiObject:
    """Read one object of `ome.io/v1beta1`.

    Takes the object as JSON data, which the result keeps by reference and nobody changes. Unknown
    fields are kept; a null counts as an absent field. Returns an instance of the class that `KINDS`
    names for its kind.

    Raises `InvalidObject` with every fault found, in the order of the type's fields, and then those
    of its directives.
    Source: OME API reference v1.3 (spec: api.md 1 to 8).
    """
    faults = _identity_faults(raw)
    if faults:
        raise InvalidObject(*faults)
    kind = KINDS[raw["kind"]]
    patched = has_directives(raw)
    faults = _directive_problems(raw) if patched else []
    try:
        read = kind.model_validate(raw)
    except ValidationError as error:
        details = error.errors(include_url=False)
        wrong = [each for each in details if not (patched and _is_excused(each, raw))]
        faults = [*(_problem(each, raw) for each in wrong), *faults]
        if not faults:
            read = kind.model_validate({**raw, "spec": without_directives(raw["spec"])})
    if faults:
        raise InvalidObject(*faults)
    read._raw = raw
    vars(read)["has_directives"] = patched  # the cached property, which is known by now
    return read


def dump(obj: ApiObject) -> dict[str, Any]:
    """The object as JSON data, equal to what was parsed: no default added, nothing unknown lost."""
    if obj.has_directives:
        copied: dict[str, Any] = _copied(obj.raw)
        return copied
    return obj.model_dump(by_alias=True, exclude_unset=True)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _directive_problems(raw: dict[str, Any]) -> list[Problem]:
    ref = _ref(raw)
    return [
        Problem("DirectiveInvalid", text, ref, field_path(path), fix)
        for path, text, fix in directive_faults(raw["kind"], raw)
    ]


def _is_excused(detail: ErrorDetails, raw: dict[str, Any]) -> bool:
    """Whether the type finds fault with a directive, or with what an object that only removes
    leaves out."""
    path = [step for step in detail["loc"] if step != "[key]"]
    if path[:1] != ["spec"]:
        return False
    if any(is_directive(step) for step in path):
        return True
    if detail["type"] != "missing":
        return False
    holder: Any = raw
    for step in path[:-1]:
        holder = holder[step]
    in_list = len(path) > 1 and isinstance(path[-2], int)
    return isinstance(holder, dict) and (
        holder.get(PATCH) is not None if in_list else holder.get(PATCH) == DELETE
    )


def _identity_faults(raw: object) -> list[Problem]:
    """What is wrong with the object before its kind is known."""
    if not isinstance(raw, dict):
        return [Problem("SchemaInvalid", f"must be an object, not {_named(raw)}")]
    ref = _ref(raw)
    faults = []
    version, kind = raw.get("apiVersion"), raw.get("kind")
    if version is None:
        faults.append(_fault(ref, "apiVersion", "required", f"set it to {API_VERSION}"))
    elif version != API_VERSION:
        faults.append(_fault(ref, "apiVersion", f"must be {API_VERSION}, not {_shown(version)}"))
    if kind is None:
        faults.append(_fault(ref, "kind", "required", f"one of {', '.join(KINDS)}"))
    elif not isinstance(kind, str) or kind not in KINDS:
        message = f"must be one of {', '.join(KINDS)}; not {_shown(kind)}"
        faults.append(_fault(ref, "kind", message, suggestion(kind, KINDS)))
    return faults


def _fault(ref: ObjectRef | None, path: str, message: str, fix: str = "") -> Problem:
    return Problem("SchemaInvalid", message, ref=ref, path=path, fix=fix)


def _ref(raw: dict[str, Any]) -> ObjectRef | None:
    """The identity of an object that may be invalid; none where it has no kind or no name."""
    kind, metadata = raw.get("kind"), raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(kind, str) or not isinstance(name, str):
        return None
    namespace = metadata.get("namespace")
    known = KINDS.get(kind)
    if not isinstance(namespace, str) or (known is not None and not known.NAMESPACED):
        namespace = ""
    return ObjectRef(kind, namespace, name)


def suggestion(wrong: object, known: Any) -> str:
    """`did you mean "x"?` for the nearest known word; empty where none is near."""
    near = difflib.get_close_matches(str(wrong), known, n=1, cutoff=0.72)
    return f'did you mean "{near[0]}"?' if near else ""


def _named(value: object) -> str:
    """A value's JSON type with its article, and the value itself where it is a scalar."""
    if value is None:
        return "null"
    words = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    word = words.get(type(value), "a date")
    return word if isinstance(value, dict | list) else f"{word} ({_shown(value)})"


def _shown(value: object) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _problem(detail: ErrorDetails, raw: dict[str, Any]) -> Problem:
    explain = _EXPLAIN.get(detail["type"], _explain_other)
    if detail["loc"] and detail["loc"][-1] == "[key]":
        explain = _explain_key
    message, fix = explain(detail)
    return _fault(_ref(raw), field_path(detail["loc"]), message, fix)


_Told = tuple[str, str]


def _wrong_type(expected: str) -> Callable[[ErrorDetails], _Told]:
    def explain(detail: ErrorDetails) -> _Told:
        value = detail["input"]
        return f"must be {expected}, not {_named(value)}", _type_fix(expected, value)

    return explain


def _type_fix(expected: str, value: object) -> str:
    """How to write the value so that it has the expected type, if that is a matter of quotes."""
    scalar = (bool, int, float) if expected == "a string" else float
    if "string" in expected and isinstance(value, scalar):
        return f"quote it: {json.dumps(json.dumps(value))}"
    if "string" in expected and isinstance(value, date):
        return "quote it: YAML reads it as a date"
    if expected == "an integer" and isinstance(value, str) and value.strip("-").isdecimal():
        return f"write {value} without quotes"
    if expected == "a boolean" and value in ("true", "false"):
        return f"write {value} without quotes"
    return ""


def _explain_missing(detail: ErrorDetails) -> _Told:
    return "required", ""


def _explain_choice(detail: ErrorDetails) -> _Told:
    if not isinstance(detail["input"], str):
        return _wrong_type("a string")(detail)
    words = [
        each.strip("'") for each in detail["ctx"]["expected"].replace(" or ", ", ").split(", ")
    ]
    value = detail["input"]
    return f"must be one of {', '.join(words)}; not {_shown(value)}", suggestion(value, words)


def _explain_bound(word: str, key: str) -> Callable[[ErrorDetails], _Told]:
    def explain(detail: ErrorDetails) -> _Told:
        return f"must be {word} {detail['ctx'][key]}, not {_shown(detail['input'])}", ""

    return explain


def _explain_length(detail: ErrorDetails) -> _Told:
    context = detail["ctx"]
    unit = "character" if detail["type"].startswith("string") else "item"
    word, count = (
        ("at least", context["min_length"])
        if "min_length" in context
        else ("at most", context["max_length"])
    )
    return f"must have {word} {count} {unit}{'' if count == 1 else 's'}", ""


def _explain_key(detail: ErrorDetails) -> _Told:
    return f"its key must be a string, not {_named(detail['input'])}", _type_fix(
        "a string", detail["input"]
    )


def _explain_quantity(detail: ErrorDetails) -> _Told:
    return f"{_shown(detail['input'])} is not a quantity", ""


def _explain_name(detail: ErrorDetails) -> _Told:
    return (
        f"{_shown(detail['input'])} is not a valid name",
        "use at most 253 lowercase letters, digits, - and ., starting and ending with a letter"
        " or a digit",
    )


def _explain_operation(detail: ErrorDetails) -> _Told:
    return detail["ctx"]["message"], detail["ctx"]["fix"]


def _explain_other(detail: ErrorDetails) -> _Told:
    return f"is not valid: {_named(detail['input'])}", ""


_EXPLAIN: Final[Mapping[str, Callable[[ErrorDetails], _Told]]] = {
    "bool_type": _wrong_type("a boolean"),
    "dict_type": _wrong_type("an object"),
    "dns_name": _explain_name,
    "greater_than_equal": _explain_bound("at least", "ge"),
    "int_or_string": _wrong_type("an integer or a string"),
    "int_type": _wrong_type("an integer"),
    "invalid_key": _explain_key,
    "less_than_equal": _explain_bound("at most", "le"),
    "list_type": _wrong_type("a list"),
    "literal_error": _explain_choice,
    "missing": _explain_missing,
    "operation": _explain_operation,
    "model_type": _wrong_type("an object"),
    "quantity": _explain_quantity,
    "string_too_long": _explain_length,
    "string_too_short": _explain_length,
    "string_type": _wrong_type("a string"),
    "too_long": _explain_length,
    "too_short": _explain_length,
}
