"""`python -m controlplane build | up | down | status | kubeconfig`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from controlplane.binaries import PROGRAMS
from controlplane.build import available, build
from controlplane.errors import ControlPlaneError
from controlplane.instance import Instance, instances
from controlplane.plane import NODES, down, up

__all__ = ["main"]


def main(argv: list[str]) -> int:
    """Run a command; 1 with a message on stderr if it can't be done."""
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except ControlPlaneError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130


def _say(text: str) -> None:
    print(text, flush=True)


def _build(args: argparse.Namespace) -> int:
    for name, path in build(os.environ, _say).items():
        if args.verbose:
            _say(f"{name:<24} {path}")
    return 0


def _up(args: argparse.Namespace) -> int:
    build(os.environ, _say)
    plane = up(args.name, args.nodes)
    _say(f"The control plane {args.name} is ready at {plane.server}.")
    _say(f"export KUBECONFIG={plane.kubeconfig}")
    return 0


def _down(args: argparse.Namespace) -> int:
    gone = down(args.name)
    _say(
        f"The control plane {args.name} is gone."
        if gone
        else f"There is no control plane {args.name}."
    )
    return 0


def _status(args: argparse.Namespace) -> int:
    found = available(os.environ)
    for program in PROGRAMS:
        _say(f"{program.name:<24} {found.get(program.name, 'not built')}")
    for instance in instances(os.environ):
        _say("")
        _say("\n".join(_described(instance)))
    return 0


def _described(instance: Instance) -> list[str]:
    state = instance.state()
    phase = state.get("phase", "starting")
    if not instance.running():
        message = state.get("message") or "its supervisor was killed"
        how = f"`python -m controlplane down {instance.name}` removes it"
        return [f"{instance.name}: left over ({message}); {how}"]
    lines = [f"{instance.name}: {phase}, supervisor {state.get('pid')}, {state.get('server')}"]
    lines.append(f"  KUBECONFIG={instance.kubeconfig()}")
    lines += [f"  {name} {pid}" for name, pid in state.get("processes", {}).items()]
    return lines


def _kubeconfig(args: argparse.Namespace) -> int:
    instance = Instance.named(args.name, os.environ)
    if not instance.running():
        raise ControlPlaneError(
            f"there is no control plane {args.name}: run `python -m controlplane up`"
        )
    _say(str(instance.user_kubeconfig(args.user, args.group)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="controlplane", description="A real control plane for tests."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: object, text: str, *, named: bool = True
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        if named:
            made.add_argument(
                "name", nargs="?", default="default", help="which control plane (default)"
            )
        return made

    made = command("build", _build, "build its programs once", named=False)
    made.add_argument("-v", "--verbose", action="store_true", help="say where each program is")
    made = command("up", _up, "start one that stays until `down`")
    made.add_argument("--nodes", type=Path, default=NODES, help="a file with the nodes to simulate")
    command("down", _down, "stop one and remove its data")
    command("status", _status, "list programs and control planes", named=False)
    made = command("kubeconfig", _kubeconfig, "write a kubeconfig for a user and print its path")
    made.add_argument("--user", required=True)
    made.add_argument("--group", action="append", default=[])
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
