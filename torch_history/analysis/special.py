"""SciPy's special functions, imported when one is first asked for: measuring a single release and moving a requirements file
ask for none, and SciPy is larger than all else that is installed."""

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    return getattr(special, name)
