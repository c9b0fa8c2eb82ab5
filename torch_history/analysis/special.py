"""SciPy's special functions, imported when one is asked for: they are large, and measuring a release asks for none."""

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    return getattr(special, name)
