"""How TokenSpeed's server is launched: which commands and images are TokenSpeed's, and what they start."""

from __future__ import annotations

from typing import Final

from ome.engines.kit import CommandLine, Server
from ome_engine_tokenspeed.flags import TABLE

__all__ = ["SERVER", "WORKER_MODULE", "has_gateway", "is_follower", "is_headless"]

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


def is_headless(line: CommandLine) -> bool:
    """Whether it is an engine that listens nowhere: it calls a frontend elsewhere."""
    return line.launch.is_serve and line.has("--headless")


def is_follower(line: CommandLine) -> bool:
    """Whether it is known to be a server of another node than the first."""
    return line.number("--node-rank", 0) not in (0, None)


def has_gateway(line: CommandLine) -> bool:
    """Whether a gateway is started in front of the engine, as far as is known."""
    return line.launch.is_serve and not is_headless(line) and not is_follower(line)
