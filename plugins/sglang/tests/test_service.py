"""SGLang's dialect in a service's edits of its arguments."""

from ome.engines.engines import Engines, register
from ome.testing.builders import container, plan_of, runtime, service
from ome_engine_sglang import plugin


def test_the_dialect_decides_what_belongs_to_a_flag() -> None:
    runner = {
        "name": "ome-container",
        "image": "lmsysorg/sglang:v0.5.23",
        "command": ["python3", "-m", "sglang.launch_server"],
        "args": ["--trust-remote-code", "--model", "/models/x", "--tp", "8", "--mem-frac=0.9"],
    }
    operations = [
        {"unset": "--trust-remote-code"},
        {"unset": "--mem-fraction-static"},
        {"set": {"name": "--tensor-parallel-size", "value": "4"}},
        {"set": {"name": "--model-path", "value": "/models/y"}},
    ]
    rendered = plan_of(
        runtime({"runner": runner}),
        service(engine={"runner": {"name": "ome-container", "argsPatch": operations}}),
        engines=Engines([register(plugin, distribution="ome-engine-sglang", version="0.1.0")]),
    )
    assert container(rendered)["args"] == [
        "--model-path",
        "/models/y",
        "--tensor-parallel-size",
        "4",
    ]
