"""Is what a user's file says before it is run read right, and is what is misspelled in it refused in a sentence?"""

from pathlib import Path

import pytest

from torch_history.measuring.subjects import OwnWorkload
from torch_history.store.sources import own_versions
from torch_history.system.errors import SessionError

FILE = "def inputs():\n    return 1\nfunctions = {'f': abs}\n"


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def read(folder: Path, more: str) -> OwnWorkload:
    path = folder / "mine.py"
    path.write_text(FILE + more)
    return OwnWorkload.of(path)


def digest_and_versions(folder: Path) -> tuple[str, dict[str, str]]:
    own = read(folder, "needs = ['data.csv']\n")
    return own.digest, own_versions(own.question, own.text)


def test_threads_are_read(tmp_path):
    assert read(tmp_path, "").threads is None
    assert read(tmp_path, "threads = 2\n").threads == 2


def test_requirements_are_read_and_a_change_is_another_version(tmp_path):
    one = read(tmp_path, "requirements = ['torchvision', 'transformers==4.44.*']\n")
    assert one.requirements == ("torchvision", "transformers==4.44.*")
    assert read(tmp_path, "requirements = ['torchvision']\n").digest != one.digest


def test_a_change_of_what_it_needs_begins_a_new_measurement(tmp_path):
    (tmp_path / "data.csv").write_text("1")
    before, versions = digest_and_versions(tmp_path)
    assert digest_and_versions(tmp_path) == (before, versions)
    (tmp_path / "data.csv").write_text("2")
    after, others = digest_and_versions(tmp_path)
    assert after != before
    assert all(others[name] != version for name, version in versions.items()), "what was measured before must not count"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("setups = {}", "mine.py gives `setups`, which nothing reads. Did you mean `setup`"),
        ("metrics = ('time',)", "mine.py gives `metrics`, which nothing reads. Did you mean `METRICS`"),
        ("threads = many()", "`threads` in mine.py must be a whole number"),
        ("needs = 'data.csv'", "`needs` in mine.py must be a list of files"),
        ("needs = ['gone.csv']", "because of .*gone.csv, which it needs: it cannot be read .No such file"),
        ("requirements = 'torchvision'", "`requirements` in mine.py must be a list of packages"),
        ("requirements = ['Torch==2.0']", "names torch, which is what is compared"),
        ("requirements = ['a @ https://index.example/a.whl']", "names an address"),
        ("requirements = ['-r other.txt']", "is no package with a version"),
        ("requirements = ['./here']", "is no package with a version"),
        ("requirements = ['a\\n--index-url b']", "is no package with a version"),
        ("requirements = [1]", "1 is no name of a package"),
    ],
)
def test_what_is_wrong_is_refused_in_a_sentence(tmp_path, more, sentence):
    with pytest.raises(SessionError, match=sentence):
        read(tmp_path, more + "\n")


def test_names_that_are_used_or_far_from_any_are_left_alone(tmp_path):
    read(tmp_path, "size = 3\nprint(size)\nWIDTH = 3\nnames = []\n")
