"""What `kubectl ome runtime` reports, as data: computed from a snapshot, formatted elsewhere."""
