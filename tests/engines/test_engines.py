"""The engine seam: taking plugins in, asking them, and isolating the ones that fail."""

from __future__ import annotations

import signal
import sys
import types
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from ome.engines import (
    CONTRACT,
    Arity,
    Basis,
    Container,
    Detection,
    Dialect,
    EngineInfo,
    Finding,
    PodView,
    Preset,
    Profile,
    Severity,
    hookimpl,
)
from ome.engines.discovery import discover
from ome.engines.engines import Engine, Engines, PluginRefused, register
from ome.merging.argv import NULL_DIALECT
from ome.testing.builders import container, model, obj, plan_of, runtime, service


def plugin(name: str = "fake", contract: int = CONTRACT, **hooks: Callable[..., Any]) -> Any:
    """A plugin with `ome_describe` and the given hooks."""
    made = types.SimpleNamespace()
    made.ome_describe = hookimpl(lambda: EngineInfo(name, contract, "a fake"))
    for hook, function in hooks.items():
        setattr(made, hook, hookimpl(function))
    return made


def engine(name: str = "fake", **hooks: Callable[..., Any]) -> Engine:
    return register(plugin(name, **hooks), distribution=f"ome-engine-{name}", version="1")


def by_image(container: Container) -> Detection | None:
    return Detection(Basis.IMAGE, version="9") if "engine" in container.image else None


def by_command(container: Container) -> Detection | None:
    return Detection(Basis.COMMAND) if container.argv[:1] == ("serve",) else None


def broken(container: Container) -> Detection | None:
    raise RuntimeError("no luck")


def raised(error: BaseException) -> Any:
    """Raise what a plugin shouldn't."""
    raise error


VIEW = Container("engine:v1", ("serve",), (), {})


def test_hook_ome_describe_is_needed_and_must_fit_the_contract() -> None:
    assert engine().info == EngineInfo("fake", CONTRACT, "a fake")
    for bad, message in (
        (types.SimpleNamespace(), "ome_describe is missing or gives no EngineInfo"),
        (plugin(contract=99), "it is written for contract 99, this OME has contract 1"),
        (
            types.SimpleNamespace(ome_describe=hookimpl(lambda: 1 / 0)),
            "ome_describe failed: ZeroDivisionError: division by zero",
        ),
    ):
        with pytest.raises(PluginRefused) as caught:
            register(bad)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"ome_unknown": lambda: None}, "unknown hook 'ome_unknown'"),
        ({"ome_detect": lambda pod: None}, "hook 'ome_detect'"),
    ],
)
def test_an_unknown_hook_or_argument_is_refused_by_name(hooks: Any, message: str) -> None:
    with pytest.raises(PluginRefused, match=message):
        register(plugin(**hooks))


def test_hook_ome_detect_the_stronger_basis_wins() -> None:
    engines = Engines([engine("a", ome_detect=by_image), engine("b", ome_detect=by_command)])
    found = engines.recognise(VIEW)
    assert found.engine is not None
    assert (found.engine.name, found.problems) == ("b", ())
    found = engines.recognise(Container("engine:v1"))
    assert found.engine is not None
    assert found.engine.name == "a"
    assert engines.recognise(Container("other")).engine is None


def test_hook_ome_detect_a_tie_is_nobodys() -> None:
    engines = Engines([engine("a", ome_detect=by_image), engine("b", ome_detect=by_image)])
    found = engines.recognise(VIEW)
    assert (found.engine, found.dialect) == (None, NULL_DIALECT)
    assert [p.message for p in found.problems] == [
        "engines a, b all recognise the container engine:v1; none is used"
    ]


def test_hook_ome_detect_failing_or_giving_junk_costs_only_itself() -> None:
    engines = Engines(
        [
            engine("a", ome_detect=broken),
            engine("b", ome_detect=by_image),
            engine("c", ome_detect=lambda: 5),
        ]
    )
    found = engines.recognise(VIEW)
    assert found.engine is not None
    assert found.engine.name == "b"
    assert [problem.message for problem in found.problems] == [
        "engine plugin a (ome-engine-a 1): ome_detect failed: RuntimeError: no luck",
        "engine plugin c (ome-engine-c 1): ome_detect failed: it gives something that is no Detection",
    ]


