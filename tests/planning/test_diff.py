"""Comparing what two states of manifests render to."""

from ome.engines.engines import Engines
from ome.planning.diff import compare, render_all
from ome.snapshot import Snapshot
from ome.testing.builders import runtime, service


def test_a_refused_service_removes_nothing_in_a_diff() -> None:
    good = Snapshot.of([runtime(), service()])
    held = Snapshot.of([service()])
    (change,) = compare(render_all(good, Engines()), render_all(held, Engines()))
    assert change.refusal[1] is not None
    assert change.removed == ()
    (back,) = compare(render_all(held, Engines()), render_all(good, Engines()))
    assert back.refusal == (change.refusal[1], None)
