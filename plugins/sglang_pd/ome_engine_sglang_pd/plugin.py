"""The hooks of prefill-decode serving with SGLang: a preset, and nothing else.

Containers of the preset run SGLang's server, so the SGLang plugin recognises and checks them.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ome.engines import CONTRACT, EngineInfo, Parameter, ParameterType, Preset, hookimpl

PARAMETERS: Final = (
    Parameter("image", "lmsysorg/sglang:latest", "image of the engine and the decoder"),
    Parameter("router-image", "lmsysorg/sglang-router:latest", "image of the router"),
    Parameter(
        "http-port", 30000, "port of the engine's and the decoder's HTTP server", ParameterType.PORT
    ),
    Parameter("bootstrap-port", 8998, "port of the engine's bootstrap server", ParameterType.PORT),
    Parameter("router-port", 30080, "port of the router's HTTP server", ParameterType.PORT),
    Parameter(
        "transfer-backend", "nixl", "what carries the KV cache from the engine to the decoder"
    ),
)
# Read at import, so that the hook itself does no I/O.
PRESET: Final = Preset(
    name="sglang-pd",
    template=files("ome_engine_sglang_pd").joinpath("preset.yaml.j2").read_text("utf-8"),
    parameters=PARAMETERS,
    summary="a prefill engine, a decode decoder and a router that finds them",
)


@hookimpl
def ome_describe() -> EngineInfo:
    """The plugin's name and contract."""
    return EngineInfo("sglang-pd", CONTRACT, "Prefill-decode serving with SGLang, as a preset")


@hookimpl
def ome_presets() -> list[Preset]:
    """The preset `sglang-pd`."""
    return [PRESET]
