"""The conformance suite on the SGLang plugin."""

from ome.engines import Basis, Container
from ome.testing.conformance import Conformance, Example, Rewrite
from ome_engine_sglang import plugin

LAUNCH = ("python3", "-m", "sglang.launch_server")


class TestConformance(Conformance):
    plugin = plugin
    entry_point = "sglang"
    examples = (
        Example(Container("lmsysorg/sglang:v0.5.23-cu130", LAUNCH), "0.5.23", basis=Basis.COMMAND),
        Example(
            Container("lmsysorg/sglang:v0.5.5.post3-cu129-amd64"), "0.5.5.post3", basis=Basis.IMAGE
        ),
        Example(Container("own:latest", ("sglang", "serve", "/models/x", "--tp-size=8"))),
        Example(
            Container(
                "lmsysorg/sglang:latest", ("bash", "-c", "a; python3 -m sglang.launch_server")
            ),
            is_opaque=True,
        ),
    )
    foreign = (
        Container("vllm/vllm-openai:v0.33.0", ("vllm", "serve")),
        Container("lightseekorg/tokenspeed:0.1.1", ("ts", "serve")),
        Container(
            "lmsysorg/sgl-model-gateway:v0.3.2", ("python3", "-m", "sglang_router.launch_router")
        ),
    )
    rewrites = (
        Rewrite(["--tp-size=4", "--port=1"], 8, ["--tp-size=8", "--port=1"], 4),
        Rewrite(["--tp-size", "4", "--port=1"], 8, ["--tp-size", "8", "--port=1"], 4),
        Rewrite(["--tensor-parallel-size", "4"], 8, ["--tensor-parallel-size", "8"], 4),
    )
