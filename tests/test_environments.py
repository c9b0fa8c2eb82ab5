"""Does every release get an environment of its own, whole or not at all? uv is played by `FakeUv`."""

import hashlib
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from asv.config import Config
from asv.environment import ExistingEnvironment
from asv.repo import get_repo
from packaging.version import Version

from contract import surroundings
from contract.request import Request
from recorder.build import Built, Wheel
from tools import sync
from torch_history.explaining import launching
from torch_history.explaining.launching import Side
from torch_history.measuring.subjects import InstalledEnvironment, installed_version
from torch_history.releases import environments, pins
from torch_history.releases.axis import Axis
from torch_history.releases.environments import CACHE, LISTED, MARK, InstallationError, ReleaseEnvironment
from torch_history.system.errors import UserError

from .processes import ROOT, listing, program

LANE = "{}.{}".format(*sys.version_info[:2])
"""The Python that runs these tests, so that one of that version is always found."""

FEW = ("2.0.0", "2.0.1", "2.1.0")


def wheel_of(package: str) -> str:
    return "{}-{}-py3-none-any.whl".format(*package.replace("-", "_").split("=="))


def digest_of(package: str) -> str:
    return hashlib.sha256(package.encode()).hexdigest()


def write_lock(digests: dict[str, str], tag: str = "v2.0.1") -> None:
    """A `releases.lock` in this folder with one entry, and the digest of each of its packages."""
    files = "".join(f'"{wheel_of(package)}" = "{digest}"\n' for package, digest in digests.items())
    Path("releases.lock").write_text(f'"{tag} py{LANE}" = {json.dumps([*digests])}\n[sha256]\n{files}')


