"""Do the packages that a user's file asks for lie beside a release, which stays as it is, and is what cannot be had told?"""

import contextlib
import re
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from contract.request import ADDED
from torch_history.cli.running import having
from torch_history.releases import added
from torch_history.releases.added import AddingError
from torch_history.releases.environments import ReleaseEnvironment
from torch_history.releases.uv import run_uv, told
from torch_history.store import own as skipped
from torch_history.system.errors import SessionError

from .test_environments import FakeUv

PACKAGES = ("torch==2.14.1", "numpy==1.26.4")
ASKED = ("torchvision",)
WANTED = added.Wanted("v2.14.1 on Python 3.11", "3.11", PACKAGES, ASKED)


@pytest.fixture
def uv(monkeypatch) -> FakeUv:
    played = FakeUv()
    played.resolved = ["torch==2.14.1", "pillow==11.0.0", "torchvision==0.29.1"]
    monkeypatch.setattr(added, "run_uv", played)
    return played


def test_only_what_the_release_lacks_is_installed_and_only_once(tmp_path, uv):
    path = WANTED.add(tmp_path, 0)
    assert tuple(uv.constraints.split()) == PACKAGES
    assert list(uv.calls[1][-2:]) == ["pillow==11.0.0", "torchvision==0.29.1"]
    assert all("--no-build" in call for call in uv.calls), "a source that is built could run anything"
    assert [each.name for each in tmp_path.iterdir()] == [added.FOLDER], "nothing of the release itself is touched"
    assert (path / "torch.py").exists()
    assert WANTED.add(tmp_path, 0) == path
    assert len(uv.calls) == 2
    assert added.listed(path.parent / added.MARK) == ["pillow==11.0.0", "torchvision==0.29.1"]


@pytest.mark.parametrize("step", ["pip compile", "pip install"])
def test_what_fails_is_told_and_leaves_nothing(tmp_path, uv, step):
    uv.failing[step] = subprocess.CalledProcessError(2, ["uv"], output="", stderr="No solution found")
    with pytest.raises(AddingError, match=r"torchvision cannot be had for v2\.14\.1 on Python 3\.11.*No solution"):
        WANTED.add(tmp_path, 0)
    assert not list(tmp_path.glob("added/*"))
    uv.failing.clear()
    assert (WANTED.add(tmp_path, 0) / "torch.py").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [("--offline", "uv said: .*connectorx==99"), ("--index-url=http://127.0.0.1:9", "the package index is out of")],
)
def test_an_index_is_out_of_reach_only_where_uv_says_so(tmp_path, monkeypatch, option, said):
    for name, value in {"UV_HTTP_RETRIES": "0", "UV_CACHE_DIR": str(tmp_path), "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run_uv(["pip", "compile", "-", option], stdin="connectorx==99")
    assert re.match(said, told(raised.value))


def test_a_release_that_lacks_them_is_left_out_with_its_reason(tmp_path):
    said: list[str] = []
    out: Any = SimpleNamespace(print=lambda words, **_: said.append(words), status=lambda _: contextlib.nullcontext())
    releases: Any = [SimpleNamespace(tag="v1"), SimpleNamespace(tag="v2")]

    def environment(*lacking: str) -> Any:
        def adding(release: Any) -> None:
            if release.tag in lacking:
                raise AddingError("no such package.")

        return SimpleNamespace(needed=ASKED, name="release-py3.11", adding=adding)

    assert having(releases, environment("v1"), out, tmp_path) == releases[1:]
    assert skipped.reasons(tmp_path, "release-py3.11") == {"v1": "no such package."}
    assert said == ["v1 is skipped: no such package."]
    with pytest.raises(SessionError, match="None of these releases"):
        having(releases, environment("v1", "v2"), out, tmp_path)


def test_the_processes_are_told_where_they_lie(tmp_path):
    environment = ReleaseEnvironment.__new__(ReleaseEnvironment)
    assert environment.surroundings({ADDED: "/inherited"})[ADDED] == ""
    environment.added = tmp_path
    told = environment.surroundings({})
    assert told[ADDED] == told["ASV_PYTHONPATH"] == str(tmp_path)