def test_hook_ome_dialect_is_asked_once_per_version() -> None:
    asked = []

    def dialect(version: str) -> Dialect:
        asked.append(version)
        return Dialect({"--x": Arity.SWITCH})

    engines = Engines([engine("a", ome_detect=by_image, ome_dialect=dialect)])
    for _ in range(3):
        assert engines.recognise(VIEW).dialect.arity_of("--x") is Arity.SWITCH
    assert asked == ["9"]
    failing = Engines([engine("a", ome_detect=by_image, ome_dialect=lambda: 1 / 0)])
    found = failing.recognise(VIEW)
    assert found.dialect is NULL_DIALECT
    assert [problem.code for problem in found.problems] == ["EnginePluginFailed"]
    junk = Engines([engine("a", ome_detect=by_image, ome_dialect=lambda: "junk")])
    found = junk.recognise(VIEW)
    assert found.dialect is NULL_DIALECT
    assert "it gives something that is no Dialect" in found.problems[0].message


def test_hook_ome_profiles() -> None:
    engines = Engines([engine("a", ome_profiles=lambda: [Profile("p")])])
    assert set(engines.profiles) == {"p"}
    with pytest.raises(PluginRefused, match="ome_profiles gives something that is no Profile"):
        engine("b", ome_profiles=lambda: ["p"])


def test_engines_share_a_profile_that_is_the_same_in_all() -> None:
    def of(path: str) -> list[Profile]:
        return [Profile("p", annotations={"path": path})]

    same = [engine(name, ome_profiles=lambda: of("/a")) for name in ("a", "b")]
    other = engine("c", ome_profiles=lambda: of("/b"))
    engines = Engines([*same, other])
    assert [item.name for item in engines] == ["a", "b"]
    assert engines.profiles["p"].annotations == {"path": "/a"}
    assert [(error.name, error.message) for error in engines.errors] == [
        ("c", 'its profile "p" differs from that of ome-engine-a')
    ]


def test_hook_ome_presets() -> None:
    one, two = Preset("b", "{}"), Preset("a", "{}")
    engines = Engines([engine("x", ome_presets=lambda: [one, two]), engine("y")])
    assert [(name, each.preset, each.plugin) for name, each in engines.presets.items()] == [
        ("a", two, "x (ome-engine-x 1)"),
        ("b", one, "x (ome-engine-x 1)"),
    ]
    assert engines.problems == []
    assert Engines([engine("z", ome_presets=lambda: None)]).presets == {}


@pytest.mark.parametrize(
    ("presets", "message", "left"),
    [
        (lambda: 1 / 0, "ome_presets failed: ZeroDivisionError: division by zero", []),
        (lambda: sys.exit(3), "ome_presets failed: SystemExit: 3", []),
        (lambda: 5, "ome_presets failed: it gives something that is no list of presets", []),
        (
            lambda: [Preset("good", "{}"), "junk", Preset(5, "{}")],  # type: ignore[arg-type]
            "ome_presets failed: it gives something that is no Preset",
            ["good"],
        ),
    ],
)
def test_hook_ome_presets_failing_costs_the_presets_alone(
    presets: Any, message: str, left: list[str]
) -> None:
    engines = Engines([engine("a", ome_detect=by_image, ome_presets=presets)])
    assert [each.message for each in engines.problems] == [
        f"engine plugin a (ome-engine-a 1): {message}"
    ]
    assert list(engines.presets) == left
    assert engines.recognise(VIEW).engine is not None


def test_hook_ome_presets_a_preset_that_two_supply_is_nobodys() -> None:
    same = Preset("p", "{}")
    engines = Engines([engine(name, ome_presets=lambda: [same]) for name in ("a", "b")])
    assert [str(each) for each in engines.problems] == [
        "preset p of engine plugin b (ome-engine-b 1) isn't used: a (ome-engine-a 1) and "
        "b (ome-engine-b 1) both supply it"
    ]


