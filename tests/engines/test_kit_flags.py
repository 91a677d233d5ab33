"""The kit's flag tables: releases, lookups under parser rules, and the dialect that follows."""

from __future__ import annotations

import json

import pytest

from ome.engines import Arity
from ome.engines.kit import (
    AmbiguousFlag,
    Exclusive,
    FlagTable,
    Option,
    ParserRules,
    order_of,
    read_table,
)

FLAGS = json.dumps(
    {
        "versions": ["1.0.0", "1.1.0", "1.2.0"],
        "options": [
            ["-t --tp --tensor-size", "one", "0-2"],
            ["-n --nodes", "one", "0-2"],
            ["--quiet", "none", "0-2", "--no-quiet --loud"],
            ["--label", "one repeatable", "1-2"],
            ["--label", "many", "0"],
            ["--level", "optional", "0 2"],
            ["--old", "one", "0-1"],
            ["--older", "one deprecated", "1"],
            ["--config", "one", "0-2"],
        ],
    }
)
HINTS = json.dumps(
    {
        "short": {"--ts": "--tensor-size"},
        "instead": {"--old": "use --new"},
        "unparsed": ["--kind"],
        "exclusive": [{"since": "1.1.0", "alternatives": [["--quiet"], ["--level", "--label"]]}],
    }
)
LOOSE = ParserRules(underscores=True, glued=True, dotted=True)


@pytest.fixture
def table() -> FlagTable:
    return read_table(FLAGS, hints=HINTS)


def test_what_a_table_holds(table: FlagTable) -> None:
    assert [release.version for release in table.releases] == ["1.0.0", "1.1.0", "1.2.0"]
    newest = table.releases[-1].by_spelling
    assert newest["--loud"] == Option(
        ("--quiet",), Arity.SWITCH, opposites=("--no-quiet", "--loud")
    )
    assert newest["--tp"] is newest["-t"]
    assert newest["--label"].repeatable
    assert "--level" not in table.releases[1].by_spelling
    assert table.releases[1].by_spelling["--older"].deprecated
    assert table.conflicting == {"--label"}
    assert table.hints.exclusive == (Exclusive("1.1.0", (("--quiet",), ("--level", "--label"))),)
    assert (table.hints.unparsed, table.hints.short) == ({"--kind"}, {"--ts": "--tensor-size"})


def test_a_table_without_hints() -> None:
    assert read_table(FLAGS).hints.instead == {}


@pytest.mark.parametrize(
    "version, expected",
    [
        ("1.1.0", ["1.1.0"]),
        ("1.1.1", ["1.2.0", "1.1.0"]),
        ("0.9.0", ["1.0.0"]),
        ("2.0.0", ["1.2.0"]),
        ("", ["1.2.0", "1.1.0", "1.0.0"]),
        ("nightly", ["1.2.0", "1.1.0", "1.0.0"]),
    ],
)
def test_releases_for(table: FlagTable, version: str, expected: list[str]) -> None:
    assert [release.version for release in table.releases_for(version)] == expected


def test_versions_are_ordered() -> None:
    texts = ["0.9.0rc1", "0.9.0rc2", "0.9.0", "0.9.0.post1", "0.9.0.1", "0.9.1", "0.10.0"]
    keys = [order_of(text) for text in texts]
    assert None not in keys
    assert keys == sorted(key for key in keys if key is not None)
    assert [order_of(text) for text in ("v1", "1.2", "", "1.2.3.4.5", "9" * 5000 + ".0.0")] == [
        None
    ] * 5


# rules, flag, the longest spelling of the option that it means; None when it means none
PLAIN = ParserRules()
LOOKUPS = [
    (PLAIN, "--tensor-size", "--tensor-size"),
    (PLAIN, "--tens", "--tensor-size"),
    (PLAIN, "--tensor_size", None),
    (PLAIN, "-n", "--nodes"),
    (PLAIN, "-n2", None),
    (PLAIN, "--config.key", None),
    (PLAIN, "--loud", "--quiet"),
    (ParserRules(prefixes=False), "--tens", None),
    (ParserRules(prefixes=False), "--tp", "--tensor-size"),
    (LOOSE, "--tensor_size", "--tensor-size"),
    (LOOSE, "-n2", "--nodes"),
    (LOOSE, "-x2", None),
    (LOOSE, "--config.a_b", "--config"),
    (LOOSE, "--conf.a_b", "--config"),
]


@pytest.mark.parametrize("rules, flag, expected", LOOKUPS)
def test_option_of(rules: ParserRules, flag: str, expected: str | None) -> None:
    found = read_table(FLAGS, rules).releases[-1].option_of(flag)
    assert (found.spellings[-1] if found else None) == expected


def test_an_ambiguous_flag_names_its_options(table: FlagTable) -> None:
    release = table.releases[1]
    with pytest.raises(AmbiguousFlag) as caught:
        release.option_of("--ol")
    assert caught.value.args == ("--old", "--older")
    assert release.is_ambiguous("--ol") == ("--old", "--older")
    assert release.is_ambiguous("--old") == ()
    assert (release.takes("--ol"), release.takes("--none")) == (True, False)
    assert (table.has("--level"), table.has("--none")) == (True, False)


def test_a_beginning_and_a_glued_value_are_ambiguous() -> None:
    flags = '{"versions": ["1.0.0"], "options": [["-n", "one", "0"], ["-nx", "one", "0"]]}'
    release = read_table(flags, LOOSE).releases[0]
    assert release.option_of("-n4") == Option(("-n",), Arity.VALUE)
    assert release.option_of("-nx") == Option(("-nx",), Arity.VALUE)
    assert release.glued_value("-n4") == "4"
    assert release.glued_value("-nx") is None


def test_dialect(table: FlagTable) -> None:
    exact = table.dialect("1.2.0")
    assert exact.arity_of("--label") is Arity.VALUE
    assert exact.arity_of("--older") is Arity.VALUE
    assert exact.arity_of("--no-quiet") is Arity.SWITCH
    assert exact.repeatable == {"--label"}
    assert (exact.prefixes, exact.underscores, exact.glued, exact.dotted) == (
        True,
        False,
        False,
        False,
    )
    between = table.dialect("1.0.5")
    assert between.arity_of("--label") is None
    loose = read_table(FLAGS, LOOSE).dialect("1.2.0")
    assert (loose.arity_of("--tensor_size"), loose.arity_of("-n2")) == (Arity.VALUE, Arity.SWITCH)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"versions": ["1.0.0"], "options": [["--a", "two", "0"]]}']
)
def test_junk_raises(text: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        read_table(text)
