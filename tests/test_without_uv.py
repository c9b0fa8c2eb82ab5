"""Does a machine that has a torch and little else do without the rest? Packages that it lacks are made unimportable here; a
kit measures without a network in tests/test_kit.py."""

import os
import sys

import pytest

from .processes import ROOT, ran

LACKING = ("requests", "threadpoolctl", "torch", "uv", "virtualenv")
"""What is made unimportable: all that a container with PyTorch has not, and asv does not need to measure."""

BLOCK = f"import sys\nsys.modules.update(dict.fromkeys({LACKING!r}))\n"

IMPORTED = """
import torch_history.analysis.compare
import torch_history.cli.running
import torch_history.measuring.subjects
import torch_history.measuring.kit.check
import recorder.certificate
from asv import environment
from torch_history.measuring.session import load_suite
from torch_history.releases.environments import ReleaseEnvironment

conf, axis = load_suite("{root}")
(release,) = environment.get_environments(conf, None)
assert isinstance(release, ReleaseEnvironment)
release.root = release.root / "none"
try:
    release.install_project(conf, None, axis.newest.tag)
except environment.util.ProcessError as error:
    assert "Install it with" in str(error), error
else:
    raise AssertionError("it was installed")
"""

COMMAND = "import sys; sys.argv[0] = 'torch-history'; from torch_history.__main__ import main; main()"


def test_all_that_measures_is_imported_and_what_must_be_installed_is_refused_in_a_sentence(tmp_path):
    code = BLOCK + IMPORTED.format(root=ROOT).replace('release.root / "none"', f"type(release.root)({str(tmp_path)!r})")
    surroundings = {**os.environ, "HOME": str(tmp_path), "TORCH_HISTORY_DEVICE": "cpu"}
    ran(sys.executable, "-c", code, cwd=ROOT, env=surroundings)


@pytest.mark.parametrize(
    "line", ["--version", "run --help", "certify --help", "check {}", "compare 2.14.1 2.15.0 --question batching"]
)
def test_a_command_that_installs_nothing_needs_no_uv(line, tmp_path):
    surroundings, words = {**os.environ, "HOME": str(tmp_path)}, line.format(tmp_path).split()
    ran(sys.executable, "-c", BLOCK + COMMAND, *words, cwd=ROOT, env=surroundings)
