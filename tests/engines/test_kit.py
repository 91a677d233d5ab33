"""The kit with an engine that nobody has: its launches, its command line and the rules over them."""

from __future__ import annotations

import copy
import shlex
from typing import Any

import pytest

from ome.engines import Basis, Container, Detection, Finding, PodView, Severity, kit
from ome.engines.kit import Launch, ParserRules, Rule, Server, script

FLAGS = """{"versions": ["1.0.0", "2.0.0"], "options": [
  ["-t --tensor-size", "one", "0-1"],
  ["--host", "one", "0-1"],
  ["--port", "one", "0-1"],
  ["--rank", "one", "0-1"],
  ["--nnodes", "one", "0-1"],
  ["--names", "many", "0-1"],
  ["--quiet", "none", "0-1", "--no-quiet"],
  ["--tag", "one repeatable", "0-1"],
  ["--settings", "one", "0-1"],
  ["--gone", "one", "0"],
  ["--going", "one deprecated", "1"],
  ["--new-flag", "none", "1"],
  ["--spill", "one", "0-1"],
  ["--config", "one", "0-1"]
]}"""
HINTS = """{
  "short": {"--ts": "--tensor-size", "--ten": "--tensor-size", "--s": "--settings", "--spi": "--host"},
  "instead": {"--gone": "use --new-flag", "--going": "use --new-flag"},
  "unparsed": ["--kind"],
  "exclusive": [{"since": "2.0.0", "alternatives": [["--quiet"], ["--tag", "--names"]]}]
}"""


def server(**more: Any) -> Server:
    rules = more.pop("rules", ParserRules(underscores=True, glued=True, dotted=True))
    fields: dict[str, Any] = {
        "name": "Acme",
        "table": kit.read_table(FLAGS, rules, HINTS),
        "modules": ("acme.server", "acme.old.server"),
        "commands": (("acme", "serve"), ("acme-up", "now")),
        "image": "acme(?:-gpu)?",
        "other_image": "acme-base",
        **more,
    }
    return Server(**fields)


ACME = server()

# a command in the shell's writing, its arguments, where they start, what runs
LAUNCHES = [
    ("acme serve m --port 1", "m --port 1", 2, "acme serve"),
    ("/opt/acme-up now", "", 2, "acme-up now"),
    ("python3 -m acme.server --port 1", "--port 1", 3, "acme.server"),
    ("python3.12 -u -macme.old.server", "", 3, "acme.old.server"),
    ("python /x/acme/old/server.py --quiet", "--quiet", 2, "acme.old.server"),
    ("env -u A B=c exec tini -s -- acme serve m", "m", 10, "acme serve"),
]


@pytest.mark.parametrize("command, arguments, start, program", LAUNCHES)
def test_launch(command: str, arguments: str, start: int, program: str) -> None:
    words = shlex.split(command)
    found = kit.read_launch(ACME, words)
    assert found is not None
    is_serve = not program.startswith("acme.")
    assert found == Launch(
        tuple(arguments.split()), len(words) - len(arguments.split()), is_serve=is_serve
    )
    assert (found.program, found.start) == (program, start)
    inside = kit.read_launch(ACME, ["bash", "-ec", command])
    assert inside == Launch(tuple(arguments.split()), 2, script=True, is_serve=is_serve)
    assert inside.program == program


ALONE = server(name="Solo", commands=(("solo-server",),), modules=())

# a command, and the arguments of the server that takes flags only; None where it doesn't run
ALONE_LAUNCHES: list[tuple[str, str | None]] = [
    ("solo-server", ""),
    ("/app/solo-server -t 2", "-t 2"),
    ("env A=b exec solo-server --quiet", "--quiet"),
    ("sh -c 'exec solo-server -t $SIZE'", "-t $SIZE"),
    ("solo-server-bench -t 2", None),
    ("cp /app/solo-server /tmp", None),
    ("acme serve /models/solo-server", None),
    ("sh -c 'acme serve /models/solo-server'", None),
]


@pytest.mark.parametrize("command, arguments", ALONE_LAUNCHES)
def test_launch_of_a_command_without_subcommand(command: str, arguments: str | None) -> None:
    found = kit.read_launch(ALONE, shlex.split(command))
    if arguments is None:
        assert found is None
        return
    assert found is not None
    assert (found.arguments, found.opaque) == (tuple(arguments.split()), "")
    assert (found.is_serve, found.program) == (False, "solo-server")


