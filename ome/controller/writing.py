"""Carrying out a plan: what differs is applied, what the plan says to remove is deleted, nothing else.

One field manager applies every field of a plan's objects and no others. An object that isn't controlled
by the service is never touched. A plan's `Hold` costs no request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import InferenceService, ObjectRef
from ome.controller.client import Api, ApiError
from ome.controller.mending import Ending, drop_mender, mend
from ome.controller.owned import (
    APPLIED_HASH,
    Owned,
    OwnedObjects,
    controlling_service,
    desired_hash,
    ending_of,
)
from ome.controller.resources import BY_KIND, ref_of
from ome.planning.metadata import EXTERNAL
from ome.planning.plan import Apply, Plan, Remove

__all__ = ["Failure", "Outcome", "Writer"]

Json = dict[str, Any]

# Owns a Deployment's count between us and an autoscaler, so that it isn't lost on the way.
_REPLICAS_MANAGER: Final = "ome-controller-replicas"
_INGRESS: Final = "ingress"
# On an HPA: its target may have a ScaledObject too (KEDA's admission of ScaledObjects).
_KEDA_MAY_TAKE: Final = "validations.keda.sh/hpa-ownership"

# The words of an authorizer; a quota, a webhook or a namespace that ends forbids in other ones.
_LACKS_RIGHT: Final = re.compile(r'User ".*" cannot ').search


@dataclass(frozen=True, slots=True)
class Failure:
    """One object that couldn't be written: the component, and what went wrong in words for the user.

    `stops` says that nothing after it is tried; `waits` that it comes right by itself, soon.
    """

    component: str
    ref: ObjectRef
    reason: str
    message: str
    stops: bool = True
    waits: bool = False


@dataclass(slots=True)
class Outcome:
    """What carrying out a plan came to. `unreached` are the components that came after what stopped it."""

    failures: list[Failure] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)


class Writer:
    """Writes what services own. `unreadable` tells why a kind's objects aren't known, "" when they are."""

    def __init__(self, api: Api, owned: OwnedObjects, unreadable: Mapping[str, str]) -> None:
        self._api = api
        self._owned = owned
        self._unreadable = unreadable

    async def carry_out(self, service: InferenceService, plan: Plan) -> Outcome:
        """Bring about what a plan asks for, component by component. Raises Unreachable, NotLeading, and
        ApiError for a conflict: what is known is older than what is.

        An object that the controller may not write is left out; any other failure stops what comes
        after it, as documented. What has failed removes nothing.
        """
        outcome = Outcome()
        for component, action in plan.actions.items():
            if any(failure.stops for failure in outcome.failures):
                outcome.unreached.append(component)
                continue
            keep: set[ObjectRef] = set()
            if isinstance(action, Apply):
                keep = {ref_of(each) for each in action.objects}
                if not await self._apply_all(service, component, action.objects, outcome):
                    continue
            elif not isinstance(action, Remove):
                continue
            await self._prune(service, component, keep, outcome)
        return outcome

    async def _apply_all(
        self,
        service: InferenceService,
        component: str,
        objects: Iterable[Json],
        outcome: Outcome,
    ) -> bool:
        whole = True
        for desired in objects:
            failure = await self._apply(service, component, desired, outcome)
            if failure is not None:
                outcome.failures.append(failure)
                whole = False
                if failure.stops:
                    break
        return whole

    async def _apply(
        self, service: InferenceService, component: str, desired: Json, outcome: Outcome
    ) -> Failure | None:
        ref = ref_of(desired)
        if problem := self._unreadable.get(ref.kind):
            return Failure(component, ref, "NotReadable", problem, stops=False)
        wanted = desired_hash(desired)
        known = self._owned.get(ref)
        try:
            if known is None:
                refused = await self._create(service, component, desired, wanted)
                if refused is not None:
                    return refused
            elif known.owner != service.uid:
                of = known.service if known.owner else ""
                return _not_ours(service, component, ref, of, known.ending)
            elif known.ending is not None:
                return _ending(component, ref, known.ending)
            elif known.is_as(desired, wanted):
                return None
            else:
                await self._update(known, desired, wanted)
        except Ending as ending:
            return _ending(component, ref, ending.finalizers)
        except ApiError as error:
            if error.is_conflict:
                raise
            return _failure(component, ref, error)
        outcome.written.append(str(ref))
        return None

    async def _create(
        self, service: InferenceService, component: str, desired: Json, wanted: str
    ) -> Failure | None:
        """Apply an object that isn't known: one that exists all the same is ours, or is left alone."""
        ref = ref_of(desired)
        resource = BY_KIND[ref.kind]
        is_keda = ref.kind == "ScaledObject"
        if is_keda and await self._api.look(resource, ref.namespace, ref.name) is None:
            await self._let_go(service, component)
        try:
            made = await self._api.apply_new(resource, _marked(desired, wanted))
        except ApiError as error:
            if not error.is_conflict:
                raise
            found = await self._api.look(resource, ref.namespace, ref.name)
            if found is None:
                raise
            owner = controlling_service(found["metadata"])
            ending = ending_of(found["metadata"])
            if owner.get("uid") != service.uid:
                return _not_ours(service, component, ref, owner.get("name", ""), ending)
            if ending is not None:
                return _ending(component, ref, ending)
            body = _marked(desired, wanted, found["metadata"]["uid"])
            made = await self._api.apply(resource, body, force=True)
        self._owned.applied(made, wanted)
        return None

    async def _update(self, known: Owned, desired: Json, wanted: str) -> None:
        resource = BY_KIND[known.ref.kind]
        if (
            known.ref.kind == "Deployment"
            and known.owns_replicas
            and "replicas" not in desired["spec"]
            and known.replicas is not None
        ):
            await self._hand_over_replicas(known)
        body = _marked(desired, wanted, known.uid)
        try:
            made = await drop_mender(self._api, await self._api.apply(resource, body, force=True))
        except ApiError as error:
            if error.status != 422:
                raise
            made = await mend(self._api, known, body, error)
        self._owned.applied(made, wanted)

    async def _let_go(self, service: InferenceService, component: str) -> None:
        """Let KEDA's webhook take a ScaledObject although an HPA of ours still counts: it goes
        afterwards, so that there is never none."""
        for each in self._owned.of(service.uid):
            if each.ref.kind == "HorizontalPodAutoscaler" and each.component == component:
                metadata = {"uid": each.uid, "annotations": {_KEDA_MAY_TAKE: "false"}}
                resource = BY_KIND[each.ref.kind]
                await self._api.patch(
                    resource, each.ref.namespace, each.ref.name, {"metadata": metadata}
                )

    async def _hand_over_replicas(self, known: Owned) -> None:
        """Let another manager own the count before ours gives it up: a field that nobody owns falls back to
        its default, and pods would go. An autoscaler takes it over when it first scales."""
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": known.ref.name,
                "namespace": known.ref.namespace,
                "uid": known.uid,
            },
            "spec": {"replicas": known.replicas},
        }
        await self._api.apply(BY_KIND["Deployment"], body, force=True, manager=_REPLICAS_MANAGER)

    async def _prune(
        self, service: InferenceService, component: str, keep: set[ObjectRef], outcome: Outcome
    ) -> None:
        """Delete what the service controls of a component, except what is to be kept."""
        label = EXTERNAL if component == _INGRESS else component
        for each in list(self._owned.of(service.uid)):
            if each.component != label or each.ref in keep or each.ending is not None:
                continue
            try:
                await self._api.delete(
                    BY_KIND[each.ref.kind], each.ref.namespace, each.ref.name, each.uid
                )
            except ApiError as error:
                if not (error.is_missing or error.is_conflict):
                    outcome.failures.append(_failure(component, each.ref, error))
                    continue
            self._owned.remove(each.ref, each.uid)
            outcome.written.append(f"-{each.ref}")

    async def carry_out_effects(self, effects: Iterable[Json]) -> list[Json]:
        """Create what comes before everything else. Returns what the API server has now. Raises
        ApiError."""
        made = []
        for effect in effects:
            ref = ref_of(effect)
            resource = BY_KIND[ref.kind]
            try:
                made.append(await self._api.create(resource, ref.namespace, effect))
            except ApiError as error:
                if not error.is_conflict:
                    raise
                found = await self._api.get(resource, ref.namespace, ref.name)
                if found.get("data") != effect.get("data"):
                    raise
                made.append(found)
        return made


