"""Field paths as text."""

from __future__ import annotations

import pytest

from ome.api.path import field_path


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((), ""),
        (("spec",), "spec"),
        (("spec", "env", 0, "name"), "spec.env[0].name"),
        (("limits", "nvidia.com/gpu"), "limits[nvidia.com/gpu]"),
        (("labels", "my-key_2"), "labels.my-key_2"),
        (("labels", ""), "labels[]"),
        (("env", 0, "$patch"), "env[0].$patch"),
        (("$deleteFromPrimitiveList/args",), "[$deleteFromPrimitiveList/args]"),
        (("labels", 1, "[key]"), "labels[1]"),
    ],
)
def test_field_path(steps: tuple[int | str, ...], text: str) -> None:
    assert field_path(steps) == text
