"""New engine plugins from templates."""
