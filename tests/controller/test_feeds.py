"""The controller's watches together: when enough is known to decide, and what is told of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ome.controller.client import ApiError
from ome.controller.feeds import Feeds
from ome.controller.resources import OWNED, Resource
from ome.controller.telemetry import Metrics
from ome.controller.watching import State, Watcher
from ome.controller.world import World
from tests.controller.conftest import in_loop, until

Json = dict[str, Any]
OURS = [
    "inferenceservices.ome.io",
    "servingruntimes.ome.io",
    "clusterservingruntimes.ome.io",
    "basemodels.ome.io",
    "clusterbasemodels.ome.io",
    "finetunedweights.ome.io",
    "acceleratorclasses.ome.io",
]
DOWN = ApiError(500, "InternalError", "etcd is away")
FORBIDDEN = ApiError(403, "Forbidden", "you may not")
MISSING = ApiError(404, "NotFound", "not found")


class Lists:
    """An API server with these definitions and nothing else, whose lists of some kinds fail."""

    def __init__(self, definitions: list[str], failing: dict[str, ApiError]) -> None:
        self.definitions = definitions
        self.failing = failing

    async def page(self, resource: Resource, *_: Any, **__: Any) -> Json:
        if error := self.failing.get(resource.kind):
            raise error
        is_crd = resource.kind == "CustomResourceDefinition"
        names = self.definitions if is_crd else []
        items = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in names]
        return {"metadata": {"resourceVersion": "1"}, "items": items}

    @asynccontextmanager
    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        yield lines()


@asynccontextmanager
async def feeds(
    server: Lists, monkeypatch: pytest.MonkeyPatch, changed: Callable[[], None] = lambda: None
) -> AsyncIterator[Feeds]:
    async def no_pause(_: Watcher, seconds: float) -> None:
        await asyncio.sleep(0.001)

    monkeypatch.setattr(Watcher, "_pause", no_pause)
    api: Any = server
    world = World(ome_namespace="ome", plugins=[], due=lambda *_: None)
    made = Feeds(api, world, metrics=Metrics(), changed=changed, config_changed=lambda: None)
    task = asyncio.create_task(made.run())
    try:
        yield made
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# What fails, whether there is enough all the same, what keeps it from being ready, and which of the owned
# kinds aren't known.
CASES: dict[str, tuple[dict[str, ApiError], bool, list[str], dict[str, str]]] = {
    "nothing": ({}, True, [], {}),
    "an owned kind, for good": (
        {"HorizontalPodAutoscaler": DOWN},
        True,
        ["horizontalpodautoscalers.autoscaling: etcd is away"],
        {
            "HorizontalPodAutoscaler": "horizontalpodautoscalers.autoscaling can't be read: etcd is away"
        },
    ),
    "an owned kind, forbidden": (
        {"HorizontalPodAutoscaler": FORBIDDEN},
        True,
        ["horizontalpodautoscalers.autoscaling: you may not"],
        {
            "HorizontalPodAutoscaler": "horizontalpodautoscalers.autoscaling can't be read: you may not"
        },
    ),
    "pods": ({"Pod": DOWN}, True, ["pods: etcd is away"], {}),
    "nodes": ({"Node": FORBIDDEN}, True, ["nodes: you may not"], {}),
    "Deployments": (
        {"Deployment": DOWN},
        False,
        ["deployments.apps: etcd is away"],
        {"Deployment": "deployments.apps can't be read: etcd is away"},
    ),
    "runtimes": (
        {"ClusterServingRuntime": FORBIDDEN},
        False,
        ["clusterservingruntimes.ome.io: you may not"],
        {},
    ),
    "a kind of OME's that a proxy knows nothing of": (
        {"BaseModel": MISSING},
        False,
        ["basemodels.ome.io: not found"],
        {},
    ),
    "a kind of every cluster's that a proxy knows nothing of": (
        {"Deployment": MISSING},
        False,
        ["deployments.apps: not found"],
        {"Deployment": "deployments.apps can't be read: not found"},
    ),
    "definitions, forbidden": (
        {"CustomResourceDefinition": FORBIDDEN},
        True,
        ["customresourcedefinitions.apiextensions.k8s.io: you may not"],
        {},
    ),
}
OPTIONAL = {each.kind for each in OWNED if each.crd}


@pytest.mark.parametrize("name", CASES)
@in_loop
async def test_what_is_enough(name: str) -> None:
    failing, enough, problems, unreadable = CASES[name]
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with feeds(Lists(OURS, failing), monkeypatch) as made:
            await until(lambda: made.problems() == problems and made.is_synced == enough)
            await asyncio.sleep(0.02)
            assert (made.problems(), made.is_synced) == (problems, enough)
            found = {kind: why for kind, why in made.unreadable.items() if kind not in OPTIONAL}
            assert found == unreadable


@in_loop
async def test_a_kind_that_is_not_defined_does_not_exist() -> None:
    defined = [each for each in OURS if each != "basemodels.ome.io"]
    told = "basemodels.ome.io: not served; install the CustomResourceDefinitions (ome crds)"
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with feeds(Lists(defined, {"BaseModel": MISSING}), monkeypatch) as made:
            await until(lambda: made.is_synced)
            assert made.problems() == [told]
        # The same where definitions can't be read.
        failing = {"BaseModel": MISSING, "CustomResourceDefinition": FORBIDDEN}
        async with feeds(Lists([], failing), monkeypatch) as made:
            await until(lambda: made.is_synced)
            crds = "customresourcedefinitions.apiextensions.k8s.io: you may not"
            assert made.problems() == [crds, told]


@in_loop
async def test_what_could_not_be_read_can_be() -> None:
    failing = {"HorizontalPodAutoscaler": DOWN}
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with feeds(Lists(OURS, failing), monkeypatch) as made:
            await until(lambda: made.is_synced)
            due: list[int] = []
            monkeypatch.setattr(made._world, "resync", lambda: due.append(1))
            failing.clear()
            await until(lambda: made.problems() == [])
            assert "HorizontalPodAutoscaler" not in made.unreadable
            assert due == [1]


@in_loop
async def test_definitions_that_cannot_be_listed_hold_everything_up() -> None:
    failing = {"CustomResourceDefinition": DOWN}
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with feeds(Lists(OURS, failing), monkeypatch) as made:
            name = "customresourcedefinitions.apiextensions.k8s.io"
            await until(lambda: f"{name}: etcd is away" in made.problems())
            await asyncio.sleep(0.02)
            assert not made.is_synced
            failing.clear()
            await until(lambda: made.is_synced)
            assert made.problems() == []


@in_loop
async def test_a_kind_is_waited_for_at_the_start_and_not_when_it_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Lists(OURS, {"HorizontalPodAutoscaler": DOWN, "ScaledObject": DOWN})
    told: list[tuple[bool, State, State]] = []

    def changed() -> None:
        states = (
            made._watchers[each].state for each in ("HorizontalPodAutoscaler", "ScaledObject")
        )
        told.append((made.is_synced, *states))

    started = False
    async with feeds(server, monkeypatch, lambda: changed() if started else None) as made:
        started = True
        await until(lambda: made.is_synced)
        first = next(each for each in told if each[0])
        assert first[1] is State.FAILING
        told.clear()
        made._defined("scaledobjects.keda.sh", True)
        await until(lambda: made._watchers["ScaledObject"].state is State.FAILING)
        assert State.STARTING in {each[2] for each in told}
        assert all(each[0] for each in told)
