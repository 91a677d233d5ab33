"""`ome controller`: the controller process."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from typing import Any, Final

from ome.api import OmeError
from ome.cli.input import load_engines
from ome.cli.output import error as tell
from ome.engines.engines import Engines
from ome.snapshot import DEFAULT_OME_NAMESPACE

__all__ = ["run"]

_NEEDS: Final = (
    "error: the controller's own packages are missing ({name}); install them with: "
    "pip install 'ome[controller]'"
)


class _Unusable(Exception):
    """A flag that can't be used."""


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code."""
    try:
        import aiohttp  # noqa: F401
        import kubernetes.aio  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        print(_NEEDS.format(name=error.name), file=sys.stderr)
        return 1
    from ome.controller.telemetry import set_up_logging

    try:
        settings = _settings(options)
        engines = load_engines(options)
    except OmeError as refused:
        for problem in refused.problems:
            tell(problem)
        return 2
    except _Unusable as error:
        print(f"error: {error}\nSee 'ome controller --help' for usage.", file=sys.stderr)
        return 2
    set_up_logging(options.zap_log_level, options.zap_encoder)
    return asyncio.run(_run(settings, engines))


def _settings(options: argparse.Namespace) -> Any:
    from ome.controller.leading import Times
    from ome.controller.options import Options, parse_address, parse_duration

    if options.webhook == "true":
        raise _Unusable("--webhook: this version of OME serves no admission webhooks")

    def read(name: str, parse: Any) -> Any:
        return _read("--" + name.replace("_", "-"), getattr(options, name), parse)

    namespace = read("ome_namespace", _namespace)
    if not namespace:
        given = _read("POD_NAMESPACE", os.environ.get("POD_NAMESPACE"), _namespace)
        namespace = given or DEFAULT_OME_NAMESPACE
    elections = read("leader_election_namespace", _namespace)
    times = Times(
        read("leader_elect_lease_duration", parse_duration),
        read("leader_elect_renew_deadline", parse_duration),
        read("leader_elect_retry_period", parse_duration),
    )
    if problem := times.problem():
        raise _Unusable(problem)
    qps, burst = read("kube_api_qps", _number), read("kube_api_burst", _count)
    if qps and not burst:
        raise _Unusable("--kube-api-burst: it is needed when --kube-api-qps is set")
    read("config_cache_ttl", parse_duration)
    return Options(
        kubeconfig=options.kubeconfig,
        context=options.context,
        ome_namespace=namespace,
        health=read("health_probe_addr", parse_address),
        metrics=read("metrics_bind_address", parse_address),
        leader_elect=options.leader_elect == "true",
        election_namespace=elections or namespace,
        times=times,
        workers=read("inferenceservice_max_concurrent_reconciles", _positive),
        qps=qps,
        burst=burst,
        resync=read("sync_period", _positive_duration),
        retention=read("runtime_revision_retention", _count),
        grace=read("runtime_revision_grace_period", parse_duration),
    )


def _read(source: str, text: Any, parse: Any) -> Any:
    """A setting, parsed; what is wrong with it is told with where it comes from."""
    try:
        return parse(text)
    except ValueError as error:
        raise _Unusable(f"{source}: {error}") from None


def _namespace(text: str | None) -> str:
    from ome.planning.podchecks import is_label

    if text and not is_label(text):
        raise ValueError(f'"{text}" is no namespace: use lower-case letters, digits and dashes')
    return text or ""


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError(f'"{text}" is no number from 0 on')
    return found


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f'"{text}" is no whole number from 0 on')
    return int(text)


def _positive(text: str) -> int:
    found = _count(text)
    if found < 1:
        raise ValueError("it must be at least 1")
    return found


def _positive_duration(text: str) -> float:
    from ome.controller.options import parse_duration

    found = parse_duration(text)
    if found <= 0:
        raise ValueError("it must be greater than 0")
    return found


async def _run(settings: Any, engines: Engines) -> int:
    from kubernetes.aio.config import ConfigException

    from ome.controller.connecting import connect
    from ome.controller.controller import Controller

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        client = await connect(settings.kubeconfig, settings.context)
    except (ConfigException, OSError) as error:
        print(f"error: no cluster to connect to: {error}", file=sys.stderr)
        return 1
    try:
        await Controller(client, settings, engines).run(stop)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        await client.close()  # type: ignore[no-untyped-call]
    return 0
