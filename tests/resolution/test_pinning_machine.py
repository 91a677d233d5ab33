"""Pinning as a state machine: whatever users do in whatever order, the documented rules hold.

The machine plays the API server: it writes a plan's effects, status and conditions and carries out garbage
collection. Beside it stands a small model of the documents "Runtime revisions and pinning" and "Runtime
inheritance" (OME v1.3) that compares what specs say, never their hashes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ome.api import ApiObject, parse
from ome.engines.engines import Engines
from ome.merging.canonical import content_hash
from ome.planning.plan import Hold, Plan
from ome.planning.planner import plan
from ome.resolution.revisions import collect_revisions, in_use, revision_name
from ome.snapshot import Snapshot, read_revision
from ome.testing.builders import deployment, model, obj, service

Json = dict[str, Any]
KEEP = 1
NAMES = st.sampled_from(["one", "two", "afar"])
START = datetime(2026, 1, 1, tzinfo=UTC)
MARK = "ome.io/gc-eligible-since"
ADVICE = "live spec differs; bump ome.io/runtime-sync annotation to advance"


class Content(NamedTuple):
    """What an effective spec says, as far as the machine changes it."""

    image: int
    root: int | None
    disabled: bool


class Owner(NamedTuple):
    """A runtime by kind, namespace and name."""

    kind: str
    namespace: str
    name: str


class Live(NamedTuple):
    """A runtime as it stands in the cluster."""

    image: int
    disabled: bool
    inherits: bool


RUNTIMES = (
    Owner("ClusterServingRuntime", "", "rt"),
    Owner("ServingRuntime", "demo", "rt"),
    Owner("ServingRuntime", "far", "rt"),
    Owner("ClusterServingRuntime", "", "other"),
)


@dataclass
class Stored:
    """A revision: whose it is, what it holds, since when, and since when it is marked."""

    owner: Owner
    content: Content
    raw: Json
    created: datetime
    marked: datetime | None = None


@dataclass
class Service:
    """A service's wishes, what its status says, and what its workload runs."""

    name: str
    namespace: str
    kind: str | None
    model: bool
    runtime: str = "rt"
    pins: bool = True
    revision: str = ""
    token: str = ""
    pinned: str = ""
    last_token: str = ""
    drift: tuple[str, str] | None = None
    running: Content | None = None


@dataclass(frozen=True)
class Expected:
    """What the documents say that a reconcile does. `serves` is None when the workload is left alone."""

    serves: Content | None
    pinned: str
    last_token: str
    drift: tuple[str, str] | None
    event: str = ""
    creates: str = ""


def spec_of(content: Content) -> Json:
    """An effective spec that says this."""
    runner: Json = {"name": "ome-container", "image": f"engine:v{content.image}"}
    if content.root is not None:
        runner["env"] = [{"name": "ROOT", "value": str(content.root)}]
    return {"engineConfig": {"runner": runner}, "disabled": content.disabled}


def foreign_spec_of(content: Content) -> Json:
    """The same with the keys in another order and what an API server or another writer adds."""
    spec = spec_of(content)
    runner = dict(reversed(spec["engineConfig"]["runner"].items()))
    return {"supportedModelFormats": [], **spec, "engineConfig": {"args": None, "runner": runner}}


