"""The conformance suite on the vLLM plugin."""

from ome.engines import Basis, Container
from ome.testing.conformance import Conformance, Example, Rewrite
from ome_engine_vllm import plugin

SERVE = ("vllm", "serve", "/models/x")
API = ("python3", "-m", "vllm.entrypoints.openai.api_server")


class TestConformance(Conformance):
    plugin = plugin
    entry_point = "vllm"
    examples = (
        Example(Container("vllm/vllm-openai:v0.33.0", SERVE), "0.33.0", basis=Basis.COMMAND),
        Example(Container("vllm/vllm-openai:v0.9.0.1", API), "0.9.0.1", basis=Basis.COMMAND),
        Example(
            Container("vllm/vllm-openai:v0.20.1-cu129", (), ("/models/x", "-tp", "8")),
            "0.20.1",
            basis=Basis.IMAGE,
        ),
        Example(Container("own:latest", (*SERVE, "--tensor_parallel_size=8"))),
        Example(
            Container("vllm/vllm-openai:latest", ("bash", "-c", "ray start --head; vllm serve m")),
            is_opaque=True,
        ),
        Example(
            Container("vllm/vllm-openai:latest", ("ray", "start", "--block")),
            is_opaque=True,
            basis=Basis.IMAGE,
        ),
    )
    foreign = (
        Container("lmsysorg/sglang:v0.5.23", ("python3", "-m", "sglang.launch_server")),
        Container("lightseekorg/tokenspeed:0.1.1", ("ts", "serve")),
        Container("vllm/vllm-router:v0.1.17", ("vllm-router", "--policy", "round_robin")),
        Container("rayproject/ray:2.50.0", ("ray", "start", "--block")),
    )
    rewrites = (
        Rewrite(["--tensor-parallel-size=4", "m"], 8, ["--tensor-parallel-size=8", "m"], 4),
        Rewrite(["--tensor-parallel-size", "4"], 8, ["--tensor-parallel-size", "8"], 4),
        Rewrite(["--tensor_parallel_size", "4"], 8, ["--tensor_parallel_size", "8"], 4),
        Rewrite(["-tp", "4"], 8, ["-tp", "8"], 4),
        Rewrite(["-tp=4"], 8, ["-tp=8"], 4),
    )
