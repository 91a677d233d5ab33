"""Requests as the API server sees them, and what becomes of its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException

from ome.controller.client import Api, ApiError, NotLeading, RateLimit, Unreachable
from ome.controller.resources import BY_KIND
from ome.controller.telemetry import Metrics
from tests.controller.conftest import Reply, Stream, api_server, in_loop, problem

Json = dict[str, Any]
DEPLOYMENT, EVENT, LEASE = BY_KIND["Deployment"], BY_KIND["Event"], BY_KIND["Lease"]
CLASS, SERVICE = BY_KIND["AcceleratorClass"], BY_KIND["InferenceService"]
APPS = "/apis/apps/v1/namespaces/demo/deployments"
OBJECT: Json = {
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "demo"},
    "spec": {"x": 1},
}
NEW: Json = {
    **OBJECT,
    "metadata": {"name": "a", "namespace": "demo", "resourceVersion": "1"},
}
NODES: Json = {"metadata": {"name": "h100"}}
OPERATIONS = [{"op": "remove", "path": "/metadata/finalizers/0"}]
MANAGED = {"fieldManager": "ome-controller"}
JSON, MERGE = "application/json", "application/merge-patch+json"
APPLY, PATCH = "application/apply-patch+yaml", "application/json-patch+json"

# What is called; the method, path, query, content type and body that the server sees.
WRITES: dict[str, tuple[Callable[[Api], Awaitable[Any]], tuple[str, str, Json, str, Any]]] = {
    "create": (
        lambda api: api.create(EVENT, "demo", NODES),
        ("POST", "/api/v1/namespaces/demo/events", MANAGED, JSON, NODES),
    ),
    "apply": (
        lambda api: api.apply(DEPLOYMENT, OBJECT, force=False),
        ("PATCH", f"{APPS}/a", {**MANAGED, "force": "false"}, APPLY, OBJECT),
    ),
    "apply of what must not exist": (
        lambda api: api.apply_new(DEPLOYMENT, OBJECT),
        ("PATCH", f"{APPS}/a", {**MANAGED, "force": "false"}, APPLY, NEW),
    ),
    "forced apply by another manager": (
        lambda api: api.apply(DEPLOYMENT, OBJECT, force=True, manager="other"),
        ("PATCH", f"{APPS}/a", {"fieldManager": "other", "force": "true"}, APPLY, OBJECT),
    ),
    "merge patch of a status": (
        lambda api: api.patch(SERVICE, "demo", "chat", {"status": {}}, subresource="status"),
        (
            "PATCH",
            "/apis/ome.io/v1beta1/namespaces/demo/inferenceservices/chat/status",
            MANAGED,
            MERGE,
            {"status": {}},
        ),
    ),
    "JSON patch of what has no namespace": (
        lambda api: api.patch(CLASS, "", "h100", OPERATIONS),
        ("PATCH", "/apis/ome.io/v1beta1/acceleratorclasses/h100", MANAGED, PATCH, OPERATIONS),
    ),
    "replace": (
        lambda api: api.replace(LEASE, "ome", "lock", NODES),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/ome/leases/lock", {}, JSON, NODES),
    ),
    "delete": (
        lambda api: api.delete(DEPLOYMENT, "demo", "a", "uid-1"),
        (
            "DELETE",
            f"{APPS}/a",
            {},
            JSON,
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "uid-1"},
                "propagationPolicy": "Background",
            },
        ),
    ),
}


@pytest.mark.parametrize("name", WRITES)
@in_loop
async def test_a_write_as_the_server_sees_it(name: str) -> None:
    write, seen = WRITES[name]
    answer = {"kind": "Any", "metadata": {"name": "made"}}
    async with api_server(Reply(answer)) as (server, client):
        made = await write(Api(client))
        assert made == (None if name == "delete" else answer)
        (asked,) = server.requests
        content = asked.headers["Content-Type"]
        assert (asked.method, asked.path, asked.query, content, asked.body) == seen
        assert asked.headers["User-Agent"] == "ome-controller"
        assert asked.headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("name", WRITES)
@in_loop
async def test_nothing_is_written_without_leading(name: str) -> None:
    write, _ = WRITES[name]
    async with api_server(Reply(OBJECT)) as (server, client):
        metrics = Metrics()
        api = Api(client, time_to_write=lambda: 0.0, metrics=metrics)
        with pytest.raises(NotLeading):
            await write(api)
        assert server.requests == []
        assert b"ome_api_requests_total{" not in metrics.exposition()
        # Reading goes on.
        assert await api.get(DEPLOYMENT, "demo", "a") == OBJECT


@in_loop
async def test_a_write_that_waited_is_not_sent_after_the_deadline() -> None:
    leads = True

    async def sleep(seconds: float) -> None:
        nonlocal leads
        leads = False

    async with api_server(problem(429, "TooManyRequests", "later")) as (server, client):
        api = Api(client, time_to_write=lambda: 30.0 if leads else 0.0, sleep=sleep)
        with pytest.raises(NotLeading):
            await api.create(DEPLOYMENT, "demo", OBJECT)
        assert len(server.requests) == 1


@in_loop
async def test_reads_as_the_server_sees_them() -> None:
    async with api_server(Reply(OBJECT), Stream(b"one\n")) as (server, client):
        api = Api(client)
        assert await api.get(DEPLOYMENT, "demo", "a") == OBJECT
        async with api.watch(DEPLOYMENT, "", {"x": "y z"}, idle=9.0) as lines:
            assert [line async for line in lines] == [b"one"]
        assert [(each.method, each.path, each.query) for each in server.requests] == [
            ("GET", f"{APPS}/a", {}),
            ("GET", "/apis/apps/v1/deployments", {"x": "y z", "watch": "true"}),
        ]
        assert {each.headers["Accept"] for each in server.requests} == {"application/json"}


LATER = problem(429, "TooManyRequests", "later")
LATER_IN_5 = problem(429, "TooManyRequests", "later", Retry_After="5")
LATER_IN_A_DAY = problem(429, "TooManyRequests", "later", Retry_After="86400")
LATER_ON_A_DATE = problem(
    429, "TooManyRequests", "later", Retry_After="Wed, 02 Dec 2026 10:00:00 GMT"
)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize(
    "answers, waits",
    [
        ([], []),
        ([LATER], [1.0]),
        ([LATER, LATER, LATER], [1.0, 2.0, 4.0]),
        ([LATER_IN_5, LATER_IN_A_DAY, LATER_ON_A_DATE], [5.0, 30.0, 4.0]),
    ],
)
@in_loop
async def test_throttled_requests_are_sent_again(
    answers: list[Reply], waits: list[float], reads: bool
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with api_server(*answers, Reply(OBJECT)) as (server, client):
        api = Api(client, sleep=sleep)
        if reads:
            assert await api.get(DEPLOYMENT, "demo", "a") == OBJECT
        else:
            assert await api.create(DEPLOYMENT, "demo", OBJECT) == OBJECT
        assert slept == waits
        assert len(server.requests) == len(answers) + 1
        assert len({(each.method, each.path, str(each.body)) for each in server.requests}) == 1


@in_loop
async def test_throttled_for_too_long() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with api_server(*[LATER_IN_5] * 5) as (server, client):
        with pytest.raises(ApiError) as caught:
            await Api(client, sleep=sleep).get(DEPLOYMENT, "demo", "a")
        assert (caught.value.status, caught.value.retry_after) == (429, 5.0)
        assert slept == [5.0, 5.0, 5.0]
        assert len(server.requests) == 4


# An answer, and the error: status, reason, message; missing, conflict, forbidden.
REFUSALS: dict[str, tuple[Reply, tuple[int, str, str], tuple[bool, bool, bool]]] = {
    "missing": (
        problem(404, "NotFound", 'deployments.apps "a" not found'),
        (404, "NotFound", 'deployments.apps "a" not found'),
        (True, False, False),
    ),
    "conflict": (
        problem(409, "Conflict", "modified"),
        (409, "Conflict", "modified"),
        (False, True, False),
    ),
    "forbidden": (
        problem(403, "Forbidden", "no"),
        (403, "Forbidden", "no"),
        (False, False, True),
    ),
    "unauthorized": (
        problem(401, "Unauthorized", "who?"),
        (401, "Unauthorized", "who?"),
        (False, False, True),
    ),
    "HTML": (
        Reply(b"<h1>Bad Gateway</h1>\n", 502),
        (502, "BadGateway", "<h1>Bad Gateway</h1>"),
        (False, False, False),
    ),
    "much HTML": (Reply(b"x" * 500, 502), (502, "BadGateway", "x" * 200), (False, False, False)),
    "no text": (Reply(b"\xff\xfe", 500), (500, "InternalServerError", "��"), (False,) * 3),
    "nothing": (Reply(b"", 503), (503, "ServiceUnavailable", "Service Unavailable"), (False,) * 3),
    "JSON of another kind": (Reply([1], 500), (500, "InternalServerError", "[1]"), (False,) * 3),
    "a status without words": (
        Reply({"message": None}, 500),
        (500, "InternalServerError", '{"message": null}'),
        (False,) * 3,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
@in_loop
async def test_refusals(name: str) -> None:
    answer, error, kinds = REFUSALS[name]
    async with api_server(answer) as (server, client):
        with pytest.raises(ApiError) as caught:
            await Api(client).get(DEPLOYMENT, "demo", "a")
        found = caught.value
        assert (found.status, found.reason, found.message) == error
        assert (found.is_missing, found.is_conflict, found.is_forbidden) == kinds
        assert str(found) == found.message
        assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"", b'"text"', b"[]", b"{"])
@in_loop
async def test_success_that_is_not_the_servers(body: bytes) -> None:
    async with api_server(Reply(body)) as (_, client):
        with pytest.raises(Unreachable) as caught:
            await Api(client).get(DEPLOYMENT, "demo", "a")
        assert str(caught.value) == f"an answer that is no JSON object: {body.decode()}"


@in_loop
async def test_a_cut_answer() -> None:
    metrics = Metrics()
    async with api_server(Stream(b'{"kind":', "cut")) as (_, client):
        with pytest.raises(Unreachable):
            await Api(client, metrics=metrics).get(DEPLOYMENT, "demo", "a")


@in_loop
async def test_nobody_answers() -> None:
    metrics = Metrics()
    async with api_server() as (server, client):
        port = server.url.rpartition(":")[2]
    # The server is gone by now.
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{port}"
    client = ApiClient(configuration)
    try:
        with pytest.raises(Unreachable, match=f"127.0.0.1:{port}"):
            await Api(client, metrics=metrics).get(DEPLOYMENT, "demo", "a")
    finally:
        await client.close()  # type: ignore[no-untyped-call]
    labels = {"verb": "get", "resource": "deployments", "code": "error"}
    assert metrics.registry.get_sample_value("ome_api_requests_total", labels) == 1


@pytest.mark.parametrize(
    "error", [ConfigException("Token file exists but empty."), OSError("gone")]
)
@in_loop
async def test_credentials_that_cannot_be_had_now(error: Exception) -> None:
    def refresh(_: Any) -> None:
        raise error

    async with api_server(Reply(OBJECT)) as (server, client):
        client.configuration.refresh_api_key_hook = refresh
        with pytest.raises(Unreachable) as caught:
            await Api(client).get(DEPLOYMENT, "demo", "a")
        assert str(caught.value) == f"no credentials: {error}"
        assert server.requests == []
        client.configuration.refresh_api_key_hook = None
        assert await Api(client).get(DEPLOYMENT, "demo", "a") == OBJECT


@in_loop
async def test_requests_are_counted() -> None:
    metrics = Metrics()
    answers = [Reply(OBJECT), problem(409, "AlreadyExists", "x"), Stream(), Reply({"metadata": {}})]
    async with api_server(*answers) as (_, client):
        api = Api(client, metrics=metrics)
        await api.get(BY_KIND["Node"], "", "n1")
        with pytest.raises(ApiError):
            await api.create(DEPLOYMENT, "demo", OBJECT)
        async with api.watch(SERVICE, "", {}, idle=9.0) as lines:
            assert [line async for line in lines] == []
        await api.page(BY_KIND["Pod"], "demo", {"limit": "1"})
    text = metrics.exposition().decode()
    assert [line for line in text.splitlines() if line.startswith("ome_api_requests_total")] == [
        'ome_api_requests_total{code="200",resource="nodes",verb="get"} 1.0',
        'ome_api_requests_total{code="409",resource="deployments",verb="create"} 1.0',
        'ome_api_requests_total{code="200",resource="inferenceservices",verb="watch"} 1.0',
        'ome_api_requests_total{code="200",resource="pods",verb="get"} 1.0',
    ]


class Clock:
    """A clock that only sleeping moves on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


