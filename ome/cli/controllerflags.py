"""The flags of `ome controller`, as OME v1.3 documents them; a boolean stands alone or takes =true or
=false."""

from __future__ import annotations

import argparse
from typing import Any, Final

__all__ = ["add_controller_flags"]

_DURATION: Final = "DURATION"


def add_controller_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags. Values are checked when the command runs, so that `--help` stays cheap."""
    _add_cluster(parser)
    _add_election(parser)
    work = parser.add_argument_group("work")
    _flag(
        work, "--inferenceservice-max-concurrent-reconciles", "N", "1", "objects reconciled at once"
    )
    _flag(work, "--kube-api-qps", "N", "0", "requests a second, watches aside; 0 means no limit")
    _flag(work, "--kube-api-burst", "N", "0", "requests at once; needed when --kube-api-qps is set")
    _flag(work, "--sync-period", _DURATION, "10h", "how often everything is looked at again")
    _flag(
        work,
        "--config-cache-ttl",
        _DURATION,
        "30s",
        "accepted; the configuration is watched, so nothing is older than the watch",
    )
    _flag(work, "--runtime-revision-retention", "N", "10", "newest revisions kept of each runtime")
    _flag(
        work,
        "--runtime-revision-grace-period",
        _DURATION,
        "24h",
        "wait before deleting a revision no longer kept",
    )
    logs = parser.add_argument_group("logs")
    logs.add_argument("--zap-encoder", choices=("json", "console"), default="json")
    logs.add_argument("--zap-log-level", choices=("debug", "info", "warn", "error"), default="info")


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file")
    cluster.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    cluster.add_argument(
        "--ome-namespace",
        metavar="NS",
        help="namespace of the configuration and of revisions (default POD_NAMESPACE, else ome)",
    )
    cluster.add_argument(
        "--engines",
        metavar="NAMES",
        action="append",
        help="use these engine plugins alone, separated by commas, or none (default: all installed)",
    )
    endpoints = parser.add_argument_group("endpoints")
    _flag(endpoints, "--health-probe-addr", "ADDR", ":8081", "where to serve /healthz and /readyz")
    _flag(endpoints, "--metrics-bind-address", "ADDR", ":8080", "where to serve /metrics")
    _switch(endpoints, "--webhook", "serve the admission webhooks (not in this version)")


def _add_election(parser: argparse.ArgumentParser) -> None:
    election = parser.add_argument_group("leader election")
    _switch(election, "--leader-elect", "write only while holding the Lease")
    election.add_argument(
        "--leader-election-namespace",
        metavar="NS",
        help="namespace of the Lease (default the --ome-namespace)",
    )
    _flag(election, "--leader-elect-lease-duration", _DURATION, "15s", "how long the Lease holds")
    _flag(
        election,
        "--leader-elect-renew-deadline",
        _DURATION,
        "10s",
        "how long the leader writes after a renewal",
    )
    _flag(
        election, "--leader-elect-retry-period", _DURATION, "2s", "how often the Lease is renewed"
    )


def _flag(group: Any, name: str, metavar: str, default: str, text: str) -> None:
    group.add_argument(name, metavar=metavar, default=default, help=f"{text} (default {default})")


def _switch(group: Any, name: str, text: str) -> None:
    group.add_argument(
        name, nargs="?", const="true", default="false", choices=("true", "false"), help=text
    )