class FakeUv:
    """Makes what uv would make. `calls` holds what it was asked; a step named in `failing` fails, halfway through."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.failing: dict[str, BaseException] = {}
        self.frozen = "torch==2.0.1\nnumpy==1.26.4\nnvidia-nccl-cu12==2.14.3\n"
        self.resolved = ["torch==2.0.1", "numpy==1.26.4"]
        self.constraints = ""
        self.began = threading.Event()
        self.seconds = 0.0

    def __call__(self, arguments: list[str], stdin: str | None = None, holding: Sequence[int] = ()) -> str:
        self.calls.append(arguments)
        step = " ".join(itertools.takewhile(str.isalpha, arguments[:2]))
        if step == "venv":
            python = Path(arguments[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.symlink_to(sys.executable)
        if step == "pip install":
            beside = Path(arguments[arguments.index("--python") + 1]).parents[1] / "lib"
            folder = Path(arguments[arguments.index("--target") + 1]) if "--target" in arguments else beside
            folder.mkdir(exist_ok=True)
            (folder / "torch.py").write_text("half of it")
            self.began.set()
            time.sleep(self.seconds)
        if "--constraint" in arguments:
            self.constraints = Path(arguments[arguments.index("--constraint") + 1]).read_text()
        if step in self.failing:
            raise self.failing[step]
        answers = {"pip freeze": self.frozen, "pip compile": self.pylock(), "python find": sys.executable}
        return next((answer for key, answer in answers.items() if step.startswith(key)), "")

    def pylock(self) -> str:
        """`resolved` as uv says it with --format pylock.toml, a wheel for each."""
        found = []
        for package in self.resolved:
            name, _, version = package.partition("==")
            file = f'url = "https://index.example/{wheel_of(package)}", hashes = {{ sha256 = "{digest_of(package)}" }}'
            found.append(f'[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{{ {file} }}]\n')
        return 'lock-version = "1.0"\n' + "".join(found)

    def asked(self, *step: str) -> list[list[str]]:
        return [call for call in self.calls if call[: len(step)] == list(step)]


@pytest.fixture
def uv(monkeypatch) -> FakeUv:
    fake = FakeUv()
    monkeypatch.setattr(environments, "run_uv", fake)
    monkeypatch.setattr(sync, "run_uv", fake)
    monkeypatch.setattr(environments, "refusals", {})
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    return fake


@pytest.fixture
def conf(asv_conf) -> Config:
    return asv_conf(*FEW, pythons=("3.8", LANE))


@pytest.fixture
def lane(conf, uv, warned) -> ReleaseEnvironment:
    environment = ReleaseEnvironment(conf, LANE, {}, {})
    uv.calls.clear()
    return environment


def install(environment: ReleaseEnvironment, conf: Config, tag: str) -> Path:
    environment.install_project(conf, get_repo(conf), tag)
    return Path("env", f"{tag}-py{LANE}").resolve()


def test_release_is_built_from_exactly_what_was_asked(lane, conf, uv):
    folder = install(lane, conf, "v2.0.1")
    asked = ["torch==2.0.1", "asv_runner==0.3.2", "numpy==1.26.4", "setuptools==77.0.3"]
    assert uv.asked("pip", "install")[0][-4:] == asked
    assert [call[0] for call in uv.calls if call[0] == "venv"] == ["venv"]
    mark = json.loads((folder / MARK).read_text())
    assert mark == {
        **{"requirements": asked, "origin": "not checked: releases.lock has no entry for it"},
        **{"packages": ["torch==2.0.1", "numpy==1.26.4", "nvidia-nccl-cu12==2.14.3"], "digests": {}},
    }
    assert environments.packages_of(folder) == mark["packages"]


LOCKED = ("torch==2.0.1", "asv-runner==0.3.2", "numpy==1.26.4", "setuptools==77.0.3", "sympy==1.13.1")


@pytest.mark.parametrize(
    ("packages", "said"),
    [
        (("torch==2.0.0", *LOCKED[1:]), "pins torch to 2.0.0 for v2.0.1 .*torch==2.0.1 is needed"),
        (LOCKED[:2], "pins numpy to none"),
    ],
)
def test_lock_that_does_not_fit_is_refused_before_anything_is_removed(lane, conf, uv, packages, said):
    folder = Path("env", f"v2.0.1-py{LANE}")
    folder.mkdir(parents=True)
    write_lock({package: digest_of(package) for package in packages})
    assert re.search(said, refusal(lane, conf))
    assert folder.exists()
    assert uv.calls == []


def test_lock_without_a_digest_is_refused(lane, conf):
    write_lock({package: digest_of(package) for package in LOCKED})
    path = Path("releases.lock")
    path.write_text(path.read_text().replace(wheel_of("sympy==1.13.1"), "sympy-1.13.1-cp38-cp38-linux_x86_64.whl"))
    assert f"has no sha256 of sympy==1.13.1, which v2.0.1 needs on Python {LANE}" in refusal(lane, conf)


def test_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    environments.write_atomically(path, "old")
    monkeypatch.setattr(environments.os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full") as refused:
        environments.write_atomically(path, "new, and longer")
    assert str(refused.value.filename) == str(path), "the message would name no file"
    assert listing(tmp_path) == {"file": b"old"}


def test_environment_is_rebuilt_when_its_requirements_change(lane, conf, uv, monkeypatch):
    folder = install(lane, conf, "v2.0.1")
    (folder / "of the old one").touch()
    monkeypatch.setattr(environments, "HARNESS", ("asv_runner==9.9.9",))
    install(lane, conf, "v2.0.1")
    assert len(uv.asked("venv")) == 2
    assert uv.asked("pip", "install")[1][-2:] == ["torch==2.0.1", "asv_runner==9.9.9"]
    assert not (folder / "of the old one").exists()


@pytest.mark.parametrize("mark", [None, "", '{"requirements": ["torch==2.0.1"'])
def test_folder_without_a_whole_mark_is_removed_and_built_anew(lane, conf, uv, mark):
    folder = Path("env", f"v2.0.1-py{LANE}")
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    (folder / "half a package").touch()
    if mark is None:
        with pytest.raises(InstallationError, match="holds what torch-history did not make"):
            install(lane, conf, "v2.0.1")
        assert not environments.prune(Path("env"), lambda tag: True)
    (folder / (MARK if mark else LISTED)).write_text(mark or "")
    install(lane, conf, "v2.0.1")
    assert len(uv.asked("venv")) == 1
    assert not (folder / "half a package").exists()


@pytest.mark.parametrize("step", ["venv", "pip install", "pip freeze"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=repr)
def test_build_that_is_killed_halfway_leaves_nothing(lane, conf, uv, step, error):
    uv.failing[step] = error
    with pytest.raises(type(error)):
        install(lane, conf, "v2.0.1")
    assert list(Path("env").glob("v*/")) == []
    assert lane.installed_commit_hash is None
    uv.failing.clear()
    folder = install(lane, conf, "v2.0.1")
    assert (folder / MARK).exists()


def refusal(lane: ReleaseEnvironment, conf: Config, tag: str = "v2.0.1") -> str:
    with pytest.raises(InstallationError) as refused:
        install(lane, conf, tag)
    return str(refused.value)


def test_environment_that_is_being_built_is_removed_only_when_it_is_finished(lane, conf, uv):
    uv.seconds = 0.3
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(install, lane, conf, "v2.0.1")
        assert uv.began.wait(20)
        removed = environments.prune(Path("env"), lambda tag: True)
        folder = building.result(20)
    assert removed == [folder.name]
    assert not folder.exists()


@pytest.fixture
def three(conf, uv) -> list[str]:
    """Three folders in two lanes, and beside them what is no environment."""
    lane = ReleaseEnvironment(conf, LANE, {}, {})
    names = [install(lane, conf, tag).name for tag in ("v2.0.1", "v2.1.0")]
    other_lane = Path("env", "v2.0.1-py3.8")
    other_lane.mkdir()
    (other_lane / LISTED).touch()
    Path("env", "session.json").write_text("{}")
    uv.calls.clear()
    return [*names, other_lane.name]


def test_prune_leaves_what_a_link_leads_to(three, tmp_path):
    """Whoever made the link shares an environment that lies elsewhere, and its mark is one of what lies there."""
    elsewhere = tmp_path / "elsewhere"
    Path("env", f"v2.0.1-py{LANE}").rename(elsewhere)
    Path("env", f"v2.0.1-py{LANE}").symlink_to(elsewhere)
    assert environments.prune(Path("env"), lambda tag: tag == "v2.0.1", LANE) == []
    assert (elsewhere / MARK).exists()


def test_prune_leaves_the_locks_for_those_who_wait_at_them(three):
    # A lock that is removed while another waits at it would let a third lock a new file of the same name.
    locks = {path: path.stat().st_ino for path in Path("env", ".locks").iterdir()}
    environments.prune(Path("env"), lambda tag: True)
    assert len(locks) == 2
    assert {path: path.stat().st_ino for path in locks} == locks


def test_prune_clears_the_cache_of_what_an_installation_left_that_a_full_disk_ended(conf, uv):
    Path("env", CACHE).mkdir(parents=True)
    assert environments.prune(Path("env"), lambda tag: True) == []
    assert uv.calls[-1][:2] == ["cache", "prune"]


def test_environment_whose_removal_was_interrupted_is_not_used(lane, conf, uv, monkeypatch):
    # Removing gigabytes takes a while; Ctrl-C then leaves a part of the folder behind.
    folder = install(lane, conf, "v2.0.1")
    rmtree = environments.shutil.rmtree

    def interrupted(path: Path, **_: object) -> None:
        rmtree(path, ignore_errors=True)  # one of the folders in it
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environments.shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            environments.prune(Path("env"), lambda tag: True)
    install(lane, conf, "v2.0.1")
    assert (folder / "lib" / "torch.py").exists()


def test_two_prunes_at_once_remove_a_folder_once(three):
    folder = Path("env", f"v2.0.1-py{LANE}")
    with ThreadPoolExecutor(1) as pool, environments._locked(folder):
        other = pool.submit(environments.prune, Path("env"), lambda tag: True)
        time.sleep(0.2)  # the other has listed the folders and waits at this one's lock
        environments.shutil.rmtree(folder)
    assert f"v2.1.0-py{LANE}" in other.result(20)


@pytest.fixture
def pin(conf, uv, tmp_path) -> Callable[..., bool]:
    """Locks a release into the file `pins`."""

    def add(version: str, lane: str = LANE) -> bool:
        release = Axis.load(conf.repo).find(version)
        return sync.lock(release, lane, environments.requirements_of(release), tmp_path / "pins")

    return add


def test_lock_pins_a_release_once_never_changes_it_and_adds_behind_what_is_there(pin, uv, tmp_path):
    path = tmp_path / "pins"
    assert pin("2.0.1")
    before = path.read_text()
    uv.resolved = ["torch==2.0.1", "numpy==9.9.9"]
    assert not pin("2.0.1")
    assert path.read_text() == before
    held = pins.Lock.read(path)
    assert held.digests("numpy==1.26.4", LANE) == [digest_of("numpy==1.26.4")]
    uv.resolved = ["torch==2.1.0", "sympy==1.12"]
    assert pin("2.1.0")
    assert path.read_text().startswith(before.partition(sync.HASHES_HEADER)[0])
    assert pins.Lock.read(path).entries == {
        f"v2.0.1 py{LANE}": ["torch==2.0.1", "numpy==1.26.4"],
        f"v2.1.0 py{LANE}": ["torch==2.1.0", "sympy==1.12"],
    }


@pytest.mark.parametrize(
    ("resolved", "said"),
    [
        (["torch==2.1.0", "numpy==1.26.4+evil"], r"uv chose numpy 1\.26\.4\+evil, a private build"),
        (["torch==2.1.0", "sympy==1.12"], r"sympy-1\.12-py3-none-any\.whl has the sha256 0{64}, and the package index"),
    ],
)
def test_lock_takes_no_other_file_for_a_published_one(pin, uv, tmp_path, resolved, said):
    path = tmp_path / "pins"
    path.write_text(f'[sha256]\n"sympy-1.12-py3-none-any.whl" = "{"0" * 64}"\n')
    before = path.read_bytes()
    uv.resolved = resolved
    with pytest.raises(UserError, match=said):
        pin("2.1.0")
    assert path.read_bytes() == before


SHIPPED = pins.Lock.read(ROOT / "releases.lock")


def test_shipped_lock_pins_every_release_in_every_lane():
    releases = tomllib.loads((ROOT / "releases.toml").read_text())["release"]
    wanted = {f"v{r['version']} py{lane}" for r in releases for lane in ("3.9", "3.11") if lane in r["pythons"]}
    assert len(wanted) == 60
    assert wanted <= set(SHIPPED.entries)
    others = {f"v{r['version']} py3.12" for r in releases if "3.12" in r["pythons"]}
    assert {"v2.4.1 py3.12", "v2.15.0 py3.12"} <= set(SHIPPED.entries) - wanted <= others


PINNED = "dfff79d330b44cd05a0ae646ccd23b753dba0a38773373ddfc067f086c0b1e4a"
"""The sha256 of the entries up to 2.15.0 of the first two lanes, as they were before they had digests."""


def test_shipped_lock_has_a_digest_of_every_package_for_its_lane_and_one_harness_for_all():
    for name, packages in SHIPPED.entries.items():
        for package in packages:
            assert SHIPPED.digests(package, name.rpartition("py")[2]), (name, package)
    for package in ("numpy", "asv-runner", "setuptools"):
        of_each = ([pin for pin in packages if pin.startswith(f"{package}==")] for packages in SHIPPED.entries.values())
        assert len({pin for (pin,) in of_each}) == 1


def test_versions_that_the_shipped_lock_pins_have_not_changed():
    of_lanes = {name: packages for name, packages in SHIPPED.entries.items() if not name.endswith("py3.12")}
    first = {name: packages for name, packages in of_lanes.items() if Version(name.split()[0]) <= Version("2.15.0")}
    assert hashlib.sha256(json.dumps(first).encode()).hexdigest() == PINNED


ALTERING = (
    *("PYTHONDONTWRITEBYTECODE", "PYTORCH_ALLOC_CONF", "LD_PRELOAD", "OMP_PROC_BIND", "A_NAME_OF_TOMORROW", "CFLAGS"),
    *("PYTORCH_JIT", "PYTHONHASHSEED", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "LD_LIBRARY_PATH", "SECRET_TOKEN"),
)
OF_OURS = {"CUDA_DEVICE_ORDER", "PYTHONNOUSERSITE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}
"""Variables that could alter a number and that this program may set."""


def test_every_door_to_a_measurement_has_the_surroundings_of_a_release(lane, conf, tmp_path, monkeypatch):
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "numpy.py").touch()
    (packages / "torch.py").write_text("import atexit; __version__ = '2.0.1'; atexit.register(print, 'Ended.')\n")
    python = program(tmp_path / "python", f'PYTHONPATH={packages}:$PYTHONPATH exec {sys.executable} "$@"')
    installed = InstalledEnvironment(conf, str(python))
    assert installed.torch == "2.0.1"
    site = f"import sys; sys.path.insert(0, '{packages}'); sys.argv[0] = '-c'; exec(sys.argv[2])"
    program(tmp_path / "venv" / "bin" / "python", f'shift; exec {sys.executable} -c "{site}" "$@"')
    assert installed_version({"VIRTUAL_ENV": str(tmp_path / "venv")}) == "2.0.1"
    install(lane, conf, "v2.0.1")
    existing = ExistingEnvironment(Config(), sys.executable, {}, {})
    environments.setup()
    built = Built(tmp_path, Wheel(tmp_path, "2.9.0", (12, 8)), [], [])
    for name in ALTERING:
        monkeypatch.setenv(name, "0")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setenv(surroundings.KEEP, "CUBLAS_*")
    installed.request = lane.request = Request(device="cpu", threads=2)
    show = ["-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    ran: list[dict[str, str]] = [json.loads(environment.run(show)) for environment in (installed, lane, existing)]
    assert [found["TORCH_HISTORY_THREADS"] for found in ran[:2]] == ["2", "2"]
    explained = launching.surroundings(Side("v1.0.0", tmp_path / "bin" / "python"), {})
    recorded = {name: value for name, value in built.surroundings().items() if name not in built.variables()}
    for found in (*ran, explained, recorded):
        assert not found.keys() & {*ALTERING}
        altering = {name for name in found if surroundings.ALTERING.match(name) and name not in surroundings.INHERITED}
        assert altering <= {*OF_OURS, "CUBLAS_WORKSPACE_CONFIG"}
    for found in (*ran, explained):
        assert found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert found["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


FAULTS = """
import resource
import measure

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no such thresholds")
def test_memory_that_a_measuring_process_frees_costs_no_page_fault_again(root):
    """However an import left the thresholds, which are played here by glibc's variables: 256 pages each time without."""
    left = {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
    said = subprocess.run([sys.executable, "-c", FAULTS], cwd=root, env={**os.environ, **left}, stdout=subprocess.PIPE)
    assert int(said.stdout) < 20


KEPT = """
import ctypes, os
from pathlib import Path
import _ctypes
from measure import constants

path = Path(_ctypes.__file__)
with path.open("rb") as file:
    header = file.read(4096)
places = constants.keep(path.name)
assert places
assert constants.keep(path.name) == constants.keep("no such library.so") == []
assert constants.read(places) == sum(size for _, size in places) // 4096
assert ctypes.string_at(min(places)[0], 4096) == header
child = os.fork()
if child == 0:
    with open("/proc/self/pagemap", "rb", buffering=0) as pages:
        for at, size in places:
            for page in range(at // 4096, (at + size) // 4096):
                pages.seek(8 * page)
                if not pages.read(8)[7] & 0x80:
                    os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert ctypes.CDLL(None).abs(-3) == 3
"""


def test_constants_of_a_library_are_in_the_memory_of_every_process_forked(root):
    """What is read there is the file's, and the library, which is the one that does it, works on."""
    subprocess.run([sys.executable, "-c", KEPT], cwd=root, check=True)


def test_compilers_caches_are_the_releases_own(lane, conf):
    show = ["-c", "import os; print(os.environ['TORCHINDUCTOR_CACHE_DIR'], os.environ['TRITON_CACHE_DIR'])"]
    for tag in ("v2.0.1", "v2.1.0"):
        folder = install(lane, conf, tag)
        assert all(Path(cache).is_relative_to(folder) for cache in lane.run(show).split())
