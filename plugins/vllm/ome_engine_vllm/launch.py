"""How vLLM's server is launched: which commands and images are vLLM's."""

from __future__ import annotations

from typing import Final

from ome.engines.kit import Server
from ome_engine_vllm.flags import TABLE

__all__ = ["API_MODULE", "GRPC_MODULE", "RAY", "SERVER"]

API_MODULE: Final = "vllm.entrypoints.openai.api_server"
GRPC_MODULE: Final = "vllm.entrypoints.grpc_server"

SERVER: Final = Server(
    name="vLLM",
    table=TABLE,
    modules=(API_MODULE, "vllm.entrypoints.launchers.api_server.entry", GRPC_MODULE),
    commands=(("vllm", "serve"),),
    image=r"vllm-openai(?:-(?:cpu|rocm|xpu))?",
    tag=r"v?(\d+\.\d+\.\d+(?:\.\d+)?(?:\.post\d+|rc\d+)?)(?=[-_+]|$)",
    # Tags of the other builders' images number their own releases.
    other_image=r"vllm|llm-d-(?:cpu|cuda|rocm|xpu)",
    image_runs=True,
)
"""vLLM's server. The images of vLLM's own start it by themselves."""

RAY: Final = Server(name="Ray", table=TABLE, commands=(("ray", "start"),), config="")
"""A node of the Ray cluster that a server of several nodes runs on."""
