"""Is what is installed what the lock says, by one writer at a time, and is only our own removed? With uv itself where files
are checked, small wheels in a folder for the packages, and with a script in its place where a process is killed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from asv.config import Config
from asv.repo import get_repo
from uv import find_uv_bin

from torch_history.releases import added, environments, intact
from torch_history.releases.environments import CACHE, MARK, InstallationError, ReleaseEnvironment

from .processes import ROOT, listing, lives, program, until
from .test_environments import FEW, LANE, write_lock

NAME = f"v2.0.1-py{LANE}"


def write_wheel(folder: Path, package: str, body: str = "", requires: str = "") -> str:
    """Writes a wheel of one module into `folder`; returns the sha256 of its file."""
    name, _, version = package.partition("==")
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": body or f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {path: urlsafe_b64encode(hashlib.sha256(text.encode()).digest()) for path, text in files.items()}
    rows = [f"{path},sha256={digests[path].rstrip(b'=').decode()},{len(text)}\n" for path, text in files.items()]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": "".join(rows) + f"{info}/RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(file, (2026, 1, 1, 0, 0, 0)), text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def conf(asv_conf) -> Config:
    return asv_conf(*FEW, pythons=(LANE,))


@pytest.fixture
def wheels(tmp_path, monkeypatch) -> Path:
    """A folder of the resolver's, in which alone uv finds wheels; its cache is one that other projects use."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    for name, value in {"FIND_LINKS": str(folder), "NO_INDEX": "1", "OFFLINE": "1"}.items():
        monkeypatch.setenv(f"UV_{name}", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
    monkeypatch.setattr(environments, "HARNESS", ())
    monkeypatch.setattr(environments, "refusals", {})
    return folder


def install(conf: Config, tag: str = "v2.0.1") -> Path:
    ReleaseEnvironment(conf, LANE, {}, {}).install_project(conf, get_repo(conf), tag)
    return Path("env", f"{tag}-py{LANE}").resolve()


def lock_all(wheels: Path, tag: str = "v2.0.1", helper: str = "") -> None:
    """A torch that needs a helper, whose module is `helper`, and the lock of both."""
    packages = {"helper==1.0": {"body": helper}, f"torch=={tag[1:]}": {"requires": "helper"}}
    write_lock({package: write_wheel(wheels, package, **of) for package, of in packages.items()}, tag)


def test_local_version_in_a_folder_of_the_resolvers_is_not_taken(conf, wheels):
    lock_all(wheels)
    write_wheel(wheels, "torch==2.0.1+evil", requires="helper")
    write_wheel(wheels, "helper==1.0+evil")
    mark = json.loads((install(conf) / MARK).read_text())
    assert mark["packages"] == ["helper==1.0", "torch==2.0.1"]
    assert mark["origin"] == "as releases.lock says, checked"
    assert sorted(mark["digests"]) == mark["packages"]


@pytest.mark.parametrize("package", ["torch==2.0.1", "helper==1.0"])
def test_file_that_does_not_match_is_refused_in_a_sentence_and_leaves_nothing(conf, wheels, package, warned):
    lock_all(wheels)
    write_wheel(wheels, package, body="evil = True\n", requires="helper" if package.startswith("torch") else "")
    with pytest.raises(InstallationError) as refused:
        install(conf)
    sentence = str(refused.value)
    assert sentence.startswith(f"PyTorch 2.0.1 for Python {LANE} could not be installed: what the package index has")
    assert package in sentence
    assert "\n" not in sentence
    assert list(Path("env").glob("v*/")) == []


def test_chosen_index_is_checked_for_all_but_torch_and_a_local_version_is_told(conf, wheels, monkeypatch, warned):
    lock_all(wheels)
    (wheels / "torch-2.0.1-py3-none-any.whl").unlink()
    write_wheel(wheels, "torch==2.0.1+cpu", requires="helper")
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    mark = json.loads((install(conf) / MARK).read_text())
    assert mark["packages"] == ["helper==1.0", "torch==2.0.1+cpu"]
    assert mark["origin"] == "torch from the cpu index, not checked"
    environments.prune(Path("env"), lambda tag: True)
    write_wheel(wheels, "helper==1.0", body="evil = True\n")
    with pytest.raises(InstallationError, match=r"is not the file that releases\.lock names by its sha256"):
        install(conf)


def test_digests_are_of_what_was_installed_wherever_that_is(conf, wheels):
    lock_all(wheels)
    first = environments.digests(install(conf))
    assert environments.digests(Path("nowhere")) == {}
    environments.prune(Path("env"), lambda tag: True)
    assert environments.digests(install(conf)) == first
    environments.prune(Path("env"), lambda tag: True)
    lock_all(wheels, helper="evil = True\n")
    second = environments.digests(install(conf))
    assert second["torch==2.0.1"] == first["torch==2.0.1"]
    assert second["helper==1.0"] != first["helper==1.0"]


def test_prune_leaves_what_other_projects_use(conf, wheels, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "theirs" / "uv"))
    lock_all(wheels)
    # another project installs the same torch by uv as that is configured, so that it lies in that cache
    uv, python = [find_uv_bin(), "--quiet"], str(tmp_path / "other" / "bin" / "python")
    subprocess.run([*uv, "venv", "--python", sys.executable, str(tmp_path / "other")], check=True)
    subprocess.run([*uv, "pip", "install", "--python", python, "torch==2.0.1"], check=True)
    install(conf)
    theirs = listing(tmp_path / "theirs")
    assert any(path.endswith("torch.py") for path in theirs)
    assert environments.prune(Path("env"), lambda tag: True) == [NAME]
    assert listing(tmp_path / "theirs") == theirs


