"""Presets and their parameters as plugins give them."""

from __future__ import annotations

from typing import Any

import pytest

from ome.engines import Parameter, ParameterType, Preset
from ome.engines.presets import check_preset, parameter_value

STRING, INTEGER, PORT, BOOLEAN = ParameterType


def one(name: Any = "n", default: Any = "x", text: Any = "a", kind: Any = STRING) -> Preset:
    return Preset("p", "{}", (Parameter(name, default, text, kind),))


@pytest.mark.parametrize(
    ("preset", "fault"),
    [
        (Preset("p", "{}"), ""),
        (Preset("vllm-pd.v2", "{}"), ""),
        (one(), ""),
        (one(default=80, kind=PORT), ""),
        (one(default=-5, kind=INTEGER), ""),
        (one(default=True, kind=BOOLEAN), ""),
        (Preset("PD", "{}"), r"its name 'PD' must match [a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?"),
        (Preset("", "{}"), r"its name '' must match [a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?"),
        (Preset("p", " \n"), "its template is no text"),
        (Preset("p", b"{}"), "its template is no text"),  # type: ignore[arg-type]
        (Preset("p", "x" * 40_000), "its template has more than 32,768 characters"),
        (Preset("p", "{}", [1]), "its parameters are no tuple"),  # type: ignore[arg-type]
        (Preset("p", "{}", ("x",)), "one of its parameters is no Parameter"),  # type: ignore[arg-type]
        (
            Preset("p", "{}", (Parameter("a", "", "x"), Parameter("a", "", "x"))),
            "its parameter a stands twice",
        ),
        (
            one(name="http_port"),
            r"the name 'http_port' of its parameter must match [a-z]([-a-z0-9]{0,61}[a-z0-9])?",
        ),
        (one(kind="string"), "the type of its parameter n is no ParameterType"),
        (one(text=""), "its parameter n has no description"),
        (
            one(default=0, kind=PORT),
            'the default of its parameter n: "0" is no port, a number from 1 to 65535',
        ),
        (one(default="80", kind=PORT), "the default of its parameter n is mistyped"),
        (one(default=80), "the default of its parameter n is mistyped"),
        (one(default="true", kind=BOOLEAN), "the default of its parameter n is mistyped"),
    ],
)  # fmt: skip
def test_check_preset(preset: Preset, fault: str) -> None:
    assert check_preset(preset) == fault


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (STRING, "lmsysorg/sglang:latest", "lmsysorg/sglang:latest"),
        (STRING, "a: b", "a: b"),
        (STRING, "a\nb", ValueError),
        (STRING, "x" * 1025, ValueError),
        (INTEGER, "-12", -12),
        (INTEGER, "0", 0),
        (INTEGER, "007", ValueError),
        (INTEGER, "1e3", ValueError),
        (INTEGER, "9" * 19, ValueError),
        (PORT, "1", 1),
        (PORT, "65535", 65535),
        (PORT, "65536", ValueError),
        (PORT, "0", ValueError),
        (PORT, "http", ValueError),
        (PORT, " 80", ValueError),
        (PORT, "٣٠", ValueError),
        (PORT, "080", ValueError),
        (BOOLEAN, "true", True),
        (BOOLEAN, "false", False),
        (BOOLEAN, "True", ValueError),
        (BOOLEAN, "1", ValueError),
    ],
)
def test_parameter_value(kind: ParameterType, text: str, value: Any) -> None:
    parameter = Parameter("n", "", "a", kind)
    if value is ValueError:
        with pytest.raises(ValueError):
            parameter_value(parameter, text)
    else:
        found = parameter_value(parameter, text)
        assert (found, type(found)) == (value, type(value))
