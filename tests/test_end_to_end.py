"""Does one release go all the way, from its installation to the pages? It installs PyTorch: a minute and gigabytes."""

import json
import sys

import pytest

from .processes import ran
from .test_releases import RESULT, _surroundings, copied, install, numbers

pytestmark = pytest.mark.end_to_end

RELEASE = "v2.15.0"


def test_one_release_from_its_installation_to_the_pages(tmp_path):
    install(RELEASE, "3.11")
    suite = copied(tmp_path / "suite")
    chosen = r"intersection.*(time|peak_memory)\('(eager|in_place)', 'small'"
    for command in (["run", RELEASE, "--bench", chosen], ["publish"]):
        ran(sys.executable, "-m", "asv", *command, cwd=suite, env=_surroundings(suite))
    (eager,) = numbers(suite, RELEASE, "peak_memory", "eager")
    assert abs(eager - 4 * RESULT) <= 4096
    assert numbers(suite, RELEASE, "peak_memory", "in_place") == [3 * RESULT]
    assert RELEASE in json.loads((suite / "html" / "asv" / "index.json").read_text(encoding="utf-8"))["tags"]
