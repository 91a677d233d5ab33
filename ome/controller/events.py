"""Kubernetes events: each is sent once per change, under a name that it would have again.

Source: OME "Troubleshoot an InferenceService" document (v1.3) for reasons; events come from
`v1beta1Controllers`.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime
from typing import Any, Final

from ome.api import API_VERSION, ApiObject
from ome.controller.client import Api, ApiError
from ome.controller.resources import BY_KIND, Resource
from ome.planning.conditions import stamp
from ome.planning.plan import Event

__all__ = ["send"]

SOURCE: Final = "v1beta1Controllers"
_LONGEST: Final = 1024
_log: Final = logging.getLogger("ome.controller.event")


async def send(api: Api, about: ApiObject, event: Event, now: datetime) -> None:
    """Send an event about an object; one that was sent before is counted up.

    What the API server refuses is logged and given up: an event never holds up what it tells of. Raises
    Unreachable and NotLeading.
    """
    namespace = about.namespace or "default"
    # Another object of the name has events of its own.
    digest = hashlib.sha256(f"{about.uid}/{event.digest}".encode()).hexdigest()[:16]
    name = f"{about.name}.{digest}"
    resource = BY_KIND["Event"]
    at = stamp(now)
    try:
        try:
            await api.create(resource, namespace, _body(about, event, namespace, name, at))
        except ApiError as error:
            if not error.is_conflict:
                raise
            await _count(api, resource, namespace, name, at)
    except ApiError as error:
        fields = {"object": str(about.ref), "reason": event.reason, "error": error.message}
        level = logging.DEBUG if error.is_of_ending_namespace else logging.WARNING
        _log.log(level, "could not send an event", extra={"fields": fields})


async def _count(api: Api, resource: Resource, namespace: str, name: str, at: str) -> None:
    """Count an event up. One that has expired in between was told often enough."""
    try:
        found = await api.get(resource, namespace, name)
        count = (found.get("count") or 1) + 1
        await api.patch(resource, namespace, name, {"count": count, "lastTimestamp": at})
    except ApiError as error:
        if not error.is_missing:
            raise


def _body(about: ApiObject, event: Event, namespace: str, name: str, at: str) -> dict[str, Any]:
    message = event.message
    if len(message.encode()) > _LONGEST:
        message = message.encode()[: _LONGEST - 4].decode("utf-8", "ignore") + " ..."
    involved = {
        "apiVersion": API_VERSION,
        "kind": about.KIND,
        "name": about.name,
        "uid": about.uid,
        "resourceVersion": about.metadata.resource_version or "",
    }
    if about.namespace:
        involved["namespace"] = about.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved,
        "type": event.type,
        "reason": event.reason,
        "message": message,
        "source": {"component": SOURCE},
        "reportingComponent": SOURCE,
        "reportingInstance": SOURCE,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