@pytest.mark.parametrize(
    "text, reason",
    [("solo-server $FLAGS", kit.COMPUTED), ("cd /app; solo-server -t 2", script.SEVERAL)],
)
def test_script_that_starts_a_command_without_subcommand(text: str, reason: str) -> None:
    found = kit.read_launch(ALONE, ["sh", "-c", text])
    assert found is not None
    assert found.opaque == reason


# a command that is recognised and can't be read, and why
OPAQUE = [
    ("sh -c 'sleep 1; acme serve m'", kit.script.SEVERAL),
    ("sh -c 'acme serve m > log'", kit.script.REDIRECTED),
    ("sh -c 'acme serve m --port $(port)$(port x)'", kit.script.SUBSTITUTED),
    ('sh -c "acme serve \'m"', kit.script.UNBALANCED),
    ("sh -c 'acme serve m $FLAGS'", kit.COMPUTED),
    ("sh -c 'acme serve $MODEL --port $PORT --names $A $B'", ""),
    ("numactl acme serve m", kit.WRAPPED.format(program="numactl")),
    ("acme serve m --config=a.yaml", "some of its flags stand in a file (--config)"),
]


@pytest.mark.parametrize("command, reason", OPAQUE)
def test_opaque(command: str, reason: str) -> None:
    found = kit.detect(ACME, Container("acme:1.0.0", tuple(shlex.split(command))))
    assert found == Detection(Basis.COMMAND, "1.0.0", reason)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "acme",
        "acme stop",
        "python3",
        "python3 -c x",
        "python3 -m acme",
        "python3 a.py",
        "sh -c x",
        "sh",
        "sh a",
    ],
)
def test_something_else_runs(command: str) -> None:
    assert kit.read_launch(ACME, shlex.split(command)) is None


def test_a_server_without_launches_is_never_mentioned() -> None:
    bare = server(modules=(), commands=())
    assert kit.read_launch(bare, ["sh", "-c", "acme serve m"]) is None


# image, arguments, whether images start the server by themselves, what is detected
IMAGES: list[tuple[str, str, bool, Detection | None]] = [
    ("x/acme:v1.2.3-cu1", "--port 1", False, Detection(Basis.IMAGE, "1.2.3")),
    ("x/acme-gpu@sha256:1", "", False, Detection(Basis.IMAGE)),
    ("acme-base:v1.2.3", "", False, Detection(Basis.IMAGE)),
    ("acme:1.2.3", "model", False, None),
    ("acme:1.2.3", "model", True, Detection(Basis.IMAGE, "1.2.3")),
    ("acme-base:1.2.3", "model", True, None),
    ("acme:1.2", "", False, Detection(Basis.IMAGE)),
    ("acme:1", "--config a", False, Detection(Basis.IMAGE, "", ACME.configured)),
    ("my-acme:1.2.3", "", False, None),
]


@pytest.mark.parametrize("image, args, runs, expected", IMAGES)
def test_image(image: str, args: str, runs: bool, expected: Detection | None) -> None:
    found = kit.detect(server(image_runs=runs), Container(image, args=tuple(args.split())))
    assert found == expected


def test_a_server_without_a_config_flag_is_never_configured() -> None:
    found = kit.detect(server(config=""), Container("acme", args=("--config", "a")))
    assert found == Detection(Basis.IMAGE)


def view(args: str, *, version: str = "2.0.0", which: Server = ACME, **more: Any) -> PodView:
    """A pod of Acme's with a command, arguments in the shell's writing, and overrides."""
    pod_fields = more.pop("pod", {})
    component, accelerators = more.pop("component", "engine"), more.pop("accelerators", 1)
    container = {
        "name": "main",
        "image": f"acme:v{version}" if version else "acme",
        "command": ["acme", "serve"],
        "args": shlex.split(args),
        **more,
    }
    detection = kit.detect(
        which, Container(container["image"], tuple(container["command"]), tuple(container["args"]))
    )
    assert detection is not None
    pod = {"containers": [container], **pod_fields}
    return PodView(component, container, pod, accelerators, detection)


def ask(rule: Rule, given: PodView, which: Server = ACME) -> list[Finding]:
    """What a rule finds, proven not to change the pod."""
    before = copy.deepcopy((given.container, given.pod))
    found = list(rule(given, kit.read_command_line(which, given)))
    assert (given.container, given.pod) == before
    return found