def test_cache_of_ours_shares_its_files_and_loses_what_no_environment_has(conf, wheels, monkeypatch):
    monkeypatch.setenv("UV_LINK_MODE", "symlink")  # by which what is in use would have no other name
    lock_all(wheels, "v2.1.0")
    other = install(conf, "v2.1.0")
    lock_all(wheels)
    folder = install(conf)
    (helper,) = folder.glob("lib/python*/site-packages/helper.py")
    (same,) = other.glob("lib/python*/site-packages/helper.py")
    assert helper.samefile(same)
    assert helper.stat().st_nlink == 3  # the two environments' and the cache's
    assert [path.stat().st_nlink for path in folder.glob("lib/python*/site-packages/torch.py")] == [2]
    assert environments.prune(Path("env"), lambda tag: tag == "v2.0.1") == [NAME]
    kept = {path.name for path in Path("env", CACHE, "archive-v0").rglob("*.py")}
    assert same.stat().st_nlink == 2
    assert kept == {"helper.py"}


@pytest.fixture
def shared(wheels, monkeypatch) -> Path:
    """The resolver's folder with all releases, which share a package, and with one more that a file may ask for."""
    for package in ("helper==1.0", "more==1", *(f"torch=={version}" for version in FEW)):
        write_wheel(wheels, package, f"name = {package!r}\n", "helper" if package.startswith("torch") else "")
    monkeypatch.setattr(environments, "_intact", set())
    return wheels


def at_work(conf: Config, tag: str, *needed: str) -> Path:
    """Installs as another process would, which has looked at no environment yet; returns the folder of packages."""
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


def test_an_edit_through_one_release_is_found_in_each_and_no_cache_hands_it_out(conf, shared, warned):
    one, other = at_work(conf, "v2.0.1"), at_work(conf, "v2.1.0")
    if not (one / "helper.py").samefile(other / "helper.py"):
        pytest.skip("this file system shares blocks, so no file has two names")
    edit(one / "helper.py")
    assert (other / "helper.py").read_text().startswith("evil")
    third = at_work(conf, "v2.0.0")  # which the edited cache would be linked into
    assert (third / "helper.py").read_text().startswith("name")
    for tag, folder in (("v2.1.0", other), ("v2.0.1", one)):
        warned.clear()
        assert at_work(conf, tag) == folder
        assert (folder / "helper.py").read_text().startswith("name")
        (sentence,) = warned
        assert sentence.startswith(f"{tag} in {folder.parents[2]} is not as its packages say: helper.py of helper")
        assert "installed again" in sentence
    warned.clear()
    assert [at_work(conf, f"v{release}") for release in FEW] == [third, one, other]
    assert warned == []


@pytest.mark.parametrize("change", ["removed", "record", "record gone"])
def test_what_is_missing_and_an_edited_record_are_damage_too(conf, shared, warned, change):
    folder = at_work(conf, "v2.0.1")
    (record,) = folder.glob("helper-*.dist-info/RECORD")
    if change == "removed":
        (folder / "helper.py").unlink()
    elif change == "record":
        record.write_text(record.read_text().splitlines()[-1] + "\n")
    else:
        record.unlink()
    at_work(conf, "v2.0.1")
    assert "is not as its packages say" in warned[0]
    assert (folder / "helper.py").read_text().startswith("name")


