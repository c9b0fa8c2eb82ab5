"""SciPy's special functions, imported when one is first asked for: measuring a single release asks for none, and a machine
with a GPU may have no SciPy."""

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    return getattr(special, name)
