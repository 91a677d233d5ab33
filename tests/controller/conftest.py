"""What tests of the controller's parts share: an API server that says what it is told to say."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from aiohttp import web
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from ome.api import ObjectRef
from ome.controller.client import ApiError
from ome.controller.owned import OwnedObjects
from ome.controller.resources import Resource, ref_of

__all__ = [
    "Asked",
    "Endless",
    "FakeApi",
    "Reply",
    "Server",
    "Stream",
    "WritingApi",
    "api_server",
    "event",
    "in_loop",
    "item",
    "merged",
    "page",
    "problem",
    "until",
]

Json = dict[str, Any]
# Far more than anything takes; reaching it is a failure.
PATIENCE = 20.0


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs in an event loop of its own."""

    @wraps(test)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), PATIENCE))

    return wrapped


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE / 2):
        while not holds():
            await asyncio.sleep(0.001)


@dataclass(frozen=True)
class Asked:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


@dataclass(frozen=True)
class Reply:
    """An answer: JSON, or bytes as they are."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """A watch: these bytes, then an `end`, a `cut`, or silence (`hang`)."""

    data: bytes = b""
    then: str = "end"


# Says nothing more.
Endless = Stream(then="hang")


class Server:
    """Gives its answers in their order, one to each request, and nothing after the last."""

    def __init__(self, *answers: Reply | Stream) -> None:
        self.answers = deque(answers)
        self.requests: list[Asked] = []
        self.url = ""
        # Called with each request, before it is answered.
        self.saw: Callable[[], None] = lambda: None
        self._end = asyncio.Event()

    async def asked(self, count: int) -> None:
        """Wait until there were this many requests: all earlier answers were taken in by then."""
        await until(lambda: len(self.requests) >= count)

    async def start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def stop(self) -> None:
        self._end.set()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.requests.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                json.loads(text) if text else None,
            )
        )
        self.saw()
        answer = self.answers.popleft() if self.answers else Endless
        if isinstance(answer, Stream):
            return await self._stream(request, answer)
        body = answer.body
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(body=data, status=answer.status, headers=answer.headers)

    async def _stream(self, request: web.Request, answer: Stream) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        if answer.data:
            await response.write(answer.data)
        if answer.then == "hang":
            await self._end.wait()
        elif answer.then == "cut":
            assert request.transport is not None
            request.transport.close()
        return response


@asynccontextmanager
async def api_server(*answers: Reply | Stream) -> AsyncIterator[tuple[Server, ApiClient]]:
    """A server and a client that talks to it."""
    server = Server(*answers)
    runner = await server.start()
    configuration = Configuration()
    configuration.host = server.url
    configuration.api_key["BearerToken"] = "Bearer secret"
    client = ApiClient(configuration)
    try:
        yield server, client
    finally:
        server.stop()
        await client.close()  # type: ignore[no-untyped-call]
        await runner.cleanup()


def item(name: str, version: int, **fields: Any) -> Json:
    """An object in namespace `demo`."""
    metadata = {"name": name, "namespace": "demo", "resourceVersion": str(version), "uid": name}
    return {"metadata": metadata, **fields}


def page(*items: Json, version: int, more: str = "") -> Reply:
    """A page of a list; `more` is the token of the next one."""
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return Reply({"kind": "List", "metadata": metadata, "items": list(items)})


def event(kind: str, raw: Json) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": raw}).encode() + b"\n"


def problem(status: int, reason: str, message: str, **headers: str) -> Reply:
    """A refusal."""
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message}
    return Reply(
        {**body, "code": status}, status, {k.replace("_", "-"): v for k, v in headers.items()}
    )


class FakeApi:
    """The API server's objects without HTTP: enough for whoever gets, creates, patches and deletes.

    `calls` are the requests so far. `before` is called with each request, and may raise or wait.
    """

    def __init__(self) -> None:
        self.objects: dict[ObjectRef, Json] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.before: Callable[[str], Awaitable[None]] | None = None
        self._version = 100

    async def _begin(self, *call: Any) -> None:
        self.calls.append(call)
        if self.before is not None:
            await self.before(call[0])

    def _store(self, raw: Json) -> Json:
        self._version += 1
        metadata = {**raw["metadata"], "resourceVersion": str(self._version)}
        metadata.setdefault("uid", f"uid-{self._version}")
        self.objects[ref_of(raw)] = {**raw, "metadata": metadata}
        return self.objects[ref_of(raw)]

    def _find(self, resource: Resource, namespace: str, name: str) -> Json:
        try:
            return self.objects[ObjectRef(resource.kind, namespace, name)]
        except KeyError:
            raise ApiError(404, "NotFound", f'{resource.full_name} "{name}" not found') from None

    async def get(self, resource: Resource, namespace: str, name: str, **_: Any) -> Json:
        await self._begin("get", resource.kind, namespace, name)
        found: Json = json.loads(json.dumps(self._find(resource, namespace, name)))
        return found

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        await self._begin("create", resource.kind, namespace, body)
        if ref_of(body) in self.objects:
            raise ApiError(409, "AlreadyExists", "already exists")
        return self._store(body)

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        await self._begin("replace", resource.kind, namespace, name, body)
        known = self._find(resource, namespace, name)
        if known["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._store(body)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        *,
        subresource: str = "",
        manager: str = "ome-controller",
    ) -> Json:
        await self._begin("patch", resource.kind, namespace, name, body)
        return self._store(merged(self._find(resource, namespace, name), body))

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        await self._begin("delete", resource.kind, namespace, name, uid)
        self._find(resource, namespace, name)
        del self.objects[ObjectRef(resource.kind, namespace, name)]


def _fields(value: Any) -> Json:
    """`fieldsV1` of a manager that applied a value; lists are owned whole here."""
    if not isinstance(value, dict):
        return {}
    return {f"f:{key}": _fields(child) for key, child in value.items()}


class WritingApi(FakeApi):
    """An API server that applies, as far as the writer can tell."""

    def __init__(self) -> None:
        super().__init__()
        self.owned = OwnedObjects()

    async def look(self, resource: Any, namespace: str, name: str) -> Json | None:
        await self._begin("look", name)
        return self.objects.get(ObjectRef(resource.kind, namespace, name))

    async def apply_new(self, resource: Any, body: Json) -> Json:
        ref = ref_of(body)
        await self._begin("apply new", str(ref))
        if ref in self.objects:
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._apply(body, "ome-controller")

    async def apply(
        self, resource: Any, body: Json, *, force: bool, manager: str = "ome-controller"
    ) -> Json:
        await self._begin("apply", str(ref_of(body)), manager, force)
        return self._apply(body, manager)

    def _apply(self, body: Json, manager: str) -> Json:
        ref = ref_of(body)
        known = self.objects.get(ref)
        uid = body["metadata"].get("uid")
        if uid is not None and (known is None or known["metadata"]["uid"] != uid):
            raise ApiError(409, "Conflict", f"uid mismatch of {ref}")
        spec = {**((known or {}).get("spec") or {}), **body["spec"]}
        metadata = {**((known or {}).get("metadata") or {}), **body["metadata"]}
        if manager == "ome-controller":
            wanted = {"metadata": body["metadata"], "spec": body["spec"]}
            entry = {"manager": manager, "operation": "Apply", "fieldsV1": _fields(wanted)}
            metadata["managedFields"] = [entry]
        return self._store({**body, "metadata": metadata, "spec": spec})

    def has(self, raw: Json, *, watched: bool = True) -> Json:
        """An object that exists; OME's watch knows of it."""
        stored = self._store(json.loads(json.dumps(raw)))
        if watched:
            self.owned.put(stored)
        return stored

    def loses(self, ref: ObjectRef) -> None:
        """Somebody deletes an object, and the watch tells."""
        self.objects.pop(ref, None)
        self.owned.remove(ref)

    def done(self) -> list[str]:
        """The requests: what was done, and to what."""
        return [f"{call[0]} {call[3 if call[0] == 'delete' else 1]}" for call in self.calls]

    def at(self, what: str, then: Callable[[], None]) -> None:
        """Let something happen when a request begins."""

        async def before(_: str) -> None:
            if self.done()[-1] == what:
                self.before = None
                then()

        self.before = before


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found
