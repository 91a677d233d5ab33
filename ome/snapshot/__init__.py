"""What the core plans from."""

from ome.snapshot.config import CONFIG_NAME, Config, IngressConfig, InvalidConfig, parse_config
from ome.snapshot.revision import Revision, read_revision
from ome.snapshot.snapshot import (
    DEFAULT_OME_NAMESPACE,
    EVERY_API,
    ApiKind,
    PluginVersion,
    Runtime,
    Snapshot,
)

__all__ = [
    "CONFIG_NAME",
    "DEFAULT_OME_NAMESPACE",
    "EVERY_API",
    "ApiKind",
    "Config",
    "IngressConfig",
    "InvalidConfig",
    "PluginVersion",
    "Revision",
    "Runtime",
    "Snapshot",
    "parse_config",
    "read_revision",
]
