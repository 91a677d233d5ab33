"""Carrying out a plan: what is applied and deleted, what is left alone, and what each failure comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ome.api import InferenceService, ObjectRef
from ome.controller.client import ApiError
from ome.controller.owned import APPLIED_HASH
from ome.controller.resources import ref_of
from ome.controller.writing import Failure, Outcome, Writer
from ome.planning.plan import Action, Apply, Hold, Plan, Remove
from ome.testing.builders import service
from tests.controller.conftest import WritingApi, in_loop

Json = dict[str, Any]
CHAT = ObjectRef("InferenceService", "demo", "chat")
ENGINE = ObjectRef("Deployment", "demo", "chat-engine")
ROUTER = ObjectRef("Deployment", "demo", "chat-router")
HPA = ObjectRef("HorizontalPodAutoscaler", "demo", "chat-engine")
OWNER = {
    "apiVersion": "ome.io/v1beta1",
    "kind": "InferenceService",
    "name": "chat",
    "uid": "uid-chat",
    "controller": True,
}
API_VERSIONS = {
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "ScaledObject": "keda.sh/v1alpha1",
    "Service": "v1",
}


def desired(
    ref: ObjectRef, component: str = "engine", owner: str = "uid-chat", **spec: Any
) -> Json:
    """An object of the service, as a plan has it."""
    return {
        "apiVersion": API_VERSIONS[ref.kind],
        "kind": ref.kind,
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": {"ome.io/inferenceservice": "chat", "component": component},
            "ownerReferences": [{**OWNER, "uid": owner}],
        },
        "spec": spec or {"paused": False},
    }


async def carry_out(
    server: WritingApi, actions: dict[str, Action], unreadable: dict[str, str] | None = None
) -> Outcome:
    item = service(metadata={"uid": "uid-chat"})
    assert isinstance(item, InferenceService)
    api: Any = server
    writer = Writer(api, server.owned, {} if unreadable is None else unreadable)
    return await writer.carry_out(item, Plan(CHAT, actions))


def refusal(status: int, reason: str, message: str) -> Callable[[], None]:
    def refuse() -> None:
        raise ApiError(status, reason, message)

    return refuse


@in_loop
async def test_what_is_as_it_should_be_costs_nothing() -> None:
    server = WritingApi()
    actions: dict[str, Action] = {"engine": Apply((desired(ENGINE), desired(HPA)))}
    first = await carry_out(server, actions)
    assert (first.failures, first.written) == ([], [str(ENGINE), str(HPA)])
    assert server.done() == [f"apply new {ENGINE}", f"apply new {HPA}"]
    assert server.objects[ENGINE]["metadata"]["annotations"].keys() == {APPLIED_HASH}
    server.calls.clear()
    again = await carry_out(server, actions)
    assert (again, server.calls) == (Outcome(), [])
    # Another desire, or somebody's hand.
    await carry_out(server, {"engine": Apply((desired(ENGINE, paused=True), desired(HPA)))})
    assert server.calls == [("apply", str(ENGINE), "ome-controller", True)]


@in_loop
async def test_an_object_of_ours_that_the_watch_has_not_told_of() -> None:
    """The answer to the write that made it was lost, say."""
    server = WritingApi()
    server.has(desired(ENGINE, paused=True), watched=False)
    outcome = await carry_out(server, {"engine": Apply((desired(ENGINE),))})
    assert outcome == Outcome(written=[str(ENGINE)])
    assert server.done() == [f"apply new {ENGINE}", "look chat-engine", f"apply {ENGINE}"]
    assert server.objects[ENGINE]["spec"] == {"paused": False}


@in_loop
async def test_a_kind_that_can_be_read_since() -> None:
    server = WritingApi()
    unreadable = {"HorizontalPodAutoscaler": "it can't be read"}
    server.at(f"apply new {ENGINE}", unreadable.clear)
    outcome = await carry_out(
        server, {"engine": Apply((desired(ENGINE), desired(HPA)))}, unreadable
    )
    assert outcome.failures == []
    assert set(server.objects) == {ENGINE, HPA}


@in_loop
async def test_a_kind_that_cannot_be_read_holds_nothing_else_up() -> None:
    server = WritingApi()
    stale = server.has(desired(ObjectRef("Deployment", "demo", "chat-engine-leader")))
    unreadable = {"HorizontalPodAutoscaler": "it can't be read"}
    actions: dict[str, Action] = {
        "engine": Apply((desired(HPA), desired(ENGINE))),
        "router": Apply((desired(ROUTER, "router"),)),
    }
    outcome = await carry_out(server, actions, unreadable)
    assert outcome.failures == [
        Failure("engine", HPA, "NotReadable", "it can't be read", stops=False)
    ]
    # What isn't whole removes nothing.
    assert set(server.objects) == {ENGINE, ROUTER, ref_of(stale)}


@in_loop
async def test_what_is_known_is_older_than_what_is() -> None:
    """The object was deleted and made anew, and the watch hasn't told yet."""
    server = WritingApi()
    server.has(desired(ENGINE))
    server.objects[ENGINE]["metadata"]["uid"] = "another"
    with pytest.raises(ApiError, match="uid mismatch") as caught:
        await carry_out(server, {"engine": Apply((desired(ENGINE, paused=True),))})
    assert caught.value.is_conflict