def test_a_wheel_whose_record_is_wrong_is_installed_and_then_held_to_what_it_brought(conf, shared, warned):
    """As torch 1.9.1's is of libtorch_cpu.so: it is a wheel all the same, of the sha256 that the lock has."""
    write_wheel(shared, "helper==1.0", "name = 1\n")
    path = shared / "helper-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, b"other = 1\n" if name == "helper.py" else content)
    folder = at_work(conf, "v2.0.1")
    assert (folder / "helper.py").read_text() == "other = 1\n"
    at_work(conf, "v2.0.1")
    assert warned == []
    linked = shared / "linked"
    linked.symlink_to(Path("env", f"v2.0.1-py{LANE}").resolve())
    assert intact.damage(linked) == {}  # wherever it is looked at from
    edit(folder / "torch.py")
    with (folder / "helper.py").open("a") as stream:
        stream.write("evil = 1\n")
    at_work(conf, "v2.0.1")
    assert "helper.py and 1 other file of helper, torch differ" in warned[0]
    assert (folder / "helper.py").read_text() == "other = 1\n"


def test_what_an_own_file_needs_besides_is_looked_at_too(conf, shared):
    at_work(conf, "v2.0.1", "more")
    (module,) = Path("env").glob(f"v2.0.1-py{LANE}/{added.FOLDER}/*/site-packages/more.py")
    edit(module)
    at_work(conf, "v2.0.1", "more")
    assert module.read_text().startswith("name")


@pytest.mark.parametrize(
    ("file", "text"),
    [("uv.toml", '[pip]\ntarget = "elsewhere"\n'), ("pyproject.toml", '[tool.uv.pip]\ntarget = "elsewhere"\n')],
)
def test_a_configuration_in_the_working_folder_sends_no_package_elsewhere(conf, shared, file, text):
    Path(file).write_text(text)
    assert (at_work(conf, "v2.0.1") / "torch.py").exists()
    assert not Path("elsewhere").exists()


SCRIPT = """\
#!{python}
import os, pathlib, sys, time
here = pathlib.Path({here!r})
words = sys.argv[1:]
while words[0].startswith("-"):
    words.pop(0)
def say(what):
    with open(here / "said", "a") as stream:
        stream.write(f"{{what}} {{os.getpid()}}\\n")
if words[0] == "venv":
    python = pathlib.Path(words[-1], "bin", "python")
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
elif words[:2] == ["pip", "install"]:
    folder = pathlib.Path(words[words.index("--python") + 1]).parents[1]
    say("begins")
    for _ in range(int(os.environ["FOR"])):
        time.sleep(0.05)
        with open(folder / "written", "a") as stream:
            stream.write(f"{{os.getpid()}}\\n")
    say("ends")
elif words[:2] == ["python", "find"]:
    print(sys.executable)
"""

PROGRAM = """\
import sys
from asv.config import Config
from asv.repo import get_repo
from torch_history.releases import environments, repository, uv
uv.find_uv_bin = lambda: sys.argv[1]
if sys.argv[3] == "deaf":
    uv.dies_with_parent = lambda: None
told = {"repo": "releases.toml", "dvcs": repository.ReleaseAxis.dvcs, "env_dir": "env", "project": "PyTorch"}
conf = Config.from_json(told)
environments.ReleaseEnvironment(conf, sys.argv[2], {}, {}).install_project(conf, get_repo(conf), "v2.0.1")
"""


@pytest.mark.parametrize(("ears", "steps"), [("hearing", 1000), ("deaf", 60)])
def test_uv_ends_with_a_killed_program_or_keeps_the_lock_and_the_next_start_builds_anew(conf, tmp_path, ears, steps):
    script = program(tmp_path / "uv", SCRIPT.format(python=sys.executable, here=str(tmp_path)))
    told, written = tmp_path / "said", Path("env", NAME, "written")

    def start(steps: int, ears: str = "hearing") -> subprocess.Popen[Any]:
        command = [sys.executable, "-c", PROGRAM, str(script), LANE, ears]
        return subprocess.Popen(command, env={**os.environ, "FOR": str(steps), "PYTHONPATH": str(ROOT)})

    first = start(steps, ears)
    until(written.exists)
    writer = int(told.read_text().split()[-1])
    first.send_signal(signal.SIGKILL)
    first.wait(10)
    if ears == "hearing":
        until(lambda: not lives(writer), 1)
    assert lives(writer) == (ears == "deaf")
    assert start(steps=2).wait(30) == 0
    assert told.read_text().split()[::2] == ["begins", *["ends"] * (ears == "deaf"), "begins", "ends"]
    assert len(written.read_text().split()) == 2
    assert str(writer) not in written.read_text().split()
    assert Path("env", NAME, MARK).exists()
