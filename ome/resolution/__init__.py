"""From a service and a snapshot to a model, a runtime and its effective spec, or a refusal."""