def test_command_line() -> None:
    line = kit.read_command_line(
        ACME, view("m -t=2 --names a b --no-quiet --settings.x_y 3 --tag '1 2' '--host h' -t4")
    )
    assert line.positional == ("m",)
    shown = [(flag.key, flag.values, flag.path, flag.name, flag.member) for flag in line.flags]
    assert shown == [
        ("-t", ("2",), "args[1]", "-t", ""),
        ("--names", ("a", "b"), "args[2]", "--names", ""),
        ("--no-quiet", (), "args[5]", "--no-quiet", ""),
        ("--settings.x_y", ("3",), "args[6]", "--settings", "x_y"),
        ("--tag", ("1 2",), "args[8]", "--tag", ""),
        ("--host", ("h",), "args[10]", "--host", ""),
        ("-t4", ("4",), "args[11]", "-t4", ""),
    ]
    assert [flag.is_joined for flag in line.flags] == [False] * 5 + [True, False]
    assert (line.number("--tensor-size", 1), line.number("--port", 80)) == (4, 80)
    assert (line.value("--host"), line.value("--names"), line.value("--port")) == ("h", "", "")
    assert (line.has("--quiet"), line.has("--tag"), line.last("--settings")) == (False, True, None)


@pytest.mark.parametrize("args", ["m --config=a", "m --tensor-size=$(N)"])
def test_a_number_that_cant_be_known(args: str) -> None:
    assert kit.read_command_line(ACME, view(args)).number("--tensor-size", 1) is None


SPELLING = {
    "ambiguous": kit.ambiguous("Ambiguous", {"--t": "a/b#1"}),
    "deprecated": kit.deprecated("Deprecated"),
    "exclusive": kit.exclusive("Exclusive"),
    "misspelt": kit.misspelt("Misspelt"),
    "prefixes": kit.prefixes("Prefix"),
    "repeated": kit.repeated("Repeated"),
    "unknown": kit.unknown("Removed", "Unknown"),
}

# arguments, the version, each finding as code, severity, message, fix
FOUND: list[tuple[str, str, list[tuple[str, str, str, str]]]] = [
    (
        "m --tensor_size 2 --quiet -t3",
        "2.0.0",
        [
            (
                "Repeated",
                "warning",
                "-t3 is given again with another value; Acme takes the last one, 3",
                "keep one of -t, --tensor-size",
            )
        ],
    ),
    (
        "m --t 2",
        "2.0.0",
        [
            (
                "Ambiguous",
                "error",
                "--t fits several options of Acme 2.0.0 (--tag, --tensor-size), so its parser stops",
                "write the flag in full",
            )
        ],
    ),
    (
        "m --t 2",
        "",
        [
            (
                "Ambiguous",
                "error",
                "--t fits several options of Acme (--tag, --tensor-size), so its parser stops",
                "write the flag in full",
            )
        ],
    ),
    (
        "m --s 2",
        "2.0.0",
        [
            (
                "Ambiguous",
                "error",
                "--s fits several options of Acme 2.0.0 (--settings, --spill), so its parser stops",
                "write --settings",
            )
        ],
    ),
    (
        "m --ten 2",
        "2.0.0",
        [
            (
                "Prefix",
                "warning",
                "--ten is no flag of Acme 2.0.0, it works as an abbreviation of --tensor-size only",
                "write --tensor-size",
            )
        ],
    ),
    (
        "m --spi 2",
        "",
        [
            (
                "Prefix",
                "error",
                "--spi is no flag of Acme, whose parser takes it for --spill",
                "write --host",
            )
        ],
    ),
    (
        "m --ts 2",
        "",
        [
            (
                "Misspelt",
                "error",
                "--ts is refused by Acme's parser: it has no such flag",
                "write --tensor-size",
            )
        ],
    ),
    (
        "m -spill 2",
        "",
        [
            (
                "Misspelt",
                "error",
                "-spill is refused by Acme's parser: a long flag takes two dashes",
                "write --spill",
            )
        ],
    ),
    (
        "m '--tensor_size 2'",
        "",
        [
            (
                "Misspelt",
                "error",
                "--tensor_size is refused by Acme's parser: its value must be a word of its own, or follow an =",
                "write --tensor-size",
            )
        ],
    ),
    (
        "m -nothing",
        "",
        [
            (
                "Misspelt",
                "error",
                "-nothing is refused by Acme's parser: a long flag takes two dashes",
                "remove it",
            )
        ],
    ),
    (
        "m --gone 1",
        "2.0.0",
        [
            (
                "Removed",
                "error",
                "Acme 2.0.0 no longer has --gone; it was last seen in 1.0.0",
                "use --new-flag",
            )
        ],
    ),
    ("m --gone 1", "", []),
    (
        "m --new-flag",
        "1.0.0",
        [
            (
                "Unknown",
                "error",
                "Acme 1.0.0 has no flag --new-flag yet; it is first seen in 2.0.0",
                "remove it, or use a newer image",
            )
        ],
    ),
    (
        "m --nothing",
        "2.0.0",
        [("Unknown", "error", "Acme 2.0.0 has no flag --nothing", "remove it")],
    ),
    ("m --nothing", "1.5.0", []),
    ("m --kind x", "2.0.0", []),
    (
        "m --going 1",
        "2.0.0",
        [("Deprecated", "warning", "--going is deprecated in Acme 2.0.0", "use --new-flag")],
    ),
    ("m --going 1", "", []),
    (
        "m --quiet --no-quiet",
        "",
        [
            (
                "Repeated",
                "warning",
                "--no-quiet is given again with another value; Acme takes the last one, without a value",
                "keep one of them",
            )
        ],
    ),
    ("m --tag 1 --tag 2 --settings.a 1 --settings.b 2 --settings.c+ 1 --settings.c+ 2", "", []),
    (
        "m --settings.a 1 --settings.a 2",
        "",
        [
            (
                "Repeated",
                "warning",
                "--settings.a is given again with another value; Acme takes the last one, 2",
                "keep one of them",
            )
        ],
    ),
    (
        "m --quiet --names a",
        "2.0.0",
        [
            (
                "Exclusive",
                "error",
                "--names can't be given with --quiet: Acme stops",
                "keep one of them",
            )
        ],
    ),
    ("m --no-quiet --names a", "2.0.0", []),
    ("m --quiet --names a", "", []),
    (
        "m --config a --t 1 --nothing",
        "2.0.0",
        [
            (
                "Ambiguous",
                "error",
                "--t fits several options of Acme 2.0.0 (--tag, --tensor-size), so its parser stops",
                "write the flag in full",
            ),
            ("Unknown", "error", "Acme 2.0.0 has no flag --nothing", "remove it"),
        ],
    ),
]


