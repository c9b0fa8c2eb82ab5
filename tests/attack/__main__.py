"""`python -m tests.attack --write` runs the suite and writes what was tried and survived into docs/reliability.md."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .tally import PAGE, Tally, with_table


class _Heard:
    """Keeps the tally of the run, which the suite's conftest.py makes."""

    tally: Tally | None = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for plugin in session.config.pluginmanager.get_plugins():
            found = getattr(plugin, "TALLY", None)
            if isinstance(found, Tally):
                self.tally = found


def main() -> int:
    """The exit code of pytest. The page is written only where all attacks were survived."""
    heard = _Heard()
    code = int(pytest.main([str(Path(__file__).parent), "-q", "--deselect", PAGE_TEST], plugins=[heard]))
    if code == 0 and heard.tally and "--write" in sys.argv:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), heard.tally.table()), encoding="utf-8")
    return code


PAGE_TEST = "tests/attack/test_page.py"

if __name__ == "__main__":
    sys.exit(main())