NOT_OURS = {
    "of nobody": [],
    "of KServe": [
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "name": "chat",
            "uid": "x",
            "controller": True,
        }
    ],
    "of somebody else": [{"kind": "Other", "name": "chat", "uid": "x", "controller": True}],
    "of another service": [
        {**OWNER, "name": "talk", "uid": "x"},
    ],
    "of ours, which doesn't control it": [
        {**OWNER, "controller": False},
    ],
}
LEFT = (
    'Deployment "chat-engine" in namespace demo is not controlled by expected owner '
    "InferenceService/demo/chat; it is left as it is: rename or delete it, or rename the InferenceService"
)
GONE_SOON = (
    'Deployment "chat-engine" in namespace demo belongs to a deleted InferenceService of this name and is '
    "not gone yet; OME goes on when it is"
)


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("name", NOT_OURS)
@in_loop
async def test_what_is_not_ours_is_left_alone(name: str, watched: bool) -> None:
    server = WritingApi()
    raw = desired(ENGINE, image="theirs")
    raw["metadata"]["ownerReferences"] = NOT_OURS[name]
    server.has(raw, watched=watched)
    actions: dict[str, Action] = {
        "engine": Apply((desired(ENGINE), desired(HPA))),
        "router": Remove(),
    }
    outcome = await carry_out(server, actions)
    assert outcome.failures == [Failure("engine", ENGINE, "NotControlled", LEFT, stops=False)]
    assert outcome.written == [str(HPA)]
    assert server.objects[ENGINE]["spec"] == {"image": "theirs"}


@pytest.mark.parametrize("watched", [True, False])
@in_loop
async def test_what_a_deleted_namesake_has_left_is_waited_for(watched: bool) -> None:
    server = WritingApi()
    server.has(desired(ENGINE, owner="uid-old"), watched=watched)
    outcome = await carry_out(server, {"engine": Apply((desired(ENGINE), desired(HPA)))})
    waits = Failure("engine", ENGINE, "WaitingForDeletion", GONE_SOON, waits=True)
    assert (outcome.failures, outcome.written) == ([waits], [])


@in_loop
async def test_what_goes_between_the_conflict_and_the_look_is_tried_again() -> None:
    server = WritingApi()
    raw = desired(ENGINE)
    raw["metadata"]["ownerReferences"] = []
    server.has(raw, watched=False)
    server.at("look chat-engine", lambda: server.loses(ENGINE))
    with pytest.raises(ApiError, match="has been modified"):
        await carry_out(server, {"engine": Apply((desired(ENGINE),))})
    assert await carry_out(server, {"engine": Apply((desired(ENGINE),))}) == Outcome(
        written=[str(ENGINE)]
    )


@in_loop
async def test_another_conflict_is_tried_again() -> None:
    server = WritingApi()
    text = 'Operation cannot be fulfilled on resourcequotas "few"'
    server.at(f"apply new {ENGINE}", refusal(409, "Conflict", text))
    with pytest.raises(ApiError, match="resourcequotas"):
        await carry_out(server, {"engine": Apply((desired(ENGINE),))})