@pytest.mark.parametrize("args, version, expected", FOUND)
def test_spelling(args: str, version: str, expected: list[tuple[str, str, str, str]]) -> None:
    given = view(args, version=version)
    got = [finding for name in sorted(SPELLING) for finding in ask(SPELLING[name], given)]
    assert [(one.code, str(one.severity), one.message, one.fix) for one in got] == expected
    assert all(one.path.startswith("args[") for one in got)


def test_references_are_by_flag() -> None:
    (finding,) = ask(SPELLING["ambiguous"], view("m --t 1"))
    assert (finding.reference, finding.path) == ("a/b#1", "args[1]")


def test_underscores_and_glued_numbers_are_refused_where_they_dont_count() -> None:
    strict = server(rules=ParserRules())
    flags = '{"versions": ["1.0.0"], "options": [["-tp --tensor-size", "one", "0"]]}'
    short = server(table=kit.read_table(flags, ParserRules()))
    for which, args, why, fix in [
        (
            strict,
            "m --tensor_size 2",
            "its flags have dashes, not underscores",
            "write --tensor-size",
        ),
        (strict, "m --no_thing 2", "its flags have dashes, not underscores", "remove it"),
        (short, "m -tp8", "its value must be a word of its own, or follow an =", "write -tp"),
    ]:
        (finding,) = ask(SPELLING["misspelt"], view(args, which=which), which)
        assert (finding.message.partition(": ")[2], finding.fix) == (why, fix)
        assert ask(SPELLING["unknown"], view(args, which=which), which) == []


def test_an_unread_launch_has_no_flags_to_check() -> None:
    given = view("", command=["sh", "-c", "sleep 1; acme serve --nothing"])
    assert [finding for rule in SPELLING.values() for finding in ask(rule, given)] == []
    (finding,) = ask(kit.opaque("Opaque"), given)
    assert finding == Finding(
        "Opaque",
        Severity.WARNING,
        "the flags of Acme aren't checked, because it is launched by a shell script of several commands",
        "command[2]",
        "write the command and its flags as one list",
    )
    assert ask(kit.opaque("Opaque"), view("m")) == []


PROBE = {"httpGet": {"path": "/health", "port": 80}}
LOOPBACK = kit.loopback("Loopback", "127.0.0.1", rank="--rank")

# arguments, other overrides, the path of the finding, "" for none
HOSTS: list[tuple[str, dict[str, Any], str]] = [
    ("m", {}, "args"),
    ("m --host 127.0.0.1", {}, "args[1]"),
    ("m --host=localhost", {"component": "decoder"}, "args[1]"),
    ("m --host=0.0.0.0", {}, ""),
    ("m --host=$(IP)", {}, ""),
    ("m", {"component": "router"}, ""),
    ("m --config a", {}, ""),
    ("m --rank 1", {}, ""),
    ("m --rank 1", {"readinessProbe": PROBE}, "args"),
    ("m --rank 0", {}, "args"),
]


