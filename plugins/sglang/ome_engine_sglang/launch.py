"""How SGLang's server is launched, and which words are its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ome.engines import kit
from ome.engines.kit import COMPUTED, WRAPPED, Launch, Server
from ome_engine_sglang.flags import TABLE

__all__ = ["COMPUTED", "SERVER", "WRAPPED", "Launch", "read_launch"]

SERVER: Final = Server(
    name="SGLang",
    table=TABLE,
    modules=("sglang.launch_server",),
    commands=(("sglang", "serve"),),
    # The image's name as SGLang and the hardware vendors give it. Others that start so
    # (`sglang-router`, Dynamo's `sglang-runtime`) hold something else.
    image=r"sglang(?:-(?:ascend|cpu|cuda|musa|npu|rocm|xpu))?",
)


def read_launch(argv: Sequence[str]) -> Launch | None:
    """The launch of SGLang's server, or None when something else runs."""
    return kit.read_launch(SERVER, argv)