RBAC = (
    'deployments.apps "chat-engine" is forbidden: User "system:serviceaccount:ome:ome" cannot patch '
    'resource "deployments" in API group "apps" in the namespace "demo"'
)
QUOTA = 'deployments.apps "chat-engine" is forbidden: exceeded quota: few, requested: 1, used: 1, limited: 1'
REFUSED: dict[str, tuple[int, str, str, str, str, bool]] = {
    # HTTP status, its reason and message; the failure's reason and message, and whether it stops.
    "by RBAC": (
        403,
        "Forbidden",
        RBAC,
        "Forbidden",
        f"{RBAC}; grant the controller's service account this verb",
        False,
    ),
    "by a quota": (403, "Forbidden", QUOTA, "Forbidden", QUOTA, False),
    "as unauthorized": (401, "Unauthorized", "Unauthorized", "Forbidden", "Unauthorized", False),
    "as unknown": (404, "NotFound", "not found", "NotServed", "not found", False),
    "as invalid": (422, "Invalid", "spec: Required value", "Invalid", "spec: Required value", True),
    "for no reason": (500, "", "etcd is away", "ApplyFailed", "etcd is away", True),
}


@pytest.mark.parametrize("name", REFUSED)
@in_loop
async def test_what_the_server_refuses(name: str) -> None:
    status, said, message, reason, told, stops = REFUSED[name]
    server = WritingApi()
    stale = server.has(desired(ObjectRef("Deployment", "demo", "chat-engine-leader")))
    server.at(f"apply new {ENGINE}", refusal(status, said, message))
    actions: dict[str, Action] = {
        "engine": Apply((desired(ENGINE), desired(HPA))),
        "router": Apply((desired(ROUTER, "router"),)),
    }
    outcome = await carry_out(server, actions)
    assert outcome.failures == [Failure("engine", ENGINE, reason, told, stops=stops)]
    assert outcome.written == ([] if stops else [str(HPA), str(ROUTER)])
    assert ref_of(stale) in server.objects


@in_loop
async def test_a_namespace_that_ends() -> None:
    server = WritingApi()
    text = (
        'deployments.apps "chat-engine" is forbidden: unable to create new content in namespace demo '
        "because it is being terminated"
    )
    server.at(f"apply new {ENGINE}", refusal(403, "Forbidden", text))
    outcome = await carry_out(server, {"engine": Apply((desired(ENGINE), desired(HPA)))})
    ends = Failure("engine", ENGINE, "NamespaceTerminating", text, waits=True)
    assert (outcome.failures, server.objects) == ([ends], {})


@in_loop
async def test_a_look_that_is_refused() -> None:
    server = WritingApi()
    server.has(desired(ENGINE, image="theirs"), watched=False)
    server.at("look chat-engine", refusal(403, "Forbidden", "no"))
    outcome = await carry_out(server, {"engine": Apply((desired(ENGINE),))})
    assert outcome.failures == [Failure("engine", ENGINE, "Forbidden", "no", stops=False)]
    assert server.objects[ENGINE]["spec"] == {"image": "theirs"}


@in_loop
async def test_what_is_removed() -> None:
    """What the service controls of a component, and nothing else."""
    server = WritingApi()
    server.has(desired(ENGINE))
    server.has(desired(ROUTER, "router"))
    foreign = desired(ObjectRef("Deployment", "demo", "theirs"), "router", owner="uid-other")
    server.has(foreign)
    held = Hold(())
    outcome = await carry_out(server, {"engine": held, "router": Remove()})
    assert (outcome.failures, outcome.written) == ([], [f"-{ROUTER}"])
    assert set(server.objects) == {ENGINE, ref_of(foreign)}
    assert [call[0] for call in server.calls] == ["delete"]
    # Neither is it deleted twice when the watch is late.
    assert (await carry_out(server, {"engine": held, "router": Remove()})) == Outcome()


REMOVALS: dict[str, tuple[int, list[str], list[str]]] = {
    # HTTP status; the failures' reasons, and what counts as done.
    "that is gone": (404, [], [f"-{ROUTER}"]),
    "that is another by now": (409, [], [f"-{ROUTER}"]),
    "that may not be deleted": (403, ["Forbidden"], []),
    "at a bad time": (500, ["Oops"], []),
}


@pytest.mark.parametrize("name", REMOVALS)
@in_loop
async def test_removing_an_object(name: str) -> None:
    status, reasons, written = REMOVALS[name]
    server = WritingApi()
    server.has(desired(ROUTER, "router"))
    server.at("delete chat-router", refusal(status, "Oops", "no"))
    outcome = await carry_out(server, {"router": Remove()})
    assert [each.reason for each in outcome.failures] == reasons
    assert outcome.written == written
    assert (server.owned.get(ROUTER) is None) == bool(written)


