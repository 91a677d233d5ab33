"""What the tests of OME and of its own plugins share: the fixtures that any plugin's tests can have."""

pytest_plugins = ["controlplane.pytest_plugin", "ome.testing.pytest_plugin"]
