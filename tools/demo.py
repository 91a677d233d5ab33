"""What `make demo` shows: the 70B example, and what OME did with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from ome.engines.discovery import discover
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, load, read_paths

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/llama-3-3-70b"


def main() -> int:
    """Render the example in this process and tell the story of its flags."""
    say: Callable[..., None] = print
    engines = discover()
    for failed in engines.errors:
        say(f"Warning: engine plugin {failed.name} isn't used: {failed.message}", file=sys.stderr)
    presets = InstalledPresets(engines)
    loaded = load(read_paths([str(EXAMPLE)]), presets=presets)
    snapshot = Snapshot.of(loaded.objects, config=loaded.config, presets=presets)
    (service,) = snapshot.services()
    result = plan(snapshot, service, engines, provenance=True)
    leaves = result.provenance["engine"]
    say("OME renders the InferenceService of examples/llama-3-3-70b without a cluster.\n")
    say(f"  service   {result.service}")
    decision = result.decision or {}
    say(f"  model     {decision.get('model')}")
    say(f"  runtime   {decision.get('runtime')} (named by the service)")
    say(f"  engines   {', '.join(f'{e.name} {e.version}' for e in engines) or 'none installed'}\n")
    say("The flags of its server, and who set each:\n")
    for path, (value, layer) in leaves.items():
        if path.startswith("containers[ome-container].args["):
            say(f"  {value:<36} {layer}")
    say("\nThe objects, in the order they are applied:\n")
    for item in result.objects():
        say(f"  {item['kind']:<24} {item['metadata']['name']}")
    for warning in (each for each in result.warnings if not each.is_note):
        say(f"  Warning: {warning}")
    bin_ome = Path(sys.executable).with_name("ome")
    shown = bin_ome.relative_to(Path.cwd()) if bin_ome.is_relative_to(Path.cwd()) else bin_ome
    say(f"\nTry it:  {shown} render -f examples/llama-3-3-70b")
    say(f"         {shown} render -f examples/llama-3-3-70b --show provenance")
    return 0 if not list(result.refusals()) else 1


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
