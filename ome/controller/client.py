"""The API server as the controller talks to it: plain JSON over the `kubernetes` package's client.

Connection, TLS and credentials are the package's; its generated types aren't used, since they cost five
times the CPU of the JSON (docs/adr/0011-the-controllers-client.md). Nothing here retries but 429.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.config import ConfigException

from ome.controller.resources import Resource
from ome.controller.telemetry import Metrics

__all__ = ["Api", "ApiError", "NotLeading", "RateLimit", "Sleep", "Unreachable", "cause"]

Json = dict[str, Any]
Sleep = Callable[[float], Awaitable[None]]

MANAGER: Final = "ome-controller"
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
# A resourceVersion that no object has: etcd's first revision is before its first write. The API server
# compares it with an object that exists, and has nothing to compare it with for one that doesn't.
_OF_NOTHING: Final = "1"
_TIMEOUT: Final = 30.0
# More levels of JSON than Go's reader takes (10,000), each of which is a call or two here.
_DEEPEST: Final = 30_000
_TRIES: Final = 4
_LONGEST_WAIT: Final = 30.0


class ApiError(Exception):
    """The API server refused a request: its HTTP status, its reason and what it said."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_missing(self) -> bool:
        """Whether the object, or its kind, isn't there."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else was there first."""
        return self.status == 409

    @property
    def is_forbidden(self) -> bool:
        """Whether the controller may not do this."""
        return self.status in (401, 403)

    @property
    def is_of_ending_namespace(self) -> bool:
        """Whether something new was refused because its namespace is on its way out, as its service is."""
        return self.status == 403 and self.message.endswith("because it is being terminated")


class Unreachable(Exception):
    """No answer came: the connection failed, was cut or took too long, or somebody else answered."""


class NotLeading(Exception):
    """A write was due after the Lease's deadline; it was not sent."""


class RateLimit:
    """At most `qps` requests a second over time, and `burst` at once; no limit when `qps` is 0."""

    def __init__(
        self,
        qps: float = 0.0,
        burst: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._at = clock()

    async def wait(self) -> None:
        """Wait for the next free place; places are given in the order asked for."""
        if self._qps <= 0:
            return
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now
        self._tokens -= 1
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)


