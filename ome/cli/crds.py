"""`ome crds`: the CustomResourceDefinitions."""

from __future__ import annotations

import argparse
import sys

from ome.api.crds import crds
from ome.cli.output import to_yaml

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print them as YAML."""
    sys.stdout.write(to_yaml(crds()))
    return 0