def test_hook_ome_findings_become_warnings_of_the_plan() -> None:
    seen: list[PodView] = []

    def find(view: PodView) -> list[Finding]:
        seen.append(view)
        return [Finding("Odd", Severity.WARNING, "it is odd", "args[0]", "make it even")]

    engines = Engines([engine("a", ome_detect=by_image, ome_findings=find)])
    rendered = plan_of(runtime(), service(), engines=engines)
    assert [str(warning) for warning in rendered.warnings] == [
        "InferenceService/demo/chat: engine container ome-container: args[0]: it is odd; make it even"
    ]
    assert (seen[0].component, seen[0].accelerators) == ("engine", 0)
    assert seen[0].service == "chat"
    assert seen[0].pod["containers"][0] == seen[0].container


@pytest.mark.parametrize(
    ("findings", "message"),
    [
        (lambda: 1 / 0, "ome_findings failed: ZeroDivisionError: division by zero"),
        (lambda: ["junk"], "ome_findings failed: it gives something that is no Finding"),
        (lambda: 5, "ome_findings failed: it gives something that is no Finding"),
        (lambda: sys.exit(3), "ome_findings failed: SystemExit: 3"),
        (lambda: raised(GeneratorExit("odd")), "ome_findings failed: GeneratorExit: odd"),
        (lambda: [Finding(1, 2, 3)], "ome_findings failed: it gives something that is no Finding"),  # type: ignore[arg-type]
    ],
)
def test_hook_ome_findings_failing_leaves_the_rendering_alone(findings: Any, message: str) -> None:
    bad = Engines([engine("a", ome_detect=by_image, ome_findings=findings)])
    rendered = plan_of(runtime(), service(), engines=bad)
    assert list(rendered.objects()) == list(plan_of(runtime(), service()).objects())
    told = f"engine plugin a (ome-engine-a 1): {message}"
    assert [warning.message for warning in rendered.warnings] == [told]
    assert [(each.reason, each.message) for each in rendered.events] == [
        ("EnginePluginFailed", told)
    ]


def test_a_plugin_is_up_while_its_hooks_work() -> None:
    answers = iter([[], 5, []])

    def find() -> Any:
        return next(answers)

    one = engine("a", ome_detect=by_image, ome_findings=find)
    other = engine("b", ome_presets=lambda: [5])
    engines = Engines([one, other])
    found = []
    for _ in range(3):
        plan_of(runtime(), service(), engines=engines)
        found.append(engines.is_up(one))
    assert found == [True, False, True]
    assert not engines.is_up(other)


@pytest.mark.parametrize("handled", [True, False])
def test_a_ctrl_c_is_the_users_unless_the_process_handles_it(
    handled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = (lambda *_: None) if handled else signal.default_int_handler
    monkeypatch.setattr(signal, "getsignal", lambda _: handler)
    engines = Engines([engine("a", ome_detect=lambda: raised(KeyboardInterrupt()))])
    if handled:
        (problem,) = engines.recognise(VIEW).problems
        assert "ome_detect failed: KeyboardInterrupt" in problem.message
    else:
        with pytest.raises(KeyboardInterrupt):
            engines.recognise(VIEW)


def test_the_dialect_of_the_engine_edits_the_arguments() -> None:
    entry = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.50.0"},
        "acceleratorConfig": {"gpu": {"runtimeArgsOverride": ["--trust-remote-code"]}},
    }
    args = ["--trust-remote-code", "/models/x"]
    objects = [
        obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {}}),
        model(),
        runtime(
            {"runner": {"name": "ome-container", "image": "engine:v1", "args": args}},
            supportedModelFormats=[entry],
            acceleratorRequirements={"acceleratorClasses": ["gpu"]},
        ),
        service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
    ]
    dialect = Dialect({"--trust-remote-code": Arity.SWITCH})
    engines = Engines([engine("a", ome_detect=by_image, ome_dialect=lambda: dialect)])
    assert container(plan_of(*objects, engines=engines))["args"] == args
    assert container(plan_of(*objects))["args"] == ["--trust-remote-code"]


