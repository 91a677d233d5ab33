"""The conformance suite on the TokenSpeed plugin."""

from ome.engines import Basis, Container
from ome.testing.conformance import Conformance, Example, Rewrite
from ome_engine_tokenspeed import plugin


class TestConformance(Conformance):
    plugin = plugin
    entry_point = "tokenspeed"
    examples = (
        Example(
            Container("lightseekorg/tokenspeed:0.1.1", ("tokenspeed", "serve", "m")),
            "0.1.1",
            basis=Basis.COMMAND,
        ),
        Example(Container("lightseekorg/tokenspeed-amd:v0.1.0"), "0.1.0", basis=Basis.IMAGE),
        Example(Container("own:1", ("ts", "serve", "--model", "m", "--tp", "8"))),
        Example(Container("own:1", ("python3", "-m", "smg_grpc_servicer.tokenspeed", "--port=1"))),
        Example(Container("own:1", ("env", "A=1", "sh", "-c", "exec ts serve m --tp=8"))),
        Example(Container("own:1", ("bash", "-c", "a; ts serve m")), is_opaque=True),
    )
    foreign = (
        Container("lmsysorg/sglang:v0.5.23", ("python3", "-m", "sglang.launch_server")),
        Container("vllm/vllm-openai:v0.33.0", ("vllm", "serve", "m")),
        Container("lightseekorg/smg:1.13.0", ("smg", "launch", "--pd-disaggregation")),
        Container("own:1", ("ts", "merge", "traces")),
    )
    rewrites = (
        Rewrite(["--tp=4", "m"], 8, ["--tp=8", "m"], 4),
        Rewrite(["--tp", "4"], 8, ["--tp", "8"], 4),
        Rewrite(["--tensor-parallel-size", "4"], 8, ["--tensor-parallel-size", "8"], 4),
    )