@in_loop
async def test_the_count_is_handed_over_before_it_is_given_up() -> None:
    server = WritingApi()
    await carry_out(server, {"engine": Apply((desired(ENGINE, replicas=3),))})
    server.calls.clear()
    await carry_out(server, {"engine": Apply((desired(ENGINE, paused=True),))})
    assert server.calls == [
        ("apply", str(ENGINE), "ome-controller-replicas", True),
        ("apply", str(ENGINE), "ome-controller", True),
    ]
    assert server.objects[ENGINE]["spec"] == {"replicas": 3, "paused": True}


@in_loop
async def test_keda_may_take_over_what_an_hpa_of_ours_still_counts() -> None:
    """KEDA's own admission refuses a ScaledObject beside an HPA that doesn't say so."""
    server = WritingApi()
    await carry_out(server, {"engine": Apply((desired(ENGINE), desired(HPA)))})
    server.calls.clear()
    scaled = desired(ObjectRef("ScaledObject", "demo", "chat-engine"))
    outcome = await carry_out(server, {"engine": Apply((desired(ENGINE), scaled))})
    assert outcome.failures == []
    assert server.done() == [
        "look chat-engine",
        "patch HorizontalPodAutoscaler",
        f"apply new {ref_of(scaled)}",
        "delete chat-engine",
    ]
    allowed = {"uid": "uid-102", "annotations": {"validations.keda.sh/hpa-ownership": "false"}}
    assert server.calls[1][-1] == {"metadata": allowed}


@in_loop
async def test_an_hpa_is_not_let_go_for_what_is_not_ours() -> None:
    server = WritingApi()
    await carry_out(server, {"engine": Apply((desired(ENGINE), desired(HPA)))})
    scaled = desired(ObjectRef("ScaledObject", "demo", "chat-engine"))
    server.has({**scaled, "metadata": {**scaled["metadata"], "ownerReferences": []}}, watched=False)
    outcome = await carry_out(server, {"engine": Apply((desired(ENGINE), scaled))})
    assert [each.reason for each in outcome.failures] == ["NotControlled"]
    assert server.objects[HPA]["metadata"]["annotations"].keys() == {APPLIED_HASH}


SERVICE = ObjectRef("Service", "demo", "chat-engine")
# The ports that it has, and whether it is made anew to have 8080 alone.
PORTS = {"another": ([99], True), "one more": ([8080, 99], True), "ours": ([8080], False)}


@pytest.mark.parametrize("name", PORTS)
@in_loop
async def test_ports_that_somebody_has_changed(name: str) -> None:
    """An apply leaves foreign ports, and is refused for ours beside them."""
    ports, anew = PORTS[name]
    server = WritingApi()
    wanted = desired(SERVICE, ports=[{"port": 8080}])
    old = server.has({**wanted, "spec": {"ports": [{"port": each} for each in ports]}})
    server.at(f"apply {SERVICE}", refusal(422, "Invalid", "spec.ports[0].name: Required value"))
    outcome = await carry_out(server, {"engine": Apply((wanted,))})
    assert [each.reason for each in outcome.failures] == ([] if anew else ["Invalid"])
    new = server.objects[SERVICE]
    assert (new["metadata"]["uid"] != old["metadata"]["uid"]) == anew
    assert new["spec"] == ({"ports": [{"port": 8080}]} if anew else old["spec"])


def revision(data: Json) -> Json:
    metadata = {"name": "cr-rt-1", "namespace": "ome"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
    }


@in_loop
async def test_effects() -> None:
    server = WritingApi()
    api: Any = server
    writer = Writer(api, server.owned, {})
    (made,) = await writer.carry_out_effects([revision({"a": 1})])
    assert made["metadata"]["uid"]
    # Somebody was there first, with the same.
    assert await writer.carry_out_effects([revision({"a": 1})]) == [made]
    # With something else.
    with pytest.raises(ApiError, match="already exists"):
        await writer.carry_out_effects([revision({"a": 2})])
    server.at("create ControllerRevision", refusal(500, "Oops", "no"))
    with pytest.raises(ApiError, match="no"):
        await writer.carry_out_effects([revision({"a": 1})])
