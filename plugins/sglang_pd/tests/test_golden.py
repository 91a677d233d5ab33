"""The golden case of the preset."""

from pathlib import Path

from ome.engines.engines import Engines
from ome.testing.golden import check_case


def test_the_preset(engines: Engines) -> None:
    check_case(Path(__file__).parent / "golden/17-sglang-pd-preset", engines)
