"""What the controller tells of itself: metrics for Prometheus, and logs as JSON or text."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["JsonFormatter", "Metrics", "TextFormatter", "set_up_logging"]

_KINDS: Final = re.compile(r"/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/[^/?]+)?/([a-z]+)")
_VERBS: Final = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "WATCH": "watch",
}
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "error": 40}


class Metrics:
    """The controller's metrics, in a registry of their own."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self._requests = Counter(
            "ome_api_requests",
            "Requests to the API server, by verb, resource and HTTP status.",
            ("verb", "resource", "code"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "ome_api_request_duration_seconds",
            "Seconds until the API server answered, by verb.",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._reconciles = Counter(
            "ome_reconciles",
            "Reconciles, by kind and result (ok, held, gone, failed).",
            ("kind", "result"),
            registry=registry,
        )
        self._reconcile_seconds = Histogram(
            "ome_reconcile_duration_seconds",
            "Seconds that a reconcile took, requests included, by kind.",
            ("kind",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._plan_seconds = Histogram(
            "ome_plan_duration_seconds",
            "Seconds of CPU that planning a service took.",
            buckets=_SECONDS[:9],
            registry=registry,
        )
        self._lists = Counter(
            "ome_watch_lists",
            "Lists of a resource: one at start, and one after each gap that a watch couldn't bridge.",
            ("resource",),
            registry=registry,
        )
        self._watch_errors = Counter(
            "ome_watch_errors",
            "Failures of a list or watch, by resource and reason.",
            ("resource", "reason"),
            registry=registry,
        )
        self._events = Counter(
            "ome_watch_events",
            "Changes that watches told, by resource.",
            ("resource",),
            registry=registry,
        )
        self.depth = Gauge(
            "ome_queue_depth", "Objects that wait for a reconcile.", registry=registry
        )
        self.resyncs = Counter(
            "ome_resyncs", "Times that everything was looked at again.", registry=registry
        )
        self.leader = Gauge("ome_leader", "1 while this process leads, else 0.", registry=registry)
        self.objects = Gauge(
            "ome_cached_objects", "Objects in the cache, by kind.", ("kind",), registry=registry
        )
        self.config_valid = Gauge(
            "ome_config_valid", "1 while the ConfigMap can be read, else 0.", registry=registry
        )
        self.plugins = Gauge(
            "ome_engine_plugin_up",
            "1 for each engine plugin that works, 0 for one that failed to load or is quarantined.",
            ("plugin", "version"),
            registry=registry,
        )

    def request(self, method: str, url: str, code: str, seconds: float) -> None:
        """Count one request; that of a watch is answered when the watch begins."""
        found = _KINDS.match(url)
        verb = _VERBS.get(method, method.lower())
        self._requests.labels(verb, found[1] if found else "", code).inc()
        self._request_seconds.labels(verb).observe(seconds)

    def reconciled(self, kind: str, result: str, seconds: float) -> None:
        """Count one reconcile."""
        self._reconciles.labels(kind, result).inc()
        self._reconcile_seconds.labels(kind).observe(seconds)

    def planned(self, seconds: float) -> None:
        """Take the time of one plan."""
        self._plan_seconds.observe(seconds)

    def listed(self, resource: str) -> None:
        """Count one list."""
        self._lists.labels(resource).inc()

    def watch_failed(self, resource: str, reason: str) -> None:
        """Count one failure of a list or watch."""
        self._watch_errors.labels(resource, reason).inc()

    def watched(self, resource: str) -> None:
        """Count one change that a watch told."""
        self._events.labels(resource).inc()

    def exposition(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class _Formatter(logging.Formatter):
    """A record's own fields stand in its `fields` attribute (`extra={"fields": {…}}`)."""

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """What a line says, in its order."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        data: dict[str, Any] = {
            "ts": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            data["trace"] = self.formatException(record.exc_info)
        return data


class JsonFormatter(_Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        return json.dumps(self.fields(record), ensure_ascii=False, default=str)


class TextFormatter(_Formatter):
    """Time, level, logger and message, then the other fields as `key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; a traceback follows on its own."""
        data = self.fields(record)
        head = [data.pop(key) for key in ("ts", "level", "logger", "msg")]
        trace = data.pop("trace", "")
        rest = [f"{key}={json.dumps(value, default=str)}" for key, value in data.items()]
        line = "\t".join([*map(str, head), " ".join(rest)]).rstrip()
        return f"{line}\n{trace}" if trace else line


def set_up_logging(level: str = "info", encoder: str = "json") -> None:
    """Log to standard error at a level (debug, info, warn or error), as `json` or as `console`."""
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if encoder == "console" else JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("ome").setLevel(_LEVELS[level])