def test_the_dialect_of_the_engine_names_further_spellings_of_sizes() -> None:
    entry = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.50.0"},
        "acceleratorConfig": {"gpu": {"tensorParallelismOverride": {"tensorParallelSize": 2}}},
    }
    runner = {"name": "ome-container", "image": "engine:v1", "args": ["-tp", "8"]}
    objects = [
        obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {}}),
        model(),
        runtime(
            {"runner": runner},
            supportedModelFormats=[entry],
            acceleratorRequirements={"acceleratorClasses": ["gpu"]},
        ),
        service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
    ]
    dialect = Dialect(tensor=(*NULL_DIALECT.tensor, "-tp"))
    engines = Engines([engine("a", ome_detect=by_image, ome_dialect=lambda: dialect)])
    assert container(plan_of(*objects, engines=engines))["args"] == ["-tp", "2"]
    assert container(plan_of(*objects))["args"] == ["-tp", "8"]


def test_a_name_is_claimed_once() -> None:
    engines = Engines([engine("a"), engine("a", ome_detect=by_image)])
    assert [item.name for item in engines] == ["a"]
    (error,) = engines.errors
    assert error.message == 'the engine name "a" is already taken by ome-engine-a'


def test_discovery_isolates_what_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    good = types.ModuleType("good_engine")
    good.ome_describe = hookimpl(lambda: EngineInfo("good", CONTRACT, ""))  # type: ignore[attr-defined]
    old = types.ModuleType("old_engine")
    old.ome_describe = hookimpl(lambda: EngineInfo("old", 0, ""))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "good_engine", good)
    monkeypatch.setitem(sys.modules, "old_engine", old)
    points = [
        EntryPoint("good", "good_engine", "ome.engines"),
        EntryPoint("old", "old_engine", "ome.engines"),
        EntryPoint("gone", "no_such_module_anywhere", "ome.engines"),
        EntryPoint("nothing", "good_engine:missing", "ome.engines"),
    ]
    monkeypatch.setattr("stevedore.extension.ExtensionManager.list_entry_points", lambda _: points)
    engines = discover()
    assert [item.name for item in engines] == ["good"]
    assert sorted((error.name, error.message.split(":")[0]) for error in engines.errors) == [
        ("gone", "import failed"),
        ("nothing", "import failed"),
        ("old", "it is written for contract 0, this OME has contract 1"),
    ]


def test_a_plugin_that_changes_the_pod_changes_nothing_that_is_rendered() -> None:
    def meddle(view: PodView) -> None:
        view.container["image"] = "evil"  # type: ignore[index]
        view.pod["containers"].clear()

    engines = Engines([engine("a", ome_detect=by_image, ome_findings=meddle)])
    rendered = plan_of(runtime(), service(), engines=engines)
    assert list(rendered.objects()) == list(plan_of(runtime(), service()).objects())
    text = "ome_findings failed: it changes the pod that it is shown; the change is dropped"
    assert f"engine plugin a (ome-engine-a 1): {text}" in [w.message for w in rendered.warnings]