class Api:
    """Requests to the API server, as JSON. Raises ApiError, Unreachable and, for writes, NotLeading."""

    def __init__(
        self,
        client: ApiClient,
        *,
        limit: RateLimit | None = None,
        time_to_write: Callable[[], float] | None = None,
        metrics: Metrics | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._sleep = sleep
        self._limit = limit or RateLimit()
        self._time_to_write = time_to_write or (lambda: _TIMEOUT)
        self._metrics = metrics or Metrics()

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """An object."""
        return await self._json("GET", resource, namespace, name)

    async def look(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """An object's metadata as the API server has it at hand, which can be a moment old; None for
        nothing."""
        query = {"resourceVersion": "0"}
        try:
            return await self._json(
                "GET", resource, namespace, name, query=query, accept=_METADATA_ONLY
            )
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    async def page(
        self,
        resource: Resource,
        namespace: str,
        query: Mapping[str, str],
        *,
        metadata_only: bool = False,
    ) -> Json:
        """One page of a list."""
        accept = _METADATA_LIST if metadata_only else "application/json"
        return await self._json("GET", resource, namespace, "", query=query, accept=accept)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str,
        query: Mapping[str, str],
        *,
        idle: float,
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch, until the server ends it; Unreachable after `idle` seconds of silence."""
        accept = _METADATA_ONLY if metadata_only else "application/json"
        url = f"{resource.path(namespace)}?{urlencode({**query, 'watch': 'true'})}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_TIMEOUT, sock_read=idle)
        response = await self._send("WATCH", url, {"Accept": accept}, None, timeout)
        try:
            if response.status >= 400:
                raise _error(response, await _read(response, f"WATCH {url}"))
            yield _lines(response)
        finally:
            response.close()

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        """A new object; a 409 when there is one of its name."""
        query = {"fieldManager": MANAGER}
        return await self._json("POST", resource, namespace, "", query=query, body=body)

    async def apply(
        self, resource: Resource, body: Json, *, force: bool, manager: str = MANAGER
    ) -> Json:
        """Server-side apply of an object; without `force`, a 409 when it takes another's field."""
        metadata = body["metadata"]
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        return await self._json(
            "PATCH", resource, namespace, name, query=query, body=body, content=_APPLY
        )

    async def apply_new(self, resource: Resource, body: Json) -> Json:
        """Server-side apply of an object that must not exist yet; a 409 when it does, whosever its fields
        are."""
        metadata = {**body["metadata"], "resourceVersion": _OF_NOTHING}
        return await self.apply(resource, {**body, "metadata": metadata}, force=False)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        *,
        subresource: str = "",
        manager: str = MANAGER,
    ) -> Json:
        """A JSON merge patch, or a JSON patch when `body` is a list of operations."""
        content = _JSON_PATCH if isinstance(body, list) else _MERGE
        query = {"fieldManager": manager}
        return await self._json(
            "PATCH",
            resource,
            namespace,
            name,
            subresource=subresource,
            query=query,
            body=body,
            content=content,
        )

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        """A whole object in place of the one with its resourceVersion; a 409 when that has changed."""
        return await self._json("PUT", resource, namespace, name, body=body)

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid, and let the garbage collector follow."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        await self._json("DELETE", resource, namespace, name, body=body)

    async def _json(
        self,
        method: str,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        query: Mapping[str, str] | None = None,
        body: Any = None,
        accept: str = "application/json",
        content: str = "application/json",
    ) -> Json:
        url = resource.path(namespace, name, subresource)
        if query:
            url += f"?{urlencode(query)}"
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        for attempt in range(_TRIES):
            await self._limit.wait()
            headers = {"Accept": accept, "Content-Type": content}
            response = await self._send(method, url, headers, body, timeout)
            data = await _read(response, f"{method} {url}")
            if response.status < 400:
                return _object(data)
            error = _error(response, data)
            if error.status != 429 or attempt == _TRIES - 1:
                raise error
            await self._sleep(error.retry_after or 2.0**attempt)
        raise AssertionError

    async def _send(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: Any,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send one request. The right to write is checked last, after everything that can take time, and
        bounds the time of the write itself."""
        client = self._client
        verb = "GET" if method == "WATCH" else method
        headers["User-Agent"] = MANAGER
        try:
            await client.update_params_for_auth(headers, [], ["BearerToken"], url, verb, body)
        except (ConfigException, OSError) as error:
            raise Unreachable(f"no credentials: {cause(error)}") from error
        if verb != "GET":
            seconds = self._time_to_write()
            if seconds <= 0.0:
                raise NotLeading
            timeout = aiohttp.ClientTimeout(total=min(seconds, _TIMEOUT))
        start = time.monotonic()
        code = "error"
        try:
            full = client.configuration.host + url
            send: Any = client.rest_client.request
            sent = await send(verb, full, headers=headers, body=body, _request_timeout=timeout)
            response: aiohttp.ClientResponse = sent.response
            code = str(response.status)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{method} {url}: {cause(error)}") from error
        finally:
            self._metrics.request(method, url, code, time.monotonic() - start)
        return response


async def _read(response: aiohttp.ClientResponse, request: str) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(f"{request}: {cause(error)}") from error


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of a response of any length: those of aiohttp's own reader are bounded."""
    rest: list[bytes] = []
    try:
        async for chunk in response.content.iter_any():
            *whole, last = chunk.split(b"\n")
            for line in whole:
                rest.append(line)
                yield b"".join(rest)
                rest.clear()
            rest.append(last)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(cause(error)) from error


def _object(data: bytes) -> Json:
    """An answer that says it succeeded. Something in between, such as a proxy, may have sent it."""
    try:
        found = decode(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"an answer that is no JSON object: {_start(data)}")
    return found


class _DeepDecoder(json.JSONDecoder):
    """Slow, and in Python alone: its depth is bounded by the recursion limit, not by the C stack."""

    def __init__(self) -> None:
        super().__init__()
        decoder: Any = json.decoder
        scanner: Any = importlib.import_module("json.scanner")
        self.parse_object = decoder.JSONObject
        self.parse_array = decoder.JSONArray
        self.scan_once = scanner.py_make_scanner(self)


def decode(data: bytes) -> Any:
    """JSON data, nested as deeply as the API server lets it be. Raises ValueError."""
    try:
        return json.loads(data)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEPEST)
        try:
            return _DeepDecoder().decode(data.decode())
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        finally:
            sys.setrecursionlimit(limit)


def _start(data: bytes) -> str:
    return data[:200].decode(errors="replace").strip()


def cause(error: BaseException) -> str:
    """What an error says, or at least its kind."""
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    return str(error) or type(error).__name__


def _error(response: aiohttp.ClientResponse, data: bytes) -> ApiError:
    """The error that an answer is: a Status object, or whatever something in between has sent."""
    try:
        status = json.loads(data)
    except ValueError:
        status = None
    if not isinstance(status, dict) or not isinstance(status.get("message"), str):
        status = {"message": _start(data) or response.reason or ""}
    retry = response.headers.get("Retry-After", "")
    return ApiError(
        response.status,
        str(status.get("reason") or "".join((response.reason or "").split())),
        status["message"],
        min(float(retry), _LONGEST_WAIT) if retry.isdecimal() else 0.0,
    )
