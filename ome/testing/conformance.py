"""What every engine plugin must hold to, as a test class: one line in a plugin's tests runs it.

```python
class TestConformance(Conformance):
    plugin, examples = plugin, [Example(Container("myengine:1.2"), version="1.2")]
```

Subclasses set the attributes below; each test says in its failure what the plugin has to change.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import Any, ClassVar, Final

from ome.engines import CONTRACT, Basis, Container, Detection, PodView
from ome.engines.discovery import GROUP
from ome.engines.engines import Engine, Engines, register
from ome.engines.guard import copy_json
from ome.merging.argv import parse, set_value
from ome.planning.podchecks import check_pod
from ome.snapshot import PRESET_ANNOTATION, Snapshot
from ome.sources import InstalledPresets
from ome.testing.builders import runtime

__all__ = ["Conformance", "Example", "Rewrite"]

Json = dict[str, Any]

SLOWEST: Final = 0.05
"""Seconds of processor time that one call of a hook may take, the fastest of a few."""

_ROUNDS: Final = 3
_FORBIDDEN: Final = (
    "ftplib.",
    "http.",
    "open",
    "os.",
    "pathlib.",
    "shutil.",
    "smtplib.",
    "socket.",
    "sqlite3.",
    "subprocess.",
    "tempfile.",
    "urllib.",
)


@dataclass(frozen=True, slots=True)
class Example:
    """A container that the plugin recognises, with the engine's version and whether it is opaque."""

    container: Container
    version: str = ""
    is_opaque: bool = False
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Arguments before and after tensor parallelism is set; `old` is the size they had."""

    before: Sequence[str]
    size: int
    after: Sequence[str]
    old: int


# Containers that a plugin meets and must survive, whatever it thinks of them.
ODD: Final = (
    Container(""),
    Container("registry.example/x@sha256:" + "0" * 64),
    Container("x:y:z", ("",), ("", "--", "--x", "-")),
    Container("x", ("sh", "-c"), ()),
    Container("x", ("bash", "-c", "a && b | c > d; `e` $(f) 'unbalanced")),
    Container("x", (), ("--flag=" + "v" * (1 << 20),)),
    Container("x", ("\N{SNOWMAN}", "\n", "\\"), ("--\N{SNOWMAN}=\t",)),
    Container("x", ("serve",), ("--size", "-1", "--", "--size", "8")),
)


class Conformance:
    """The suite. `plugin` is what the entry point names; `entry_point` its name, when it is installed.

    `examples` are containers that it recognises, `foreign` others that it doesn't, `rewrites` what
    becomes of its tensor-parallelism flags.
    """

    plugin: ClassVar[Any]
    entry_point: ClassVar[str] = ""
    examples: ClassVar[Sequence[Example]] = ()
    foreign: ClassVar[Sequence[Container]] = ()
    rewrites: ClassVar[Sequence[Rewrite]] = ()

    def engine(self) -> Engine:
        """The plugin as OME loads it."""
        return register(self.plugin, distribution="under test", version="0")

    def containers(self) -> list[Container]:
        """Every container that the hooks are tried on."""
        return [*(example.container for example in self.examples), *self.foreign, *ODD]

    def views(self) -> list[PodView]:
        """A pod of each container, as the planner would show it."""
        found = []
        for seen in self.containers():
            container: Json = {
                "name": "ome-container",
                "image": seen.image,
                "command": list(seen.command),
                "args": list(seen.args),
                "env": [{"name": name, "value": value} for name, value in seen.env.items()],
            }
            detection = self._detect(seen) or Detection(Basis.IMAGE)
            for component in ("engine", "decoder"):
                pod = {"containers": [container]}
                found.append(PodView(component, container, pod, 8, detection))
        return found

    def test_it_is_loaded(self) -> None:
        """It describes itself, for this contract, and implements no hook that there isn't."""
        info = self.engine().info
        assert info.contract == CONTRACT
        assert info.summary, "EngineInfo.summary is empty: people read it in `ome engines`"

    def test_its_entry_point_leads_to_it(self) -> None:
        """The installed entry point names this very plugin."""
        if not self.entry_point:
            return
        (found,) = entry_points(group=GROUP, name=self.entry_point)
        assert found.load() is self.plugin
        assert found.name == self.engine().name, "entry point and engine have different names"

    def test_it_recognises_its_examples(self) -> None:
        """Engine, version and opacity of every example."""
        engine = self.engine()
        engines = Engines([engine])
        for example in self.examples:
            found = engines.recognise(example.container)
            assert not found.problems, found.problems
            assert found.detection is not None, f"not recognised: {example.container}"
            assert found.detection.version == example.version, example
            assert bool(found.detection.opaque) is example.is_opaque, found.detection.opaque
            assert example.basis in (None, found.detection.basis), example

    def test_it_leaves_others_alone(self) -> None:
        """Containers of other engines, and odd ones without a trace of this one, are not its own."""
        for container in self.foreign:
            assert self._detect(container) is None, f"recognised: {container}"

    def test_no_hook_fails_on_odd_containers(self) -> None:
        """Every hook answers for whatever people write."""
        for name, call in self._calls():
            try:
                call()
            except Exception as error:
                raise AssertionError(f"{name} raises {type(error).__name__}: {error}") from error

    def test_hooks_answer_alike_each_time(self) -> None:
        """No clock, no randomness, no state: the same question has the same answer."""
        for name, call in self._calls():
            assert call() == call(), f"{name} gives another answer when asked again"

    def test_hooks_do_no_io(self) -> None:
        """No file, process, socket or pause while a hook runs (imports happen before)."""
        calls = list(self._calls())
        for _, call in calls:
            call()
        for name, call in calls:
            with _watched() as seen:
                call()
            assert not seen, f"{name} does I/O: {seen[0]}"

    def test_hooks_change_nothing(self) -> None:
        """What a hook is shown is the same afterwards."""
        engine = self.engine()
        for view in self.views():
            before = copy_json(view.pod)
            for hook in ("ome_findings", "ome_geometry"):
                getattr(engine.manager.hook, hook)(view=view)
                assert view.pod == before, f"{hook} changes the pod"

    def test_answers_are_sound(self) -> None:
        """OME takes every answer: detections, dialects, findings and geometry are what they should be."""
        engine = self.engine()
        engines = Engines([engine])
        for view in self.views():
            recognised = engines.recognise(_container(view))
            inspection = engines.inspect(engine, view, measure=True)
            assert not [*recognised.problems, *inspection.problems]
            for finding in inspection.findings:
                assert finding.code, finding
                assert finding.message, finding
                assert finding.fix, f"{finding.code} says no fix"

    def test_words_survive_grouping(self) -> None:
        """Reading a command line by the dialect loses no word."""
        dialect = Engines([self.engine()]).recognise
        for container in self.containers():
            groups = parse(container.args, dialect(container).dialect)
            assert [word for group in groups for word in group.words] == list(container.args)

    def test_parallelism_is_rewritten_in_place(self) -> None:
        """The first documented spelling gets the value; writing the old value gives the old list."""
        for rewrite in self.rewrites:
            dialect = self._dialect()
            after = set_value(rewrite.before, dialect.tensor, rewrite.size, dialect)
            assert after == list(rewrite.after), rewrite
            back = set_value(after, dialect.tensor, rewrite.old, dialect)
            assert back == list(rewrite.before), rewrite

    def test_probes_are_valid(self) -> None:
        """Kubernetes takes the probes of every profile."""
        for profile in self.engine().profiles:
            container = {"name": "c", "image": "i", **profile.probes}
            problems = [p.message for p in check_pod({"containers": [container]})]
            assert not problems, f"profile {profile.name}: {problems}"
            assert set(profile.probes) <= {"startupProbe", "readinessProbe", "livenessProbe"}

    def test_its_presets_fill_a_runtime(self) -> None:
        """Every preset gives, with its defaults, a part of a runtime's spec."""
        engines = Engines([self.engine()])
        assert not engines.problems, engines.problems
        for name in engines.presets:
            item = runtime(name="r", metadata={"annotations": {PRESET_ANNOTATION: name}})
            found = Snapshot.of([item], presets=InstalledPresets(engines)).preset_problems
            assert not found, f"preset {name}: {found[0].message}"

    def test_hooks_are_fast(self) -> None:
        """No hook is slow, so that a fleet can be planned anew in a moment."""
        for name, call in self._calls():
            taken = min(_seconds(call) for _ in range(_ROUNDS))
            assert taken < SLOWEST, f"{name} takes {taken:.3f} s"

    def _dialect(self) -> Any:
        return self.engine().dialect("")

    def _detect(self, container: Container) -> Detection | None:
        found: Detection | None = self.engine().manager.hook.ome_detect(container=container)
        return found

    def _calls(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Every hook with every argument that it is tried with, by name."""
        hooks = self.engine().manager.hook
        yield "ome_describe", hooks.ome_describe
        yield "ome_profiles", hooks.ome_profiles
        yield "ome_presets", hooks.ome_presets
        versions = dict.fromkeys(["", "0.0.1", "junk", *(each.version for each in self.examples)])
        for version in versions:
            yield f"ome_dialect({version!r})", partial(hooks.ome_dialect, version=version)
        for container in self.containers():
            shown = _short(container)
            yield f"ome_detect({shown})", partial(hooks.ome_detect, container=container)
        for view in self.views():
            shown = _short(_container(view))
            yield f"ome_findings({shown})", partial(hooks.ome_findings, view=view)
            yield f"ome_geometry({shown})", partial(hooks.ome_geometry, view=view)


def _short(container: Container) -> str:
    text = " ".join([container.image, *container.argv])
    return text if len(text) < 100 else f"{text[:97]}..."


def _container(view: PodView) -> Container:
    raw = view.container
    env = {item["name"]: item["value"] for item in raw["env"]}
    return Container(raw["image"], tuple(raw["command"]), tuple(raw["args"]), env)


def _seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


_seen: list[str] | None = None
_is_hooked = False


@contextmanager
def _watched() -> Iterator[list[str]]:
    """The audit events of I/O that happen meanwhile."""
    global _seen, _is_hooked
    if not _is_hooked:
        sys.addaudithook(_note)
        _is_hooked = True
    found: list[str] = []
    _seen = found
    sleep = time.sleep
    time.sleep = lambda _: found.append("time.sleep")
    try:
        yield found
    finally:
        _seen, time.sleep = None, sleep


def _note(event: str, _: object) -> None:
    if _seen is not None and event.startswith(_FORBIDDEN):
        _seen.append(event)