class Stopwatch:
    """A clock that stands still but when a hook lets it run."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("hook", ["ome_detect", "ome_dialect", "ome_findings"])
def test_a_hook_that_is_too_slow_is_reported_and_not_asked_again(hook: str) -> None:
    clock = Stopwatch()
    asked: list[str] = []

    def slow(answer: Callable[..., Any]) -> Callable[..., Any]:
        def call(container: Any = None, version: Any = None, view: Any = None) -> Any:
            clock.now += 1.5
            asked.append(hook)
            return answer(container or version or view)

        return call

    answers: dict[str, Callable[..., Any]] = {
        "ome_detect": by_image,
        "ome_dialect": lambda _: Dialect(prefixes=True),
        "ome_findings": lambda _: [Finding("Late", Severity.ERROR, "late")],
    }
    hooks = {"ome_detect": by_image, hook: slow(answers[hook])}
    engines = Engines([engine("slow", **hooks), engine("good", ome_detect=by_command)], clock=clock)
    text = (
        f"engine plugin slow (ome-engine-slow 1): {hook} failed: it took 1.5 s, more than 1 s, "
        "and isn't asked again"
    )
    for name, image in (("one", "engine:v1"), ("two", "engine:v2")):
        rendered = plan_of(
            runtime({"runner": {"name": "r", "image": image}}), service(name), engines=engines
        )
        assert text in [warning.message for warning in rendered.warnings]
        assert "late" not in [warning.message for warning in rendered.warnings]
    assert asked == [hook]
    assert engines.recognise(Container("other", ("serve",))).engine is not None


def test_a_container_is_recognised_once() -> None:
    seen: list[str] = []

    def detect(container: Container) -> Detection | None:
        seen.append(container.image)
        return by_image(container)

    engines = Engines([engine("a", ome_detect=detect)])
    for env in ({"A": "1"}, {"A": "1"}, {"A": "2"}):
        assert engines.recognise(Container("engine:v1", ("serve",), (), env)).engine is not None
    assert seen == ["engine:v1", "engine:v1"]


def test_a_container_can_not_be_changed() -> None:
    def meddle(container: Container) -> Detection | None:
        container.env["A"] = "evil"  # type: ignore[index]
        return by_image(container)

    env = {"A": "1"}
    found = Engines([engine("a", ome_detect=meddle)]).recognise(Container("engine:v1", env=env))
    assert env == {"A": "1"}
    assert found.engine is None
    assert "ome_detect failed: TypeError: 'mappingproxy'" in found.problems[0].message


@pytest.mark.parametrize(
    "junk",
    [Detection("command"), Detection(Basis.IMAGE, version=None)],  # type: ignore[arg-type]
)
def test_a_detection_with_junk_in_it_is_none(junk: Detection) -> None:
    found = Engines([engine("a", ome_detect=lambda: junk)]).recognise(VIEW)
    assert found.engine is None
    assert found.problems[0].message.endswith("it gives something that is no Detection")


@pytest.mark.parametrize(
    "junk",
    [Dialect(arity=5), Dialect(arity={"--x": 1}), Dialect(tensor=(1,))],  # type: ignore[arg-type,dict-item]
)
def test_a_dialect_with_junk_in_it_is_none(junk: Dialect) -> None:
    found = Engines([engine("a", ome_detect=by_image, ome_dialect=lambda: junk)]).recognise(VIEW)
    assert found.dialect is NULL_DIALECT
    assert found.problems[0].message.endswith("it gives something that is no Dialect")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import sys\nsys.exit(5)\n", "it called sys.exit(5)"),
        ("raise GeneratorExit\n", "it raised GeneratorExit"),
    ],
)
def test_discovery_survives_a_plugin_that_ends_the_process(
    source: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "quitting_engine", raising=False)
    (tmp_path / "quitting_engine.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint("quitter", "quitting_engine", "ome.engines")]
    monkeypatch.setattr("stevedore.extension.ExtensionManager.list_entry_points", lambda _: points)
    engines = discover()
    assert [error.message for error in engines.errors] == [f"import failed: ImportError: {told}"]


def test_an_edited_container_is_asked_of_its_engine_alone() -> None:
    asked: list[str] = []

    def detect(name: str, command: str) -> Callable[[Container], Detection | None]:
        def hook(container: Container) -> Detection | None:
            asked.append(name)
            is_own = container.command == (command,) and "--gone" not in container.args
            return Detection(Basis.COMMAND, opaque="o" * len(container.args)) if is_own else None

        return hook

    engines = Engines(
        [engine("a", ome_detect=detect("a", "a")), engine("b", ome_detect=detect("b", "b"))]
    )
    before = Container("i", ("b",))
    found = engines.recognise(before)
    asked.clear()
    edited = engines.recognise_edited(Container("i", ("b",), ("--x",)), before, found)
    assert (edited.engine, asked) == (found.engine, ["b"])
    assert edited.detection is not None
    assert edited.detection.opaque == "o"
    other = Container("i", ("a",))
    assert engines.recognise_edited(other, before, found) == engines.recognise(other)
    assert (
        engines.recognise_edited(Container("i", ("b",), ("--gone",)), before, found).engine is None
    )
    assert engines.recognise_edited(other, None, None) == engines.recognise(other)
    nobody = engines.recognise(Container("i", ("c",)))
    asked.clear()
    assert (
        engines.recognise_edited(Container("i", ("c",), ("x",)), Container("i", ("c",)), nobody)
        is nobody
    )
    assert asked == []
