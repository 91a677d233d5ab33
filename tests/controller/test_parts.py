"""The small parts: concerns, packed objects, pods, settings, endpoints, metrics and logs."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ome.api import InferenceService, ObjectRef
from ome.controller.concerns import Concerns
from ome.controller.endpoints import serve
from ome.controller.options import Address, parse_address, parse_duration
from ome.controller.packed import Packed, View
from ome.controller.pods import Pods
from ome.controller.resources import BY_KIND
from ome.controller.telemetry import JsonFormatter, Metrics, TextFormatter, set_up_logging
from ome.snapshot import Snapshot
from ome.testing.builders import model, runtime, service
from tests.controller.conftest import in_loop

DOCS = Path(__file__).parents[2] / "docs" / "controller.md"


def ref(kind: str, name: str, namespace: str = "") -> ObjectRef:
    return ObjectRef(kind, namespace, name)


# Concerns.


def named(name: str, **spec: Any) -> InferenceService:
    found = service(name, **spec)
    assert isinstance(found, InferenceService)
    return found


def test_concerns_keep_nothing_of_what_is_gone() -> None:
    concerns, asked = Concerns(), ref("BaseModel", "m", "demo")
    one = named("one", runtime={"name": "rt", "revision": "cr-1"})
    concerns.put_service(one)
    concerns.planned(one.ref, [asked], held=True, chooses=True)
    assert concerns.readers(asked) == concerns.held_readers(asked) == {one.ref}
    assert concerns.pinned_to("cr-1") == {one.ref}
    assert concerns.pinned() == {"cr-1"}
    concerns.planned(one.ref, [], held=False, chooses=True)
    assert concerns.readers(asked) == frozenset()
    concerns.planned(one.ref, [asked], held=False, chooses=True)
    assert (concerns.readers(asked), concerns.held_readers(asked)) == ({one.ref}, frozenset())
    concerns.put_service(named("one", runtime={"name": "rt"}))
    assert concerns.pinned() == frozenset()
    concerns.remove_service(one.ref)
    concerns.remove_service(one.ref)
    state = {name: value for name, value in vars(concerns).items() if name != "_dependents"}
    assert not any(state.values())


# Who waits (held, chooses), and whom a change of a runtime then concerns.
CHOOSING = [
    ((True, True), "ClusterServingRuntime", "", True),
    ((True, True), "ServingRuntime", "demo", True),
    ((True, True), "ServingRuntime", "far", False),
    ((True, False), "ClusterServingRuntime", "", False),
    ((False, True), "ClusterServingRuntime", "", False),
]


@pytest.mark.parametrize("waits, kind, namespace, concerned", CHOOSING)
def test_who_waits_for_a_runtime(
    waits: tuple[bool, bool], kind: str, namespace: str, concerned: bool
) -> None:
    concerns, one = Concerns(), named("one", runtime=None)
    concerns.put_service(one)
    concerns.planned(one.ref, [], held=waits[0], chooses=waits[1])
    changed = [ref(kind, "rt", namespace)]
    assert concerns.of_runtimes(changed, Snapshot.of([one])) == ({one.ref} if concerned else set())


# Packed objects.


def test_packed_objects_are_parsed_again() -> None:
    packed: Packed[Any] = Packed(parsed=2)
    items = [model(f"m{number}") for number in range(3)]
    for item in items:
        packed[item.ref] = item
    assert len(packed) == 3
    assert list(packed) == [item.ref for item in items]
    # The last two stay parsed; the first is another object that says the same.
    assert packed[items[2].ref] is items[2]
    assert packed[items[1].ref] is items[1]
    first = packed[items[0].ref]
    assert first is not items[0]
    assert first.raw == items[0].raw
    # It took the place of the one that wasn't looked at for longest.
    assert packed[items[0].ref] is first
    assert packed[items[1].ref] is items[1]
    assert packed[items[2].ref] is not items[2]
    del packed[items[1].ref]
    assert items[1].ref not in packed
    with pytest.raises(KeyError):
        packed[items[1].ref]
    assert packed.get(items[1].ref) is None
    # One that isn't parsed at the moment can go, too.
    packed[items[1].ref] = items[1]
    del packed[items[0].ref]
    assert sorted(packed) == [items[1].ref, items[2].ref]


def test_a_view_writes_down_what_is_asked_for() -> None:
    packed: Packed[Any] = Packed()
    for item in (model("m"), runtime()):
        packed[item.ref] = item
    asked: set[ObjectRef] = set()
    view = View(packed, type(model("m")), asked)
    assert view["", "m"].name == "m"
    assert view.get(("", "x")) is None
    assert asked == {ref("ClusterBaseModel", "m"), ref("ClusterBaseModel", "x")}
    # Looking at all is no question for one.
    asked.clear()
    assert (list(view), len(view)) == ([("", "m")], 1)
    assert asked == set()
    assert View(packed, type(runtime()))["", "rt"].name == "rt"


# Pods.


def pod(name: str = "p", service: str | None = "chat", phase: str = "Pending") -> dict[str, Any]:
    labels = {"component": "engine", **({"ome.io/inferenceservice": service} if service else {})}
    metadata = {"name": name, "namespace": "demo", "labels": labels}
    return {"kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


def test_pods() -> None:
    pods = Pods()
    one = ref("Pod", "p", "demo")
    assert pods.put(pod()) == ("chat",)
    assert pods.put(pod()) == ()
    assert pods.put(pod(phase="Running")) == ("chat",)
    assert pods.put(pod("a")) == ("chat",)
    assert [(each.name, each.phase) for each in pods.of("demo", "chat")] == [
        ("a", "Pending"),
        ("p", "Running"),
    ]
    assert pods.of("far", "chat") == ()
    assert (len(pods), pods.known()) == (2, [one, ref("Pod", "a", "demo")])
    # Another service's from now on.
    assert pods.put(pod(service="other")) == ("other", "chat")
    assert [each.name for each in pods.of("demo", "chat")] == ["a"]
    # Nobody's any more.
    assert pods.put(pod(service=None)) == ("other",)
    assert pods.put(pod(service=None)) == ()
    assert pods.remove(ref("Pod", "a", "demo")) == "chat"
    assert pods.remove(one) == ""
    assert not any(vars(pods).values())


# Settings.

DURATIONS = [
    ("0", 0.0),
    ("15s", 15.0),
    ("1m30s", 90.0),
    ("24h", 86400.0),
    ("250ms", 0.25),
    ("1.5h", 5400.0),
    ("1h0m0s", 3600.0),
]


@pytest.mark.parametrize("text, seconds", DURATIONS)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "15", "s", "1d", "-1s", "1 s", "1s ", "1.s", "1,5s", "٣s", "1S"]
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_duration(text)
    assert str(caught.value) == f'"{text}" is no duration such as 30s, 5m or 24h'


ADDRESSES = [
    ("0", None),
    (":8081", Address("", 8081)),
    (":0", Address("", 0)),
    ("127.0.0.1:8081", Address("127.0.0.1", 8081)),
    ("[::1]:8081", Address("::1", 8081)),
    ("localhost:65535", Address("localhost", 65535)),
]


@pytest.mark.parametrize("text, address", ADDRESSES)
def test_addresses(text: str, address: Address | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8081", ":", "a:", ":65536", ":-1", ":http", "1:2:x"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_address(text)
    assert str(caught.value) == f'"{text}" is no address such as :8081, or 0 to listen nowhere'


# Resources.

PATHS = [
    ("Deployment", ("", ""), "/apis/apps/v1/deployments"),
    ("Deployment", ("demo", "a"), "/apis/apps/v1/namespaces/demo/deployments/a"),
    ("Pod", ("demo", ""), "/api/v1/namespaces/demo/pods"),
    ("Node", ("ignored", "n"), "/api/v1/nodes/n"),
    (
        "InferenceService",
        ("d", "c", "status"),
        "/apis/ome.io/v1beta1/namespaces/d/inferenceservices/c/status",
    ),
]


@pytest.mark.parametrize("kind, parts, path", PATHS)
def test_paths(kind: str, parts: tuple[str, ...], path: str) -> None:
    assert BY_KIND[kind].path(*parts) == path


def test_names_of_resources() -> None:
    assert BY_KIND["Pod"].full_name == "pods"
    assert BY_KIND["Role"].full_name == "roles.rbac.authorization.k8s.io"
    assert BY_KIND["ScaledObject"].crd == "scaledobjects.keda.sh"
    assert BY_KIND["Deployment"].crd == ""


# Endpoints.


async def get(url: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text(), response.headers["Content-Type"]


@in_loop
async def test_endpoints() -> None:
    problems: list[str] = []
    metrics = Metrics()
    anywhere = Address("127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        health, metric = await serve(
            stack,
            health=anywhere,
            metrics=anywhere,
            problems=lambda: problems,
            exposition=metrics.exposition,
        )
        plain = "text/plain; charset=utf-8"
        assert await get(f"{health}/healthz") == (200, "ok", plain)
        assert await get(f"{health}/readyz") == (200, "ok", plain)
        problems += ["nodes: not read yet", "pods: pods is forbidden"]
        assert await get(f"{health}/readyz") == (
            503,
            "nodes: not read yet\npods: pods is forbidden",
            plain,
        )
        assert (await get(f"{health}/healthz"))[0] == 200
        status, text, kind = await get(f"{metric}/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert "\nome_leader 0.0\n" in text
        assert (await get(f"{health}/metrics"))[0] == 404
        assert (await get(f"{metric}/healthz"))[0] == 404
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(f"{health}/healthz")


# Where to listen, and what the URLs begin with.
LISTENERS: list[tuple[Address | None, Address | None, list[str]]] = [
    (None, None, []),
    (Address("127.0.0.1", 0), None, ["http://127.0.0.1:"]),
    (None, Address("", 0), ["http://localhost:"]),
    (Address("::1", 0), None, ["http://[::1]:"]),
]


@pytest.mark.parametrize("health, metrics, begins", LISTENERS)
@in_loop
async def test_where_endpoints_are(
    health: Address | None, metrics: Address | None, begins: list[str]
) -> None:
    async with AsyncExitStack() as stack:
        urls = await serve(
            stack, health=health, metrics=metrics, problems=list, exposition=lambda: b""
        )
        assert [re.sub(r"\d+$", "", url) for url in urls] == begins


@in_loop
async def test_an_address_that_is_taken() -> None:
    async with AsyncExitStack() as stack:
        (url,) = await serve(
            stack, health=Address("127.0.0.1", 0), metrics=None, problems=list, exposition=bytes
        )
        taken = Address("127.0.0.1", int(url.rpartition(":")[2]))
        with pytest.raises(
            OSError, match=r"--health-probe-addr: can.t listen on .*: Address already in use"
        ):
            await serve(stack, health=taken, metrics=None, problems=list, exposition=bytes)


# Metrics.


def test_the_documented_metrics_are_those_that_there_are() -> None:
    text = DOCS.read_text()
    table = text[text.index("| Metric |") : text.index("Logs have one line")]
    documented = {name for row in table.splitlines() for name in re.findall("`(ome_[a-z_]+)`", row)}
    types = {"counter": "_total", "gauge": "", "histogram": ""}
    told = {f"{each.name}{types[each.type]}" for each in Metrics().registry.collect()}
    assert told == documented


def test_metrics_of_reconciles() -> None:
    metrics = Metrics()
    metrics.reconciled("InferenceService", "held", 0.5)
    metrics.planned(0.25)
    metrics.watch_failed("pods", "Expired")
    value = metrics.registry.get_sample_value
    labels = {"kind": "InferenceService"}
    assert value("ome_reconciles_total", {**labels, "result": "held"}) == 1
    assert value("ome_reconcile_duration_seconds_sum", labels) == 0.5
    assert value("ome_plan_duration_seconds_sum") == 0.25
    assert value("ome_watch_errors_total", {"resource": "pods", "reason": "Expired"}) == 1


# Method and path, and the labels verb and resource.
REQUESTS = [
    (
        "GET",
        "/apis/ome.io/v1beta1/namespaces/a/inferenceservices/b/status",
        "get",
        "inferenceservices",
    ),
    ("WATCH", "/api/v1/nodes?watch=true", "watch", "nodes"),
    ("POST", "/api/v1/namespaces/demo/events?fieldManager=x", "create", "events"),
    ("DELETE", "/apis/apps/v1/namespaces/pods/deployments/services", "delete", "deployments"),
    ("OPTIONS", "/version", "options", ""),
]


@pytest.mark.parametrize("method, url, verb, resource", REQUESTS)
def test_metrics_of_requests(method: str, url: str, verb: str, resource: str) -> None:
    metrics = Metrics()
    metrics.request(method, url, "200", 0.5)
    value = metrics.registry.get_sample_value
    labels = {"verb": verb, "resource": resource, "code": "200"}
    assert value("ome_api_requests_total", labels) == 1
    assert value("ome_api_request_duration_seconds_sum", {"verb": verb}) == 0.5


# Logs.


def record(level: int = logging.WARNING, exc_info: Any = None, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("ome.x", level, "f.py", 1, 'a "%s"', ("ü",), exc_info)
    made.created = 1764669600.25
    if fields:
        made.__dict__["fields"] = fields
    return made


def test_logs_as_json() -> None:
    assert JsonFormatter().format(record(object="Pod a", n=1, at=Path("x"))) == (
        '{"ts": "2025-12-02T10:00:00.250Z", "level": "warning", "logger": "ome.x", '
        '"msg": "a \\"ü\\"", "object": "Pod a", "n": 1, "at": "x"}'
    )


def test_logs_as_text() -> None:
    head = '2025-12-02T10:00:00.250Z\tinfo\tome.x\ta "ü"'
    assert TextFormatter().format(record(logging.INFO)) == head
    assert TextFormatter().format(record(logging.INFO, object="Pod a", n=1)) == (
        f'{head}\tobject="Pod a" n=1'
    )


def test_logs_with_a_traceback() -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        caught = sys.exc_info()
    data = json.loads(JsonFormatter().format(record(exc_info=caught)))
    assert data["trace"].endswith("KeyError: 'gone'")
    first, second, *_, last = TextFormatter().format(record(exc_info=caught, n=1)).splitlines()
    assert first.endswith("\tn=1")
    assert (second, last) == ("Traceback (most recent call last):", "KeyError: 'gone'")


@pytest.mark.parametrize("encoder, form", [("json", JsonFormatter), ("console", TextFormatter)])
@pytest.mark.parametrize(
    "level, number", [("debug", 10), ("info", 20), ("warn", 30), ("error", 40)]
)
def test_setting_up_logs(
    encoder: str, form: type, level: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, ours = logging.getLogger(), logging.getLogger("ome")
    handlers, levels = root.handlers, (root.level, ours.level)
    try:
        set_up_logging(level, encoder)
        (handler,) = root.handlers
        assert type(handler.formatter) is form
        assert (root.level, ours.level) == (logging.WARNING, number)
    finally:
        root.handlers = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