@pytest.mark.parametrize("args, overrides, path", HOSTS)
def test_loopback(args: str, overrides: dict[str, Any], path: str) -> None:
    got = ask(LOOPBACK, view(args, **overrides))
    assert [one.path for one in got] == ([path] if path else [])
    open_by_default = kit.loopback("Loopback", "0.0.0.0")
    has_host = "--host" in args and path
    assert bool(ask(open_by_default, view(args, **overrides))) is bool(has_host)


def test_sizes_and_memory() -> None:
    def sizes(line: kit.CommandLine) -> list[tuple[str, int]] | None:
        size = line.number("--tensor-size", 1)
        return None if size is None else [("tensor", size)]

    rule = kit.accelerators("TooFew", sizes, ("--tensor-size",), reference="a/b#2")
    (finding,) = ask(rule, view("m -t 4 --nnodes 2"))
    assert finding == Finding(
        "TooFew",
        Severity.ERROR,
        "the flags need 4 accelerators (tensor 4), the container has 1 on each of 2 nodes",
        "args[1]",
        "ask for as many accelerators as the flags need, or lower the sizes",
        "a/b#2",
    )
    for args, count in [("m -t 4", 4), ("m -t 4", 0), ("m -t $(N)", 1), ("m -t 4 --nnodes 0", 1)]:
        assert ask(rule, view(args, accelerators=count)) == []
    memory = kit.shared_memory("NoMemory", "--tensor-size")
    mounted = {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm/"}]}
    volumes = [{"name": "shm", "emptyDir": {}}]
    assert [one.fix for one in ask(memory, view("m -t 2"))] == [
        "mount an emptyDir volume of medium Memory at /dev/shm"
    ]
    assert [
        one.fix for one in ask(memory, view("m -t 2", pod={"volumes": volumes}, **mounted))
    ] == ['set emptyDir.medium of the volume "shm" to Memory']
    in_memory = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
    for args, pod in [("m", {}), ("m -t 2", {"hostIPC": True}), ("m -t 2", in_memory)]:
        assert ask(memory, view(args, pod=pod, **mounted)) == []


PORTS = kit.probe_ports("Port", 8000, lambda line, port: {port + 1})

# arguments, the probe, whether its port is wrong
PROBES: list[tuple[str, dict[str, Any], bool]] = [
    ("m", {"httpGet": {"port": 8000}}, False),
    ("m", {"httpGet": {"port": "8001"}}, False),
    ("m", {"tcpSocket": {"port": 80}}, True),
    ("m", {"grpc": {"port": 81}}, True),
    ("m", {"httpGet": {"port": 80, "host": "example.org"}}, False),
    ("m", {"httpGet": {"port": "web"}}, False),
    ("m --port 80", {"httpGet": {"port": "web"}}, True),
    ("m", {"httpGet": {"port": "none"}}, True),
    ("m", {"httpGet": {"port": 9000}}, False),
    ("m", {"exec": {"command": ["true"]}}, False),
    ("m --port $(P)", {"httpGet": {"port": 80}}, False),
]


@pytest.mark.parametrize("args, probe, is_wrong", PROBES)
def test_probe_ports(args: str, probe: dict[str, Any], is_wrong: bool) -> None:
    given = view(args, livenessProbe=probe, ports=[{"name": "web", "containerPort": 8000}])
    given.pod["containers"].append({"name": "proxy", "ports": [{"containerPort": 9000}]})
    assert [one.code for one in ask(PORTS, given)] == (["Port"] if is_wrong else [])


def test_probe_port_messages() -> None:
    (finding,) = ask(PORTS, view("m", startupProbe={"httpGet": {"port": 1}}))
    assert (finding.message, finding.path, finding.fix) == (
        "the probe asks port 1, Acme listens on 8000",
        "startupProbe.httpGet.port",
        "set it to 8000",
    )
    (finding,) = ask(PORTS, view("m", startupProbe={"httpGet": {"port": "x"}}))
    assert finding.message == 'the probe asks the port "x", which the container doesn\'t name'


def test_profiles_are_the_documented_ones() -> None:
    probes = kit.http_probes("acme-http").probes
    times = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold")
    assert {name: [probe[key] for key in times] for name, probe in probes.items()} == {
        "readinessProbe": [60, 30, 30, 5],
        "livenessProbe": [0, 60, 30, 5],
        "startupProbe": [60, 30, 30, 60],
    }
    assert kit.PROMETHEUS.annotations["prometheus.io/path"] == "/metrics"
