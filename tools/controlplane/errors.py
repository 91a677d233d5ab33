"""What goes wrong outside of this package: a missing tool, a failed build, a process that ended."""

from __future__ import annotations

__all__ = ["ControlPlaneError", "PortLostError"]


class ControlPlaneError(Exception):
    """A message for the person at the terminal that says what to do."""


class PortLostError(ControlPlaneError):
    """A port that was free has been taken by another process before ours bound it."""