# Rate and burst; at which seconds requests are made; what each waits.
LIMITS: dict[str, tuple[float, int, list[float], list[float]]] = {
    "no limit": (0.0, 0, [0, 0, 0, 0], []),
    "a burst, then the rate": (2.0, 3, [0, 0, 0, 0, 0], [0.5, 0.5]),
    "no burst is one": (4.0, 0, [0, 0, 0], [0.25, 0.25]),
    "slower than the rate": (1.0, 1, [0, 1, 2, 3], []),
    "rest is saved up to the burst": (1.0, 2, [0, 0, 100, 100, 100], [1.0]),
}


@pytest.mark.parametrize("name", LIMITS)
@in_loop
async def test_rate_limit(name: str) -> None:
    qps, burst, times, waits = LIMITS[name]
    clock = Clock()
    limit = RateLimit(qps, burst, clock=clock, sleep=clock.sleep)
    for at in times:
        clock.now = max(clock.now, 1000.0 + at)
        await limit.wait()
    assert clock.slept == waits


@in_loop
async def test_who_asks_together_is_served_in_order() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    limit = RateLimit(1.0, 1, clock=lambda: 0.0, sleep=sleep)
    await asyncio.gather(*(limit.wait() for _ in range(4)))
    assert slept == [1.0, 2.0, 3.0]


@in_loop
async def test_requests_wait_for_the_limit_and_watches_do_not() -> None:
    clock = Clock()
    async with api_server(Reply(OBJECT), Reply(OBJECT), Stream()) as (_, client):
        api = Api(client, limit=RateLimit(2.0, 1, clock=clock, sleep=clock.sleep))
        await api.get(DEPLOYMENT, "demo", "a")
        await api.get(DEPLOYMENT, "demo", "a")
        async with api.watch(DEPLOYMENT, "", {}, idle=9.0):
            pass
    assert clock.slept == [0.5]


@in_loop
async def test_an_answer_that_is_nested_as_deeply_as_can_be() -> None:
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    async with api_server(Reply(deep)) as (_, client):
        found = await Api(client).get(DEPLOYMENT, "demo", "a")
        assert found.keys() == {"a"}
    async with api_server(Reply(b"[" * 40_000)) as (_, client):
        with pytest.raises(Unreachable, match="no JSON object"):
            await Api(client).get(DEPLOYMENT, "demo", "a")
