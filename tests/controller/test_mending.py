"""Setting right what an apply can't; tests/integration/test_scaling.py has it with the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from ome.api import ObjectRef
from ome.controller.client import ApiError
from ome.controller.fields import MENDER
from ome.controller.mending import Ending, drop_mender, mend
from tests.controller.conftest import WritingApi, in_loop

Json = dict[str, Any]
INVALID = ApiError(422, "Invalid", "both can't be")
ENGINE = ObjectRef("Deployment", "demo", "chat-engine")
BUDGET = ObjectRef("PodDisruptionBudget", "demo", "chat-engine")
OURS: Json = {"containers": [{"name": "main", "image": "e:1"}]}
THEIRS: Json = {
    "containers": [{"name": "main", "image": "e:1", "args": ["x"]}, {"name": "mine"}],
    "volumes": [{"name": "v"}],
}
API_VERSIONS = {"Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1"}


def obj(ref: ObjectRef, spec: Json, foreign: Json | None = None, **metadata: Any) -> Json:
    """An object, with what another manager owns of its spec."""
    managed = [] if foreign is None else [{"manager": "x", "fieldsV1": {"f:spec": foreign}}]
    return {
        "apiVersion": API_VERSIONS[ref.kind],
        "kind": ref.kind,
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "uid": "u1",
            **({"managedFields": managed} if managed else {}),
            **metadata,
        },
        "spec": spec,
    }


def pods(spec: Json) -> Json:
    return {"template": {"spec": spec}}


FOREIGN: Json = {"f:template": {"f:spec": {"f:volumes": {}}}}


async def mended(server: WritingApi, body: Json) -> Json:
    known = server.owned.get(ENGINE) or server.owned.get(BUDGET)
    assert known is not None
    api: Any = server
    return await mend(api, known, body, INVALID)


@in_loop
async def test_a_deployment_keeps_what_others_added() -> None:
    server = WritingApi()
    server.has(obj(ENGINE, pods(THEIRS), FOREIGN))
    made = await mended(server, obj(ENGINE, pods(OURS)))
    patch, apply = server.calls[1:]
    assert (patch[0], apply[0]) == ("patch", "apply")
    pod = patch[-1]["spec"]["template"]["spec"]
    assert pod["containers"] == [*OURS["containers"], {"name": "mine"}]
    assert pod["volumes"] == [{"name": "v"}]
    assert patch[-1]["metadata"].keys() == {"uid", "resourceVersion"}
    assert made["metadata"]["uid"] == "u1"


@in_loop
async def test_what_is_invalid_by_itself_stays_refused() -> None:
    server = WritingApi()
    server.has(obj(ENGINE, pods(THEIRS)))
    with pytest.raises(ApiError) as caught:
        await mended(server, obj(ENGINE, pods(OURS)))
    assert caught.value is INVALID
    assert [call[0] for call in server.calls] == ["get"]


@pytest.mark.parametrize(("status", "first"), [(422, True), (403, False)])
@in_loop
async def test_a_patch_that_is_refused(status: int, first: bool) -> None:
    server = WritingApi()
    server.has(obj(ENGINE, pods(THEIRS), FOREIGN))

    async def refuse(verb: str) -> None:
        if verb == "patch":
            raise ApiError(status, "No", "no")

    server.before = refuse
    with pytest.raises(ApiError) as caught:
        await mended(server, obj(ENGINE, pods(OURS)))
    assert (caught.value is INVALID) is first


@in_loop
async def test_a_budget_is_made_anew() -> None:
    server = WritingApi()
    server.has(obj(BUDGET, {"maxUnavailable": 1}, {"f:maxUnavailable": {}}))
    made = await mended(server, obj(BUDGET, {"minAvailable": 1}))
    assert [call[0] for call in server.calls] == ["get", "delete", "apply new"]
    assert made["spec"] == {"minAvailable": 1}
    assert made["metadata"]["uid"] != "u1"


@in_loop
async def test_an_object_that_another_holds_up() -> None:
    server = WritingApi()
    server.has(obj(BUDGET, {"maxUnavailable": 1}, {"f:maxUnavailable": {}}))

    async def held(verb: str) -> None:
        if verb == "apply new":
            going = {"deletionTimestamp": "2026-12-02T10:00:00Z", "finalizers": ["x.io/f"]}
            server.has(obj(BUDGET, {}, **going))

    server.before = held
    with pytest.raises(Ending) as caught:
        await mended(server, obj(BUDGET, {"minAvailable": 1}))
    assert caught.value.finalizers == ("x.io/f",)


@in_loop
async def test_what_was_owned_for_the_moment_is_given_up() -> None:
    server = WritingApi()
    api: Any = server
    ours, moment = {"manager": "ome-controller"}, {"manager": MENDER}
    raw = server.has(obj(ENGINE, pods(OURS), managedFields=[ours, moment]))
    known = server.owned.get(ENGINE)
    assert known is not None
    assert known.half_mended
    made = await drop_mender(api, raw)
    assert made["metadata"]["managedFields"] == [ours]
    server.calls.clear()
    assert await drop_mender(api, made) is made
    assert server.calls == []