class Pinning(RuleBasedStateMachine):
    """Users, the controller and garbage collection, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.live: dict[Owner, Live] = {}
        self.root: int | None = 0
        self.stored: dict[str, Stored] = {}
        self.services = {
            "one": Service("one", "demo", None, model=False),
            "two": Service("two", "demo", "ServingRuntime", model=True),
            "afar": Service("afar", "far", None, model=True),
        }
        self.serial = 0
        self.turns = sorted(self.services)

    @initialize()
    def begin(self) -> None:
        """A cluster with a runtime of each scope."""
        self.live[RUNTIMES[0]] = Live(0, disabled=False, inherits=True)
        self.live[RUNTIMES[1]] = Live(0, disabled=False, inherits=False)

    # What users do

    @rule(
        owner=st.sampled_from(RUNTIMES),
        image=st.integers(0, 2),
        disabled=st.sampled_from([False, False, False, True]),
        inherits=st.booleans(),
    )
    def apply_runtime(self, owner: Owner, image: int, disabled: bool, inherits: bool) -> None:
        self.live[owner] = Live(image, disabled, inherits)

    @rule(owner=st.sampled_from(RUNTIMES))
    def delete_runtime(self, owner: Owner) -> None:
        self.live.pop(owner, None)

    @rule(root=st.sampled_from([0, 1, 2, None]))
    def apply_or_delete_root(self, root: int | None) -> None:
        self.root = root

    @rule(name=NAMES, pins=st.booleans())
    def switch_auto_sync(self, name: str, pins: bool) -> None:
        target = self.services[name]
        target.pins = pins
        if not pins:
            target.revision = ""  # admission refuses a revision without autoSync: false

    @rule(name=NAMES, token=st.sampled_from(["", "a", "b", "c"]))
    def set_token(self, name: str, token: str) -> None:
        self.services[name].token = token

    @rule(name=NAMES, runtime=st.sampled_from(["rt", "other"]))
    def name_a_runtime(self, name: str, runtime: str) -> None:
        target = self.services[name]
        if target.runtime != runtime:
            target.runtime, target.revision = runtime, ""

    @rule(name=NAMES, data=st.data())
    def name_a_revision(self, name: str, data: st.DataObject) -> None:
        target = self.services[name]
        prefix = self.prefix(target)
        fitting = sorted(n for n in self.stored if re.fullmatch(rf"{prefix}-[0-9a-f]{{8}}", n))
        target.revision = data.draw(st.sampled_from([*fitting, f"{prefix}-00000000"]))
        target.pins = True

    @rule(name=NAMES)
    def recreate_a_service(self, name: str) -> None:
        """Deleted and applied again: its status starts empty."""
        was = self.services[name]
        self.services[name] = replace(was, pinned="", last_token="", drift=None, running=None)
        self.turns = [each for each in self.turns if each != name] + [name]

    @rule(name=NAMES)
    def remove_the_revision(self, name: str) -> None:
        self.services[name].revision = ""

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def delete_a_revision(self, data: st.DataObject) -> None:
        del self.stored[data.draw(st.sampled_from(sorted(self.stored)))]

    @rule(
        owner=st.sampled_from(RUNTIMES),
        image=st.integers(0, 2),
        root=st.sampled_from([None, 0]),
        label=st.sampled_from(["rt", "rt", "rt", "other"]),
    )
    def store_a_foreign_revision(
        self, owner: Owner, image: int, root: int | None, label: str
    ) -> None:
        """Upstream's controller hashed the spec its own way; `label` may not be what the name says."""
        self.serial += 1
        content = Content(image, root, disabled=False)
        name = f"{self.prefix_of(owner)}-{0xF0000000 + self.serial:08x}"
        self.store(name, owner._replace(name=label), content, foreign_spec_of(content))

    @rule(name=NAMES, away=st.sampled_from([0, 100]))
    def take_the_next_name(self, name: str, away: int) -> None:
        """Under the name that a service's next revision would get: the same of a runtime elsewhere, or
        something else."""
        target = self.services[name]
        content, _ = self.live_content(target)
        taken = self.name_for(self.prefix(target), content) if content else ""
        if content and taken not in self.stored:
            held = content._replace(image=content.image + away)
            owner = Owner("ServingRuntime", "elsewhere", target.runtime)
            self.store(taken, owner, held, foreign_spec_of(held))

    # What OME does

    @rule(name=NAMES)
    def pause_but_for(self, name: str) -> None:
        """From now on the controller gets round to one service only."""
        self.turns = [name]

    @rule()
    def resume(self) -> None:
        self.turns = sorted(self.services)

    @invariant()
    def reconcile(self) -> None:
        """After every step the controller looks at the next service."""
        self.turns = [*self.turns[1:], self.turns[0]]
        target = self.services[self.turns[0]]
        expected = self.expected(target)
        before = replace(target)
        rendered = self.plan(target)
        self.check(target, rendered, expected)
        self.write(target, rendered)
        self.check_moves(before, target)
        again = self.plan(target)
        assert not again.effects
        assert {**self.status(target), **again.status} == self.status(target)
        assert self.drift(again) == target.drift

    @rule(hours=st.sampled_from([0, 1, 23, 24]))
    def collect_after(self, hours: int) -> None:
        self.now += timedelta(hours=hours)
        used = {
            name for each in self.services.values() for name in (each.revision, each.pinned) if name
        }
        assert in_use(self.service(each).raw for each in self.services.values()) == used
        expected = self.kept_and_marked(used)
        revisions = self.snapshot().revisions.values()
        for action in collect_revisions(list(revisions), frozenset(used), self.now, keep=KEEP):
            held = self.stored[action.revision]
            if action.action == "Delete":
                assert action.revision not in used
                del self.stored[action.revision]
            else:
                held.marked = action.since
        assert {name: held.marked for name, held in self.stored.items()} == expected

    # The model

    def prefix(self, target: Service) -> str:
        if target.kind == "ServingRuntime":
            return f"r-{target.namespace}-{target.runtime}"
        return f"cr-{target.runtime}"

    def prefix_of(self, owner: Owner) -> str:
        return f"r-{owner.namespace}-{owner.name}" if owner.namespace else f"cr-{owner.name}"

    def name_for(self, prefix: str, content: Content) -> str:
        return f"{prefix}-{content_hash(spec_of(content))[:8]}"

    def found(self, target: Service) -> Owner | None:
        """The runtime that the service's reference finds."""
        local = Owner("ServingRuntime", target.namespace, target.runtime)
        cluster = Owner("ClusterServingRuntime", "", target.runtime)
        order = [local] if target.kind == "ServingRuntime" else [cluster, local]
        return next((each for each in order if each in self.live), None)

    def missing_text(self, target: Service) -> str:
        if target.kind == "ServingRuntime":
            return f"ServingRuntime {target.runtime} not found in namespace {target.namespace}"
        return f"runtime {target.runtime} not found in namespace {target.namespace} or at cluster scope"

    def live_content(self, target: Service) -> tuple[Content | None, str]:
        """The merged live spec, or why there is none."""
        owner = self.found(target)
        if owner is None:
            return None, self.missing_text(target)
        head = self.live[owner]
        if head.inherits and self.root is None:
            chain = f"(chain so far: [{target.runtime}])"
            return None, f'inherit-from parent "base" not found {chain}'
        root = self.root if head.inherits else None
        return Content(head.image, root, head.disabled), ""

    def expected(self, target: Service) -> Expected:
        """The documented outcome; the rows of the table in their order."""
        stays = Expected(None, target.pinned, target.last_token, target.drift)
        decided = self.followed(target, stays) if not target.pins else self.held(target, stays)
        if decided.serves is not None and decided.serves.disabled:
            return replace(stays, event=self.disabled_event(target))
        return decided

    def followed(self, target: Service, stays: Expected) -> Expected:
        content, problem = self.live_content(target)
        if content is not None:
            return replace(stays, serves=content)
        if self.found(target) is None:
            return replace(stays, event=f"RuntimeNotFound: {problem}")
        if target.model:
            text = f"Runtime {target.runtime} does not support model m: {problem}"
            return replace(stays, event=f"RuntimeValidationError: {text}")
        return replace(stays, event=f"RuntimeFetchError: {problem}")

    def held(self, target: Service, stays: Expected) -> Expected:
        content, problem = self.live_content(target)
        wanted = target.revision or target.pinned
        held = self.stored.get(wanted)
        if content is None:
            if self.found(target) is None and held and held.owner.name == target.runtime:
                text = f"runtime {target.runtime} does not exist any more: serving from {wanted}"
                drift = ("SourceRuntimeMissing", text)
                return replace(stays, serves=held.content, pinned=wanted, drift=drift)
            text = f"resolve live runtime {target.runtime}: {problem}"
            return replace(stays, event=f"RuntimePinError: {text}")
        if target.revision:
            return self.named(target, held, stays)
        if not target.pinned:
            return self.moved(target, content, stays, "create initial pin")
        if held is None:
            drift = ("RevisionMissing", f"pinned revision {target.pinned} missing from ome")
            return replace(stays, drift=drift)
        if held.content == content:
            return replace(stays, serves=held.content, drift=None)
        if target.token and target.token != target.last_token:
            return self.moved(target, content, stays, "advance pin")
        return replace(stays, drift=("RevisionMismatch", f"pinned {target.pinned}, {ADVICE}"))

    def named(self, target: Service, held: Stored | None, stays: Expected) -> Expected:
        name = target.revision
        if held is None:
            text = f"explicit pin {name} not found in namespace ome"
            return replace(stays, drift=("RevisionMissing", text))
        if held.owner.name != target.runtime:
            text = (
                f'revision {name} belongs to runtime "{held.owner.name}" but ISVC references '
                f'"{target.runtime}"'
            )
            return replace(stays, drift=("RuntimeMismatch", text))
        return replace(stays, serves=held.content, pinned=name, drift=None)

    def moved(self, target: Service, content: Content, stays: Expected, step: str) -> Expected:
        owner = self.found(target)
        same = [n for n, r in self.stored.items() if (r.owner, r.content) == (owner, content)]
        name = min(same, default=self.name_for(self.prefix(target), content))
        taken = self.stored.get(name)
        if taken and (taken.owner.name, taken.content) != (target.runtime, content):
            text = f"{step} for {target.runtime}: revision {name} exists and holds something else"
            return replace(stays, event=f"RuntimePinError: {text}")
        return Expected(
            content,
            name,
            target.token or target.last_token,
            None,
            creates="" if taken else name,
        )

    def disabled_event(self, target: Service) -> str:
        owner = self.found(target)
        if owner is None:  # the revision remembers whose it was
            owner = self.stored[target.revision or target.pinned].owner
        scope = "namespace-scoped" if owner.namespace else "cluster-scoped"
        text = f"{scope} runtime {target.runtime} is disabled"
        if target.model and not target.pins:
            told = f"Runtime {target.runtime} does not support model m: {text}"
        else:
            told = f"Runtime {target.runtime} failed validation: {text}"
        return f"RuntimeValidationError: {told}"

    def denial(self, target: Service) -> str | None:
        """What admission says: with a model, about the live runtime, pinned or not."""
        content, problem = self.live_content(target)
        owner = self.found(target)
        if content is not None and content.disabled and owner is not None:
            scope = "namespace-scoped" if owner.namespace else "cluster-scoped"
            problem = f"{scope} runtime {target.runtime} is disabled"
        if not problem:
            return None
        if target.model:
            return f"runtime {target.runtime} does not support model m: {problem}"
        return None if target.pins or owner is None else problem

    def kept_and_marked(self, used: set[str]) -> dict[str, datetime | None]:
        """What garbage collection leaves, with marks."""
        left: dict[str, datetime | None] = {}
        for name, held in self.stored.items():
            newer = [
                other
                for other, each in self.stored.items()
                if each.owner == held.owner and (each.created, other) > (held.created, name)
            ]
            if len(newer) < KEEP or name in used:
                left[name] = None
            elif held.marked is None:
                left[name] = self.now
            elif self.now - held.marked < timedelta(hours=24):
                left[name] = held.marked
        return left

    # The API server

    def store(self, name: str, owner: Owner, content: Content, data: Json) -> None:
        labels = {
            "ome.io/runtime-of": owner.name,
            "ome.io/runtime-of-kind": owner.kind,
            "ome.io/runtime-of-namespace": owner.namespace,
        }
        raw = {
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {"ome.io/created-by": "ome-controller"},
            },
            "data": data,
        }
        self.stored[name] = Stored(owner, content, raw, self.now)

    def snapshot(self, *more: ApiObject) -> Snapshot:
        objects = [model(), *more]
        for owner, head in self.live.items():
            spec = spec_of(Content(head.image, None, head.disabled))
            annotations = {"ome.io/inherit-from": "base"} if head.inherits else {}
            where = owner.namespace or "demo"
            objects.append(
                obj(owner.kind, owner.name, spec, namespace=where, annotations=annotations)
            )
        if self.root is not None:
            runner = {"env": [{"name": "ROOT", "value": str(self.root)}], "name": "ome-container"}
            base = {"disabled": True, "engineConfig": {"runner": runner}}
            objects.append(obj("ClusterServingRuntime", "base", base))
        revisions = []
        for held in self.stored.values():
            metadata = dict(held.raw["metadata"], creationTimestamp=held.created.isoformat())
            if held.marked:
                metadata["annotations"] = {**metadata["annotations"], MARK: held.marked.isoformat()}
            found = read_revision({**held.raw, "metadata": metadata})
            assert found is not None
            revisions.append(found)
        return Snapshot.of(objects, revisions=revisions, now=self.now)

    def service(self, target: Service) -> Any:
        reference: Json = {"name": target.runtime, "autoSync": not target.pins}
        for key, value in (("kind", target.kind), ("revision", target.revision)):
            if value:
                reference[key] = value
        made = service(
            target.name,
            namespace=target.namespace,
            runtime=reference,
            model={"name": "m"} if target.model else None,
            metadata={"annotations": {"ome.io/runtime-sync": target.token} if target.token else {}},
        )
        conditions = [{"type": "Ready", "status": "True"}]
        if target.drift:
            reason, message = target.drift
            drifted = {"type": "RuntimeDrifted", "status": "True"}
            conditions.append({**drifted, "reason": reason, "message": message})
        status = {**self.status(target), "conditions": conditions}
        return parse({**made.raw, "status": {key: each for key, each in status.items() if each}})

    def status(self, target: Service) -> Json:
        return {"pinnedRevisionName": target.pinned, "lastRuntimeSyncToken": target.last_token}

    def plan(self, target: Service) -> Plan:
        item = self.service(target)
        return plan(self.snapshot(item), item, Engines())

    def drift(self, rendered: Plan) -> tuple[str, str] | None:
        found = [item for item in rendered.conditions if item["type"] == "RuntimeDrifted"]
        assert [item["status"] for item in found] == ["True"] * len(found)
        assert len(found) <= 1
        return (found[0]["reason"], found[0]["message"]) if found else None

    def served(self, rendered: Plan) -> Content | None:
        """What the workload would run; None when it is left alone."""
        if isinstance(rendered.actions["engine"], Hold):
            assert not list(rendered.objects())
            return None
        (made,) = deployment(rendered)["spec"]["template"]["spec"]["containers"]
        env = {item["name"]: item["value"] for item in made.get("env", ())}
        root = int(env["ROOT"]) if "ROOT" in env else None
        return Content(int(made["image"].removeprefix("engine:v")), root, disabled=False)

    def check(self, target: Service, rendered: Plan, expected: Expected) -> None:
        status = {**self.status(target), **rendered.status}
        events = [
            f"{event.reason}: {event.message}"
            for event in rendered.events
            if event.reason != "RuntimeCompatibilityAdvisory"
        ]
        assert self.served(rendered) == expected.serves
        assert status == {
            "pinnedRevisionName": expected.pinned,
            "lastRuntimeSyncToken": expected.last_token,
        }
        assert self.drift(rendered) == expected.drift
        assert events == ([expected.event] if expected.event else [])
        assert [item["metadata"]["name"] for item in rendered.effects] == (
            [expected.creates] if expected.creates else []
        )
        assert rendered.denial == self.denial(target)

    def write(self, target: Service, rendered: Plan) -> None:
        content = self.served(rendered)
        for effect in rendered.effects:
            name, labels = effect["metadata"]["name"], effect["metadata"]["labels"]
            assert name not in self.stored
            assert content is not None
            owner = Owner(
                labels["ome.io/runtime-of-kind"],
                labels["ome.io/runtime-of-namespace"],
                labels["ome.io/runtime-of"],
            )
            self.store(name, owner, content, effect["data"])
        target.pinned = rendered.status.get("pinnedRevisionName", target.pinned)
        target.last_token = rendered.status.get("lastRuntimeSyncToken", target.last_token)
        target.drift = self.drift(rendered)
        target.running = content or target.running

    def check_moves(self, before: Service, after: Service) -> None:
        """A pin moves only for the first time, by a revision that is named, or by a fresh token, and then
        once; what is pinned runs what its revision holds."""
        if before.pinned not in ("", after.pinned) and not after.revision:
            assert after.token not in ("", before.last_token)
            assert after.last_token == after.token
        if after.pins and after.running != before.running:
            assert after.running == self.stored[after.pinned].content
        if after.drift and after.drift[0] != "SourceRuntimeMissing" and after.pins:
            assert after.running == before.running


TestPinning = Pinning.TestCase
TestPinning.settings = settings(max_examples=100, stateful_step_count=50)


def test_the_model_names_revisions_as_the_code_does() -> None:
    """The model's names are the documented ones."""
    digest = content_hash(spec_of(Content(0, None, disabled=False)))
    assert revision_name("ServingRuntime", "demo", "rt", digest) == f"r-demo-rt-{digest[:8]}"
