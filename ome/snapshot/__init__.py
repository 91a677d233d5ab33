"""What the core plans from."""

from ome.snapshot.config import CONFIG_NAME, Config, IngressConfig, InvalidConfig, parse_config
from ome.snapshot.lineage import INHERIT_FROM, BrokenChain, Effective, Lineage, Runtime
from ome.snapshot.revision import Revision, read_revision
from ome.snapshot.snapshot import (
    DEFAULT_OME_NAMESPACE,
    EVERY_API,
    ApiKind,
    PluginVersion,
    Snapshot,
)

__all__ = [
    "CONFIG_NAME",
    "DEFAULT_OME_NAMESPACE",
    "EVERY_API",
    "INHERIT_FROM",
    "ApiKind",
    "BrokenChain",
    "Config",
    "Effective",
    "IngressConfig",
    "InvalidConfig",
    "Lineage",
    "PluginVersion",
    "Revision",
    "Runtime",
    "Snapshot",
    "parse_config",
    "read_revision",
]
