"""`python -m tests.attack --write` runs the suite and writes what was tried and survived into docs/generated/attacks.md."""

import sys
from pathlib import Path

import pytest

from .tally import PAGE, page


def main() -> int:
    """The exit code of pytest. The page is written only where all attacks were survived."""
    code = int(pytest.main([str(Path(__file__).parent), "-q", "--deselect", "tests/attack/test_page.py"]))
    if code == 0 and "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
