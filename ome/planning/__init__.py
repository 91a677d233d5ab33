"""From a resolved service to a plan: objects, conditions, events and warnings."""
