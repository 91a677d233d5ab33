"""The HTTP endpoints of the process: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack

from aiohttp import web

from ome.controller.options import Address

__all__ = ["serve"]


async def serve(
    stack: AsyncExitStack,
    *,
    health: Address | None,
    metrics: Address | None,
    problems: Callable[[], Iterable[str]],
    exposition: Callable[[], bytes],
) -> list[str]:
    """Serve the endpoints until the stack is left. Returns the URLs that are served. Raises OSError, which
    names the flag, for an address that can't be had.

    `problems` says why the process isn't ready, one reason each; `exposition` gives the metrics.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        found = list(problems())
        status = 503 if found else 200
        return web.Response(text="\n".join(found) or "ok", status=status)

    async def told(_: web.Request) -> web.Response:
        kind = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=exposition(), headers=kind)

    health_routes = [web.get("/healthz", healthz), web.get("/readyz", readyz)]
    urls = []
    for flag, address, routes in (
        ("--health-probe-addr", health, health_routes),
        ("--metrics-bind-address", metrics, [web.get("/metrics", told)]),
    ):
        if address is not None:
            try:
                urls.append(await _listen(stack, address, routes))
            except OSError as error:
                text = f"{flag}: can't listen on {address.host}:{address.port}: {_reason(error)}"
                raise OSError(text) from error
    return urls


def _reason(error: OSError) -> str:
    """Why, without what asyncio says around it."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


async def _listen(stack: AsyncExitStack, address: Address, routes: list[web.RouteDef]) -> str:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, address.host or None, address.port)
    await site.start()
    port = runner.addresses[0][1]
    host = f"[{address.host}]" if ":" in address.host else address.host or "localhost"
    return f"http://{host}:{port}"
