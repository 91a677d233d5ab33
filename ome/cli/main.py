"""The entry points `ome` and `kubectl-ome`: flags, and which command they go to.

Commands are imported when they run, so that `--help` costs next to nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ome import __version__
from ome.cli.controllerflags import add_controller_flags

__all__ = ["main", "run", "run_kubectl"]


class _Parser(argparse.ArgumentParser):
    exit_unusable = 2

    def error(self, message: str) -> None:  # type: ignore[override]
        """Flags that can't be used: one line, where to look, the command's own exit code."""
        print(f"error: {message}\nSee '{self.prog} --help' for usage.", file=sys.stderr)
        sys.exit(self.exit_unusable)


class _RuntimeParser(_Parser):
    exit_unusable = 1  # `kubectl ome runtime` exits with 0 or 1, as documented


def build_parser(prog: str) -> argparse.ArgumentParser:
    """The parser of every command."""
    parser = _Parser(
        prog=prog,
        description="Serve large language models on Kubernetes: render and explain what OME does.",
    )
    parser.add_argument("--version", action="version", version=f"ome {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_render(commands)
    _add_explain(commands)
    _add_lint(commands)
    _add_diff(commands)
    runtime = commands.add_parser("runtime", help="report on runtimes (kubectl ome runtime)")
    runtime.exit_unusable = 1
    runtime.set_defaults(parser=runtime)
    runtime_commands = runtime.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_RuntimeParser
    )
    _add_explain(runtime_commands)
    _add_runtime_reports(runtime_commands)
    _add_engines(commands)
    _add_controller(commands)
    crds = commands.add_parser(
        "crds",
        help="print the CustomResourceDefinitions",
        description="Print the CustomResourceDefinitions of ome.io/v1beta1, for kubectl apply -f -.",
    )
    crds.set_defaults(handler="ome.cli.crds")
    return parser


def _add_engines(commands: Any) -> None:
    engines = commands.add_parser(
        "engines",
        help="list the installed engine plugins, or begin a new one",
        description="List the installed engine plugins, and what kept others from loading.",
    )
    engines.add_argument("-o", "--output", choices=("table", "json"), default="table")
    engines.set_defaults(handler="ome.cli.engines")
    begin = engines.add_subparsers(title="commands", metavar="COMMAND").add_parser(
        "new",
        help="write the project of a new engine plugin",
        description="Write a complete plugin project, with tests that pass, to begin an engine from.",
        epilog="exit codes: 0 it is written; 1 it can't be; 2 the flags can't be used",
    )
    begin.add_argument("name", metavar="NAME", help="the engine's name, such as llama-cpp")
    begin.add_argument(
        "--directory", metavar="DIR", help="where to write it (default ome-engine-NAME)"
    )
    begin.set_defaults(handler="ome.cli.newengine")


def _add_controller(commands: Any) -> None:
    controller = commands.add_parser(
        "controller",
        help="run the controller against a cluster",
        description=(
            "Keep the workloads, status, conditions and events of InferenceServices true. Connects with "
            "--kubeconfig, or with the service account of the pod it runs in."
        ),
        epilog="exit codes: 0 ended by SIGTERM or SIGINT; 1 it could not go on; 2 the flags can't be used",
    )
    add_controller_flags(controller)
    controller.set_defaults(handler="ome.cli.controller")


def _add_render(commands: Any) -> None:
    render = commands.add_parser(
        "render",
        help="render InferenceServices to Kubernetes objects, without a cluster",
        description=(
            "Render InferenceServices to Kubernetes objects. The files are the cluster: they hold the "
            "services with the runtimes, models, accelerator classes and configuration they use."
        ),
        epilog=(
            "exit codes: 0 everything was rendered; 1 a service was refused, the others were rendered; "
            "2 the input or the flags can't be used"
        ),
    )
    add_input_flags(render)
    render.add_argument(
        "--name", metavar="ISVC", help="render only the InferenceService of this name"
    )
    render.add_argument(
        "-o", "--output", choices=("yaml", "json"), help="output format (default yaml)"
    )
    render.add_argument(
        "--show",
        choices=("objects", "plan", "provenance"),
        default="objects",
        help="what to print: the objects, the whole plan, or which layer set each value",
    )
    render.add_argument(
        "--from-status",
        action="store_true",
        help="keep the runtimes that OME chose before and recorded in the services' status",
    )
    render.add_argument(
        "--without-api",
        metavar="GROUP/VERSION",
        action="append",
        default=[],
        help="an optional API that the cluster lacks, such as monitoring.coreos.com/v1",
    )
    render.set_defaults(handler="ome.cli.render")


def _add_lint(commands: Any) -> None:
    lint = commands.add_parser(
        "lint",
        help="find what the API accepts and what hurts later",
        description=(
            "Find what the API accepts and what hurts later: in runtimes, models and between them, and "
            "in the pods that services would get."
        ),
        epilog="exit codes: 0 no errors; 1 errors, or with --strict warnings; 2 the flags can't be used",
    )
    add_input_flags(lint)
    lint.add_argument("-o", "--output", choices=("text", "json", "sarif", "github"), default="text")
    lint.add_argument("--strict", action="store_true", help="exit with 1 on warnings as well")
    lint.set_defaults(handler="ome.cli.lint")


def _add_diff(commands: Any) -> None:
    diff = commands.add_parser(
        "diff",
        help="show what a change of manifests or an upgrade does to services",
        description=(
            "Render the services of two sets of manifests, or of one with two versions of OME and its "
            "plugins, and show which differ, why, and which pods would restart."
        ),
        epilog="exit codes: 0 no service changes; 1 some do; 2 the input or the flags can't be used",
    )
    diff.add_argument("before", metavar="BEFORE", help="a file or a directory")
    diff.add_argument(
        "after", metavar="AFTER", nargs="?", help="a file or a directory (default BEFORE)"
    )
    diff.add_argument(
        "--before-python",
        metavar="PYTHON",
        help="render BEFORE with the ome and the plugins of this interpreter, such as old/bin/python",
    )
    _add_scope_flags(diff)
    diff.add_argument("-o", "--output", choices=("text", "json", "markdown"), default="text")
    diff.set_defaults(handler="ome.cli.diff")


def _add_explain(commands: Any) -> None:
    explain = commands.add_parser(
        "explain",
        help="show which runtimes fit a model, and why not the others",
        description=(
            "Show every runtime that automatic selection considers for a model: those that qualify in "
            "the order of choice, then the others with the first check that each fails."
        ),
    )
    explain.exit_unusable = 1
    _add_report_flags(explain)
    explain.add_argument("--model", metavar="NAME", help="the model to explain for")
    explain.add_argument(
        "--isvc", metavar="NAME", help="the InferenceService whose model and wishes count"
    )
    explain.add_argument(
        "--with-effective",
        action="store_true",
        help="append what the service of --isvc is served from (see runtime effective)",
    )
    explain.set_defaults(handler="ome.cli.explain")


def _add_runtime_reports(commands: Any) -> None:
    effective = commands.add_parser(
        "effective",
        help="show what a service is served from, live and pinned",
        description=(
            "Show the runtime of an InferenceService as it is defined now, the revision that the service "
            "is pinned to, and how the two relate."
        ),
    )
    history = commands.add_parser(
        "history",
        help="list the stored revisions of a service's runtime",
        description="List the stored revisions of an InferenceService's runtime, newest first.",
    )
    for command, handler in ((effective, "ome.cli.effective"), (history, "ome.cli.history")):
        command.add_argument("name", metavar="INFERENCESERVICE")
        _add_report_flags(command)
        command.set_defaults(handler=handler)
    tree = commands.add_parser(
        "tree",
        help="show what a runtime inherits from, what inherits from it, and who names each",
        description=(
            "Show the chain of a runtime, every runtime that inherits from it, and the "
            "InferenceServices that name each of them."
        ),
    )
    tree.add_argument("name", metavar="RUNTIME")
    tree.add_argument(
        "--kind", help="ServingRuntime or ClusterServingRuntime (default: the one there is)"
    )
    tree.add_argument(
        "--show-unattributed-users",
        action="store_true",
        help="list the services whose runtime their spec doesn't tell",
    )
    _add_report_flags(tree)
    tree.set_defaults(handler="ome.cli.tree")


def _add_report_flags(command: argparse.ArgumentParser) -> None:
    """The flags of every report on runtimes; they exit with 0 or 1, whatever happens."""
    add_input_flags(command, required=False)
    command.add_argument(
        "-o", "--output", choices=("table", "wide", "json", "yaml"), default="table"
    )
    command.set_defaults(exit_unwritable=1, parser=command)


def add_input_flags(command: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The flags of every command that reads manifests."""
    command.add_argument(
        "-f",
        "--filename",
        metavar="PATH",
        action="append",
        required=required,
        help="a file, a directory, or - for standard input; may be given again",
    )
    _add_scope_flags(command)


