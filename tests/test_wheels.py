"""Is what is told of a wheel what lies in its environment? One is made here; and the committed facts."""

import datetime
import re
from pathlib import Path

import pytest

from tools import wheel_files
from torch_history.releases import wheels
from torch_history.releases.axis import Axis, Release
from torch_history.releases.environments import MARK
from torch_history.system.errors import UserError

from .processes import ROOT
from .test_sync import index  # noqa: F401  a fixture

VERSION = "__version__ = '9.0.0'\ncuda: Optional[str] = '12.6'\ngit_version = 'abc123'\nhip: Optional[str] = None\n"
CMAKE = 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")\n'
PYTHON = b"\0junk sm_50 \0" + b"sm_70 sm_80 sm_90a compute_90" + b"\0" * 2**20
CUDA = bytes(3 * 2**20)
LIBRARY = b"\0GLIBC_2.3.4\0GLIBC_2.17\0"


@pytest.fixture
def env(tmp_path) -> Path:
    """A folder with an environment of torch 9.0.0 and a package that it needs."""
    packages = tmp_path / "env" / "v9.0.0-py3.11" / "lib" / "python3.11" / "site-packages"
    torch = {
        **{"torch/version.py": VERSION.encode(), "torch/share/cmake/Torch/TorchConfig.cmake": CMAKE.encode()},
        **{"torch/__init__.py": b"", "torch/lib/libtorch_python.so": PYTHON},
        **{"torch/lib/libtorch_cuda-12345678.so": CUDA, "torch/lib/libgomp.so.1": LIBRARY},
    }
    install(packages, "torch-9.0.0", torch)
    install(packages, "nvidia_nccl_cu12-2.1", {"nvidia/a": b"four"})
    (packages / "torch" / "version.pyc").write_bytes(b"bytecode that Python adds")
    (packages.parents[2] / MARK).write_text("{}")
    return tmp_path / "env"


def install(packages: Path, name: str, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_bytes(content)
    (packages / f"{name}.dist-info").mkdir()
    (packages / f"{name}.dist-info" / "RECORD").write_text("".join(f"{path},sha256=x,1\n" for path in files))


@pytest.fixture
def address(tmp_path, index) -> str:  # noqa: F811
    """That of an index with both packages, whose files a releases.lock in `tmp_path` names."""
    torch = "torch-9.0.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    digests = {torch: "0" * 64, "nvidia_nccl_cu12-2.1-py3-none-manylinux2014_x86_64.whl": "1" * 64}
    hashes = "".join(f'"{name}" = "{digest}"\n' for name, digest in digests.items())
    entry = '"v9.0.0 py3.11" = ["nvidia-nccl-cu12==2.1", "torch==9.0.0"]'
    (tmp_path / "releases.lock").write_text(f"{entry}\n\n[sha256]\n{hashes}")
    index.files |= {name: (bytes(1000), {"hashes": {"sha256": digest}}) for name, digest in digests.items()}
    return str(index.address)


AXIS = Axis([Release("9.0.0", datetime.date(2030, 1, 1), "index", ("3.11",), "12.6")])


def test_facts_are_what_lies_in_the_environment(address, tmp_path, env):
    said: list[str] = []
    found = wheel_files.update(tmp_path / wheels.FILE, AXIS, env, address, said.append)["v9.0.0"]
    assert (found.cuda, found.commit, found.cxx11_abi, found.glibc) == ("12.6", "abc123", False, "2.17")
    assert found.architectures == ("sm_70", "sm_80", "sm_90a", "compute_90")
    assert found.libraries == {"libtorch_cuda.so": len(CUDA), "libtorch_python.so": len(PYTHON)}
    torch, nccl = found.packages
    assert (torch.name, torch.version, torch.download) == ("torch", "9.0.0", 1000)
    assert (nccl.name, nccl.version) == ("nvidia-nccl-cu12", "2.1")
    assert torch.installed == len(VERSION) + len(CMAKE) + len(PYTHON) + len(CUDA) + len(LIBRARY)
    assert found.installed == torch.installed + 4
    assert said == ["v9.0.0 was read."]


def test_environment_that_lacks_a_package_of_the_lock_is_refused(address, tmp_path, env):
    """As one has it whose torch was taken from another index."""
    next(env.glob("**/nvidia_nccl_cu12-2.1.dist-info/RECORD")).unlink()
    with pytest.raises(UserError, match=r"lacks nvidia-nccl-cu12, which releases\.lock names"):
        wheel_files.update(tmp_path / wheels.FILE, AXIS, env, address, print)


def test_an_index_with_other_files_or_out_of_reach_is_refused(address, tmp_path, env):
    path, lock = tmp_path / wheels.FILE, tmp_path / "releases.lock"
    with pytest.raises(UserError, match=r"What v9\.0\.0 downloads cannot be read \(ConnectionError\)"):
        wheel_files.update(path, AXIS, env, "http://127.0.0.1:9/", print)
    lock.write_text(re.sub(r'"[0-9a-f]{64}"', f'"{"5" * 64}"', lock.read_text()))
    with pytest.raises(UserError, match=r"no file of .* whose sha256 is in releases.lock"):
        wheel_files.update(path, AXIS, env, address, print)
    assert not path.exists()


@pytest.mark.parametrize("text", ["[]", '{"v1.0.0": {"cuda": 5}}', "{"])
def test_damaged_file_is_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / wheels.FILE
    path.write_text(text)
    with pytest.raises(UserError, match="is damaged"):
        wheels.load(path)


@pytest.mark.committed
def test_committed_facts_agree_with_the_axis_and_the_lock():
    axis, known = Axis.load(ROOT / "releases.toml"), wheels.load(ROOT / wheels.FILE)
    for release in axis.releases:
        of = known[release.tag]
        assert of.cuda == release.cuda, release.tag
        assert of.packages[0].version == release.version
        assert of.commit
        assert of.architectures
