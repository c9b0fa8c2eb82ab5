"""Under the name by which process.py asks for it: how what a process starts ends with it."""

from contract.children import dies_with_parent  # noqa: F401