def _marked(desired: Json, wanted: str, uid: str = "") -> Json:
    """The object with its hash, and with the uid that the object of this name must have."""
    metadata = desired["metadata"]
    annotations = {**(metadata.get("annotations") or {}), APPLIED_HASH: wanted}
    marked = {**metadata, "annotations": annotations, **({"uid": uid} if uid else {})}
    return {**desired, "metadata": marked}


def _not_ours(
    service: InferenceService,
    component: str,
    ref: ObjectRef,
    of: str,
    ending: tuple[str, ...] | None,
) -> Failure:
    """An object of this name that the service doesn't control. When it is of an InferenceService of the
    same name that was deleted, the garbage collector is on its way."""
    where = f'{ref.kind} "{ref.name}" in namespace {ref.namespace}'
    if of == service.name:
        message = (
            f"{where} belongs to a deleted InferenceService of this name and is not gone yet"
            f"{_held_by(ending)}; OME goes on when it is"
        )
        return Failure(component, ref, "WaitingForDeletion", message, waits=True)
    owner = f"InferenceService/{service.namespace}/{service.name}"
    message = f"{where} is not controlled by expected owner {owner}"
    if ending is not None:
        message = f"{message}, and is being deleted{_held_by(ending)}; OME goes on when it is gone"
        return Failure(component, ref, "WaitingForDeletion", message, stops=False, waits=True)
    message = f"{message}; it is left as it is: rename or delete it, or rename the InferenceService"
    return Failure(component, ref, "NotControlled", message, stops=False)


def _ending(component: str, ref: ObjectRef, finalizers: tuple[str, ...]) -> Failure:
    message = (
        f'{ref.kind} "{ref.name}" in namespace {ref.namespace} is being deleted{_held_by(finalizers)}; '
        "OME makes it anew when it is gone"
    )
    return Failure(component, ref, "WaitingForDeletion", message, stops=False, waits=True)


def _held_by(finalizers: tuple[str, ...] | None) -> str:
    return f" (its finalizers hold it up: {', '.join(finalizers)})" if finalizers else ""


def _failure(component: str, ref: ObjectRef, error: ApiError) -> Failure:
    if error.is_of_ending_namespace:
        return Failure(component, ref, "NamespaceTerminating", error.message, waits=True)
    if error.is_forbidden:
        fix = (
            "; grant the controller's service account this verb"
            if _LACKS_RIGHT(error.message)
            else ""
        )
        return Failure(component, ref, "Forbidden", f"{error.message}{fix}", stops=False)
    if error.is_missing:
        return Failure(component, ref, "NotServed", error.message, stops=False)
    return Failure(component, ref, error.reason or "ApplyFailed", error.message)
