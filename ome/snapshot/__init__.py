"""What the core plans from."""

from ome.snapshot.config import CONFIG_NAME, Config, IngressConfig, InvalidConfig, parse_config
from ome.snapshot.filling import (
    PARAMETER_PREFIX,
    PRESET_ANNOTATION,
    Filling,
    Presets,
    Runtime,
    no_presets,
    unknown_preset,
)
from ome.snapshot.lineage import INHERIT_FROM, BrokenChain, Effective, Lineage
from ome.snapshot.revision import Revision, RevisionOf, read_revision
from ome.snapshot.snapshot import (
    DEFAULT_OME_NAMESPACE,
    EVERY_API,
    ApiKind,
    Kept,
    PluginVersion,
    Snapshot,
)

__all__ = [
    "CONFIG_NAME",
    "DEFAULT_OME_NAMESPACE",
    "EVERY_API",
    "INHERIT_FROM",
    "PARAMETER_PREFIX",
    "PRESET_ANNOTATION",
    "ApiKind",
    "BrokenChain",
    "Config",
    "Effective",
    "Filling",
    "IngressConfig",
    "InvalidConfig",
    "Kept",
    "Lineage",
    "PluginVersion",
    "Presets",
    "Revision",
    "RevisionOf",
    "Runtime",
    "Snapshot",
    "no_presets",
    "parse_config",
    "read_revision",
    "unknown_preset",
]
