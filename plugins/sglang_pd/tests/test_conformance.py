"""The conformance suite on the plugin: it recognises nothing."""

from ome.engines import Container
from ome.testing.conformance import Conformance
from ome_engine_sglang_pd import plugin


class TestConformance(Conformance):
    plugin = plugin
    foreign = (
        Container("lmsysorg/sglang:v0.5.23", ("python3", "-m", "sglang.launch_server")),
        Container("lmsysorg/sglang-router:latest"),
    )
