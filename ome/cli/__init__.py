"""The commands `ome` and `kubectl-ome`."""
