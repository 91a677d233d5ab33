"""Write the flag table of an engine plugin from released packages.

`python tools/derive_flags.py ENGINE PACKAGE...` reads the command line of each package (a wheel or a
source archive) from its source with `ast`: nothing is imported, nothing is fetched. It rewrites the
plugin's `flags.json`. `--check` writes nothing and exits 1 when the file isn't what would be written;
`--print` shows the number of flags per release. Get the packages with `pip download --no-deps`.

What a reader can't read (an action or a type it has never seen) is an error, never a guess.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from flag_readers import sglang, tokenspeed, vllm
from flag_readers.common import Option

ROOT = Path(__file__).resolve().parent.parent
READERS: dict[str, Callable[[Path], Iterable[tuple[Any, ...]]]] = {
    "sglang": sglang.read,
    "tokenspeed": tokenspeed.read,
    "vllm": vllm.read,
}
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:\.(\d+))?(?:\.post(\d+))?")


def target(engine: str) -> Path:
    """The table of an engine's plugin."""
    return ROOT / "plugins" / engine / f"ome_engine_{engine}" / "flags.json"


def read_package(engine: str, path: Path) -> tuple[str, list[Option]]:
    """The release of a package and the options of its server."""
    named = re.match(rf"{engine}-(.+?)(?:-|\.tar\.gz$)", path.name)
    if named is None:
        raise SystemExit(f"{path}: no package of {engine}")
    try:
        return named[1], [Option(*option) for option in READERS[engine](path)]
    except ValueError as error:
        raise SystemExit(f"{path}: {error}") from error


def order(version: str) -> tuple[int, ...]:
    """Releases in their order."""
    found = VERSION.fullmatch(version)
    if found is None:
        raise SystemExit(f"{version}: no release")
    return tuple(int(part or -1) for part in found.groups())


def table(releases: dict[str, Sequence[tuple[Any, ...]]]) -> dict[str, Any]:
    """One table of all releases: spellings, arity and the releases that have them so."""
    versions = sorted(releases, key=order)
    rows: dict[tuple[str, str, str], list[int]] = {}
    for at, version in enumerate(versions):
        for option in (Option(*found) for found in releases[version]):
            marks = " repeatable" * option.repeatable + " deprecated" * option.deprecated
            key = (joined(option.names), option.arity + marks, joined(option.opposites))
            rows.setdefault(key, []).append(at)
    options = [
        [names, arity, spans(found), *([off] if off else [])]
        for (names, arity, off), found in sorted(rows.items())
    ]
    return {"versions": versions, "options": options}


def joined(names: Iterable[str]) -> str:
    """Spellings in one text, short ones first."""
    return " ".join(sorted(names, key=lambda name: (len(name), name)))


def spans(numbers: Sequence[int]) -> str:
    """`0-3 5` for 0, 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def text_of(found: dict[str, Any]) -> str:
    """The file: one option a line."""
    rows = ",\n".join("  " + json.dumps(row) for row in found["options"])
    return f'{{\n"versions": {json.dumps(found["versions"])},\n"options": [\n{rows}\n]\n}}\n'


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engine", choices=READERS)
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--print", action="store_true", help="show the flags per release")
    given = parser.parse_args()
    releases = dict(read_package(given.engine, path) for path in given.packages)
    if given.print:
        for version in sorted(releases, key=order):
            options = releases[version]
            print(
                version,
                len(options),
                "options,",
                sum(len(o.names + o.opposites) for o in options),
                "flags",
            )
    text = text_of(table(releases))
    path = target(given.engine)
    if given.check:
        return int(not path.is_file() or path.read_text("utf-8") != text)
    path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