def _add_scope_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-R", "--recursive", action="store_true", help="read directories with their subdirectories"
    )
    command.add_argument(
        "-n",
        "--namespace",
        help="the namespace of objects that name none; only its services are rendered",
    )
    command.add_argument(
        "--ome-namespace",
        metavar="NAMESPACE",
        default="ome",
        help="OME's own namespace, where its configuration is (default ome)",
    )
    command.add_argument(
        "--engines",
        metavar="NAMES",
        action="append",
        help="use these engine plugins alone, separated by commas, or none (default: all installed)",
    )


def main(arguments: Sequence[str] | None = None, *, prog: str = "ome") -> int:
    """Run one command; returns its exit code."""
    parser = build_parser(prog)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        named = getattr(options, "parser", parser)
        named.error(f"unrecognized arguments: {' '.join(unknown)}")
    handler: Callable[[argparse.Namespace], int] = import_module(options.handler).run
    try:
        code = handler(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader went away (`ome render … | head`): not an error, and nothing more to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Input was read and reported before: what fails here is writing the answer.
        print(f"error: can't write the output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(getattr(options, "exit_unwritable", 2))
    except KeyboardInterrupt:
        return 130


def run() -> None:
    """Console script `ome`."""
    sys.exit(main())


def run_kubectl() -> None:
    """Console script `kubectl-ome`, which kubectl runs for `kubectl ome`."""
    sys.exit(main(prog="kubectl ome"))
