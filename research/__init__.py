"""Programs that measure or confirm the project itself. Nobody needs them to use torch-history; README.md lists them."""
