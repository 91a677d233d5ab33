"""Setting right what an apply can't: an object of ours whose fields somebody else has changed so that ours
beside theirs are invalid.

Server-side apply sets our fields and leaves those that only others own: a probe's `tcpSocket` beside our
`httpGet`, a disruption budget's `maxUnavailable` beside our `minAvailable`. The API server refuses both
together. A Deployment gets its pod template as OME renders it, with the containers and volumes that others
have added; anything else is deleted and made anew, which costs nothing there.
"""

from __future__ import annotations

from typing import Any, Final

from ome.controller.client import MANAGER, Api, ApiError
from ome.controller.fields import MENDER, foreign_paths
from ome.controller.owned import Owned, ending_of
from ome.controller.resources import BY_KIND

__all__ = ["Ending", "drop_mender", "mend"]

Json = dict[str, Any]

# Nothing runs in these: a new one is as good as the old one.
_MADE_ANEW: Final = frozenset({"HorizontalPodAutoscaler", "PodDisruptionBudget", "Service"})
_NAMED_LISTS: Final = ("initContainers", "containers", "volumes")


class Ending(Exception):
    """An object is being deleted, and its finalizers hold it up."""

    def __init__(self, finalizers: tuple[str, ...]) -> None:
        super().__init__(*finalizers)
        self.finalizers = finalizers


async def mend(api: Api, known: Owned, body: Json, error: ApiError) -> Json:
    """Bring about an object of ours whose update was refused as invalid, with `error`.

    Returns what the API server made of it. Raises `error` where nobody else's fields are the reason, Ending
    where the object has to go first, and ApiError.
    """
    resource, ref = BY_KIND[known.ref.kind], known.ref
    found = await api.get(resource, ref.namespace, ref.name)
    metadata = found["metadata"]
    if metadata["uid"] != known.uid:
        raise error
    if ref.kind == "Deployment" and foreign_paths(metadata, "template", "spec"):
        return await _put_template(api, found, body, error)
    if ref.kind not in _MADE_ANEW or not _is_altered(found, body):
        raise error
    try:
        await api.delete(resource, ref.namespace, ref.name, known.uid)
    except ApiError as refused:
        if not refused.is_missing:
            raise
    new = {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "uid"}}
    try:
        return await api.apply_new(resource, new)
    except ApiError as refused:
        if not refused.is_conflict:
            raise
        there = await api.get(resource, ref.namespace, ref.name)
        ending = ending_of(there["metadata"])
        if ending is None:
            raise
        raise Ending(ending) from refused


def _is_altered(found: Json, body: Json) -> bool:
    """Whether somebody else's fields are in an object. The API server itself fills in some of a Service's
    that nobody owns."""
    if found["kind"] == "Service":
        return not _ports(found) <= _ports(body)
    return bool(foreign_paths(found["metadata"]))


def _ports(service: Json) -> set[tuple[int, str]]:
    ports = service["spec"].get("ports") or ()
    return {(each["port"], each.get("protocol") or "TCP") for each in ports}


async def _put_template(api: Api, found: Json, body: Json, error: ApiError) -> Json:
    """One write, so that pods are replaced once: theirs goes in the same moment in which ours comes."""
    resource, metadata = BY_KIND["Deployment"], found["metadata"]
    pod = _with_foreign(body["spec"]["template"]["spec"], found["spec"]["template"]["spec"])
    patch = {
        "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "spec": {"template": {"spec": pod}},
    }
    namespace, name = metadata["namespace"], metadata["name"]
    try:
        await api.patch(resource, namespace, name, patch, manager=MENDER)
    except ApiError as refused:
        raise error if refused.status == 422 else refused from None
    made = await api.apply(resource, body, force=True, manager=MANAGER)
    return await drop_mender(api, made)


def _with_foreign(ours: Json, live: Json) -> Json:
    """Our pod, with the containers and volumes of others. A merge patch replaces lists whole."""
    pod = dict(ours)
    for name in _NAMED_LISTS:
        items = list(ours.get(name) or ())
        named = {each["name"] for each in items}
        items += [each for each in live.get(name) or () if each["name"] not in named]
        if items:
            pod[name] = items
    return pod


async def drop_mender(api: Api, raw: Json) -> Json:
    """Give up what was owned for the moment of mending: fields with two owners would stay when OME no
    longer wants them. Returns the Deployment as it is then; any other object as it is."""
    metadata = raw["metadata"]
    entries = metadata.get("managedFields") or []
    kept = [each for each in entries if each.get("manager") != MENDER]
    if len(kept) == len(entries):
        return raw
    changed = {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "managedFields": kept,
    }
    return await api.patch(
        BY_KIND[raw["kind"]], metadata["namespace"], metadata["name"], {"metadata": changed}
    )
