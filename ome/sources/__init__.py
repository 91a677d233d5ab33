"""Where snapshots come from: files, and the presets that fill their runtimes."""

from ome.sources.documents import UnreadableInput
from ome.sources.files import read_paths
from ome.sources.load import Loaded, load
from ome.sources.presets import InstalledPresets

__all__ = ["InstalledPresets", "Loaded", "UnreadableInput", "load", "read_paths"]
