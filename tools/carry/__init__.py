"""Makes the parts of a release, to measure it where there is no network: docs/machines.md."""
