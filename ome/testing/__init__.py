"""What tests are built from."""
