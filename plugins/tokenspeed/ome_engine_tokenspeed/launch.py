"""How TokenSpeed's server is launched: which commands and images are TokenSpeed's."""

from __future__ import annotations

from typing import Final

from ome.engines.kit import Server
from ome_engine_tokenspeed.flags import TABLE

__all__ = ["SERVER", "WORKER_MODULE"]

WORKER_MODULE: Final = "smg_grpc_servicer.tokenspeed"
"""An engine alone, which speaks gRPC to a gateway elsewhere: prefill and decode workers."""

SERVER: Final = Server(
    name="TokenSpeed",
    table=TABLE,
    modules=(WORKER_MODULE,),
    commands=(("tokenspeed", "serve"), ("ts", "serve")),
    image=r"tokenspeed(?:-amd)?",
    config="",
)
