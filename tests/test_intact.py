"""Is an edit of an installed file found before anything is measured, although it reaches every release that shares the file?

The real uv installs wheels that are made here, from a folder and without a network.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from asv.config import Config
from asv.repo import get_repo

from torch_history.releases import added, environments, intact, repository
from torch_history.releases.environments import HARNESS, ReleaseEnvironment

from .test_installation import LANE, only_from, write_wheel

RELEASES = ("2.0.0", "2.0.1", "2.1.0")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for package in (*HARNESS, *(f"torch=={release}" for release in RELEASES), "more==1"):
        write_wheel(folder, package.replace("-", "_"), f"name = {package!r}\n")
    only_from(folder, monkeypatch)
    return folder


@pytest.fixture
def conf(wheels: Path, write_releases: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environments, "_intact", set())
    monkeypatch.setattr(environments, "refusals", {})
    releases = write_releases(*RELEASES, pythons=(LANE,))
    return Config.from_json(
        {"repo": str(releases), "dvcs": repository.ReleaseAxis.dvcs, "env_dir": "env", "project": "PyTorch"}
    )


def install(conf: Config, tag: str, *needed: str) -> Path:
    """As another process would, which has looked at no environment yet; returns the folder of packages."""
    environments._intact.clear()
    lane = ReleaseEnvironment(conf, LANE, {}, {})
    lane.needed = needed
    lane.install_project(conf, get_repo(conf), tag)
    return Path("env", f"{tag}-py{LANE}", "lib", f"python{LANE}", "site-packages").resolve()


def edit(path: Path) -> None:
    """In place, with as many bytes as before, and its time set back: what a hurried look would not see."""
    status, text = path.stat(), path.read_text()
    with path.open("r+") as stream:
        stream.write(text.replace("name", "evil"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_an_edit_through_one_release_is_found_in_each_and_no_cache_hands_it_out(
    conf: Config, warned: list[str]
) -> None:
    one, other = install(conf, "v2.0.1"), install(conf, "v2.1.0")
    if not (one / "numpy.py").samefile(other / "numpy.py"):
        pytest.skip("this file system shares blocks, so no file has two names")
    edit(one / "numpy.py")
    assert (other / "numpy.py").read_text().startswith("evil")
    third = install(conf, "v2.0.0")  # which the edited cache would be linked into
    assert (third / "numpy.py").read_text().startswith("name")
    for tag, folder in (("v2.1.0", other), ("v2.0.1", one)):
        warned.clear()
        assert install(conf, tag) == folder
        assert (folder / "numpy.py").read_text().startswith("name")
        (sentence,) = warned
        assert sentence.startswith(
            f"{tag} in {folder.parents[2]} is not as its packages say: numpy.py of numpy differ."
        )
        assert "installed again" in sentence
    warned.clear()
    assert [install(conf, f"v{release}") for release in RELEASES] == [third, one, other]
    assert warned == []


def test_a_file_is_read_again_only_where_the_system_says_that_it_may_have_changed(
    conf: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    sha256 = intact._sha256

    def reading(path: Path) -> str:
        read.append(path.name)
        return sha256(path)

    monkeypatch.setattr(intact, "_sha256", reading)
    folder = install(conf, "v2.0.1")
    assert {"torch.py", "numpy.py"} < set(read)  # what the cache handed out is looked at at once
    read.clear()
    install(conf, "v2.0.1")
    assert read == []
    os.utime(folder / "torch.py")
    install(conf, "v2.0.1")
    assert read == ["torch.py"]


@pytest.mark.parametrize("change", ["removed", "record", "record gone"])
def test_what_is_missing_and_an_edited_record_are_damage_too(conf: Config, warned: list[str], change: str) -> None:
    folder = install(conf, "v2.0.1")
    (record,) = folder.glob("numpy-*.dist-info/RECORD")
    if change == "removed":
        (folder / "numpy.py").unlink()
    elif change == "record":
        record.write_text(record.read_text().splitlines()[-1] + "\n")
    else:
        record.unlink()
    install(conf, "v2.0.1")
    assert "is not as its packages say" in warned[0]
    assert (folder / "numpy.py").read_text().startswith("name")


def test_a_wheel_whose_record_is_wrong_is_installed_and_then_held_to_what_it_brought(
    conf: Config, wheels: Path, warned: list[str]
) -> None:
    """As torch 1.9.1's is of libtorch_cpu.so: it is a wheel all the same, of the sha256 that the lock has."""
    write_wheel(wheels, "numpy==1.26.4", "name = 1\n")
    path = wheels / "numpy-1.26.4-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, b"other = 1\n" if name == "numpy.py" else content)
    folder = install(conf, "v2.0.1")
    assert (folder / "numpy.py").read_text() == "other = 1\n"
    install(conf, "v2.0.1")
    assert warned == []
    linked = wheels / "linked"
    linked.symlink_to(Path("env", f"v2.0.1-py{LANE}").resolve())
    assert intact.damage(linked) == {}  # wherever it is looked at from
    edit(folder / "torch.py")
    with (folder / "numpy.py").open("a") as stream:
        stream.write("evil = 1\n")
    install(conf, "v2.0.1")
    assert "numpy.py and 1 other file of numpy, torch differ" in warned[0]
    assert (folder / "numpy.py").read_text() == "other = 1\n"


def test_what_an_own_file_needs_besides_is_looked_at_too(conf: Config) -> None:
    install(conf, "v2.0.1", "more")
    (module,) = Path("env").glob(f"v2.0.1-py{LANE}/{added.FOLDER}/*/site-packages/more.py")
    edit(module)
    install(conf, "v2.0.1", "more")
    assert module.read_text().startswith("name")


# --- uv's own configuration


@pytest.mark.parametrize(
    ("file", "text"),
    [("uv.toml", '[pip]\ntarget = "elsewhere"\n'), ("pyproject.toml", '[tool.uv.pip]\ntarget = "elsewhere"\n')],
)
def test_a_configuration_in_the_working_folder_sends_no_package_elsewhere(conf: Config, file: str, text: str) -> None:
    Path(file).write_text(text)
    assert (install(conf, "v2.0.1") / "torch.py").exists()
    assert not Path("elsewhere").exists()
