"""`argsPatch`: edits of an argument list, one operation an item. docs/merging.md says what they do."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic_core import PydanticCustomError

__all__ = ["ARGS_PATCH", "ARGS_PATCH_SCHEMA", "check_operation"]

ARGS_PATCH: Final = "argsPatch"

ARGS_PATCH_SCHEMA: Final[dict[str, Any]] = {
    "type": "array",
    "x-kubernetes-list-type": "atomic",
    "items": {
        "type": "object",
        "maxProperties": 1,
        "minProperties": 1,
        "properties": {
            "append": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "set": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": "string", "minLength": 1},
                },
                "required": ["name"],
            },
            "unset": {"type": "string"},
        },
    },
}

_FLAG: Final = re.compile(r"--?[A-Za-z][^\s=]*")
_FORMS: Final = "write one of set: {name: --flag, value: x}, unset: --flag, append: [words]"


def check_operation(value: object) -> object:
    """The operation itself. Raises PydanticCustomError `operation` with what is wrong and a fix."""
    if not isinstance(value, dict):
        raise _fault("must be an object with one operation", _FORMS)
    names = [name for name, item in value.items() if item is not None]
    if len(names) != 1:
        raise _fault("must hold exactly one operation", _FORMS)
    (name,) = names
    check = _CHECKS.get(name)
    if check is None:
        raise _fault(f'"{name}" is no operation', _FORMS)
    check(value[name])
    return value


def _fault(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("operation", "{message}", {"message": message, "fix": fix})


def _check_set(value: object) -> None:
    if not isinstance(value, dict) or not {"name"} <= value.keys() <= {"name", "value"}:
        raise _fault("set must be an object with name and perhaps value", _FORMS)
    _check_flag("set.name", value["name"])
    if not isinstance(value.get("value"), str | None):
        raise _fault("set.value must be a string", "quote it")
    if value.get("value") == "":  # it would say nothing, as everywhere in a layer
        fix = "leave value out for a bare flag, or append the flag with ="
        raise _fault("set.value must not be empty", fix)


def _check_unset(value: object) -> None:
    _check_flag("unset", value)


def _check_append(value: object) -> None:
    if not isinstance(value, list) or not value or not all(isinstance(w, str) for w in value):
        raise _fault("append must be a list of words, at least one", "quote numbers and booleans")


def _check_flag(where: str, flag: object) -> None:
    if not isinstance(flag, str) or not _FLAG.fullmatch(flag):
        fix = "write the flag with its dashes and without its value, such as --max-len"
        raise _fault(f"{where} must be a flag", fix)


_CHECKS: Final = {"set": _check_set, "unset": _check_unset, "append": _check_append}
