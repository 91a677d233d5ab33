"""A controller as a process of its own, and what can be asked of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import ROOT, until

__all__ = ["Process", "process"]


class Process:
    """One controller."""

    def __init__(self, kubeconfig: Path, *flags: str) -> None:
        self._log = tempfile.NamedTemporaryFile()  # noqa: SIM115
        anywhere = ("--health-probe-addr=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0")
        program = "from ome.cli.main import run; run()"
        command = [sys.executable, "-c", program, "controller", f"--kubeconfig={kubeconfig}"]
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [*command, *anywhere, *flags], stderr=self._log, cwd=ROOT, env=environ
        )

    def log(self) -> list[dict[str, Any]]:
        """The lines so far."""
        return [json.loads(line) for line in Path(self._log.name).read_bytes().splitlines()]

    def said(self, message: str) -> bool:
        """Whether it has logged something."""
        return any(line["msg"] == message for line in self.log())

    def get(self, path: str) -> tuple[int, str]:
        """An endpoint's answer."""
        until(lambda: self.said("starting"))
        health, metrics = self.log()[0]["endpoints"]
        url = (metrics if path == "/metrics" else health) + path
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def writes(self) -> dict[str, float]:
        """Its writes by verb and resource, the Lease's left out."""
        found = {}
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith("ome_api_requests_total") and 'resource="leases"' not in line:
                name, _, value = line.rpartition(" ")
                if not any(f'verb="{verb}"' in name for verb in ("get", "watch")):
                    found[name] = float(value)
        return found

    def metric(self, name: str, *resources: str) -> float:
        """The sum of a metric's values, of these resources only when there are any."""
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.get("/metrics")[1].splitlines()
            if line.startswith(f"{name}{{")
            and (not resources or any(f'resource="{each}"' in line for each in resources))
        )

    def memory(self) -> float:
        """Its resident memory in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        (found,) = re.findall(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE)
        return int(found) / 1024

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._log.close()
        return code


@contextmanager
def process(kubeconfig: Path, *flags: str) -> Iterator[Process]:
    """A controller that is ended at the latest when the block is left."""
    made = Process(kubeconfig, *flags)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGKILL)
