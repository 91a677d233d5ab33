"""Field paths as text, the same everywhere a problem is told."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["field_path"]


def field_path(steps: Iterable[int | str]) -> str:
    """A path from its steps: names joined by dots, indexes and keys with a dot in brackets.

    `("spec", "resources", "limits", "nvidia.com/gpu")` gives
    `spec.resources.limits[nvidia.com/gpu]`, and an integer step `[0]`.
    """
    text = ""
    for step in steps:
        if step == "[key]":
            continue
        if (
            isinstance(step, int)
            or not step
            or not step.removeprefix("$").replace("_", "").replace("-", "").isalnum()
        ):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
