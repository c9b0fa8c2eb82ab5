"""How is a release made ready to be carried? Its wheel is fetched and checked, reduced to one architecture, given stubs for
what a machine may have in an older version, and packed: each step leaves a folder that appears when it is whole."""

import json
import os
import re
import shutil
import stat
import subprocess
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import requests
from msgspec.structs import asdict
from pypi_simple import DigestMismatchError, DistributionPackage, NoSuchProjectError, PyPISimple

from contract.carried import case_of
from torch_history.measuring.kit import parts
from torch_history.measuring.kit.carried import ABOUT, SITE, STUBS, About
from torch_history.measuring.kit.elf import Symbol, asked_of_others, libraries
from torch_history.releases.axis import Release
from torch_history.releases.pins import Lock
from torch_history.store.details import DETAILS, read_details
from torch_history.system.errors import UserError
from torch_history.system.files import write_atomically

from ..index import TIMEOUT, configured_index, value_in, without_secrets
from .reduce import reduce_wheel

NVIDIA = re.compile(r"(cuda[A-Z]|__cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|cupti|nvtx|nvrtc|nvJitLink|cuFile)")
"""What the symbols of NVIDIA's libraries begin with. Those of the driver are looked for by name when they are
called."""

STANDING_IN = {"nccl": ("nccl/lib", "libnccl.so.2"), "nvshmem": ("nvshmem/lib", "libnvshmem_host.so.3")}
"""What symbols begin with -> the folder beside other packages of NVIDIA's, and the library, for which a stub stands."""

CASE = re.compile(r"([^\s.]+)\S* '([^']*)' '([^']*)'")
"""A case as it is stored: question, variant and size."""

DOWNLOADED, ON_DISK, MINUTES = 0.6, 3.0, 14
"""Of a release built for CUDA 13: GB to download and on disk, and minutes of one processor, nearly all for packing."""

WHEEL = "wheel"
"""The folder with the unpacked wheel, among what is made on the way."""

Tell = Callable[[str], None]


def prepare(
    release: Release, python: str, architecture: int, work: Path, results: Path, lock: Lock, tell: Tell
) -> Path:
    """The folder in `work` with what is packed of a release for Python `python` and GPUs of `architecture` (90 for sm_90).
    Beside it the unpacked wheel lies in WHEEL. The recorder's cases are read from `results`. Raises UserError."""
    recorded = recorded_calls(results, release.tag)
    work.mkdir(parents=True, exist_ok=True)
    wheel, sha256 = _fetched(release, python, work, lock, tell)
    unpacked = _once(work / WHEEL, lambda to: _extract(wheel, to), "Unpacking the wheel", tell)

    def reduce(to: Path) -> None:
        code = reduce_wheel(unpacked, to / SITE, architecture, lambda name: tell(f"Reducing {name}"))
        asked = asked_of_others(libraries(to / SITE))
        make_stubs(asked, to / STUBS)
        cases = [(*CASE.findall(case)[0], sorted(seen)) for case, seen in recorded.items()]
        about = About(
            release=release.tag,
            python=python,
            cuda=value_in((unpacked / "torch" / "version.py").read_text(encoding="utf-8"), "cuda"),
            architecture=architecture,
            wheel=wheel.name,
            sha256=sha256,
            code=f"with device code for sm_{architecture} only ({code.units} units, {code.bytes:,} B)",
            asked=sorted({symbol.name for symbol in asked if NVIDIA.match(symbol.name)}),
            library_calls={case_of(*case): seen for *case, seen in cases if seen},
            known=sorted({question for question, *_ in cases}),
        )
        write_atomically(to / ABOUT, json.dumps(asdict(about), indent=1))

    return _once(work / "payload", reduce, "Reducing it", tell)


def cost(work: Path) -> str:
    """What carrying a release takes, in a sentence that is said before."""
    cores = os.cpu_count() or 1
    free = shutil.disk_usage(next(path for path in (work, *work.parents) if path.exists())).free
    return (
        f"This downloads {DOWNLOADED:.1f} GB, takes about {MINUTES / cores:.0f} minutes on {cores} processors and, while it "
        f"runs, {ON_DISK:.1f} GB in {work} ({free / 1e9:.0f} GB are free). An interrupted command continues."
    )


def _once(folder: Path, make: Callable[[Path], None], words: str, tell: Tell) -> Path:
    """`folder`, which `make` fills where it is not there yet."""
    if not folder.exists():
        tell(words)
        unfinished = folder.with_name(f".{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def _fetched(release: Release, python: str, work: Path, lock: Lock, tell: Tell) -> tuple[Path, str]:
    """The wheel of a release, and its sha256. Raises UserError where the index has none or is out of reach."""
    address = configured_index()
    try:
        with PyPISimple(address) as session:
            file = _chosen(session.get_project_page("torch", timeout=TIMEOUT).packages, release, python)
            sha256 = file.digests.get("sha256", "")
            if not sha256 or lock.sha256.get(file.filename, sha256) != sha256:
                raise UserError(f"The index has another {file.filename} than releases.lock, or tells no sha256 of it.")
            path = work / file.filename
            if not (path.exists() and parts.digest(path) == sha256):
                tell(f"Downloading {file.filename}")
                unfinished = path.with_name(f".{path.name}")
                session.download_package(file, unfinished, timeout=TIMEOUT)
                unfinished.rename(path)
    except DigestMismatchError as error:
        raise UserError(f"{file.filename} did not arrive whole: its sha256 is not the index's. Ask again.") from error
    except (requests.RequestException, NoSuchProjectError) as error:
        raise UserError(
            f"The package index at {without_secrets(address)} does not give the wheel of PyTorch {release.version} "
            f"({type(error).__name__}). Check the network or the index settings of uv; the same command continues."
        ) from error
    return path, sha256


def _chosen(packages: Iterable[DistributionPackage], release: Release, python: str) -> DistributionPackage:
    """The release's own wheel for that CPython, by its name. Raises UserError where the index has none."""
    tag = f"cp{python.replace('.', '')}"
    name = re.compile(rf"torch-{re.escape(release.version)}-{tag}-{tag}-\w*linux\w*_x86_64\.whl")
    for file in packages:
        if name.fullmatch(file.filename):
            return file
    raise UserError(
        f"PyTorch {release.version} has no wheel for Python {python} on Linux. It has wheels for Python "
        f"{', '.join(release.pythons)}: choose one with --for-python."
    )


def _extract(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = Path(archive.extract(member, target))
            if path.is_file():
                path.chmod(stat.S_IMODE(member.external_attr >> 16) | stat.S_IRUSR | stat.S_IWUSR)


def recorded_calls(results: Path, tag: str) -> dict[str, set[str]]:
    """Case, as it is stored -> the calls of NVIDIA's libraries that the recorder saw on any card. Raises UserError where
    it counted nothing."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(results.glob(f"*/{tag}-*{DETAILS}")):
        for case, seen in read_details(path).items():
            found[case] |= {*(seen.get("library_calls") or ())}
    if not found:
        raise UserError(
            f"Which cases of {tag} call a library is not known: count them with `torch-history run --device recorder "
            f"{tag[1:]}`."
        )
    return found


def make_stubs(asked: Iterable[Symbol], folder: Path) -> None:
    """Compiles in `folder` a library for each of STANDING_IN that is asked for. Raises UserError where that fails."""
    for prefix, (place, name) in STANDING_IN.items():
        symbols = sorted(symbol for symbol in asked if symbol.name.startswith(prefix))
        if symbols:
            (folder / place).mkdir(parents=True)
            _compile(symbols, folder / place / name)
    folder.mkdir(parents=True, exist_ok=True)


def _compile(symbols: list[Symbol], library: Path) -> None:
    code = ["#include <stdio.h>", "#include <stdlib.h>"]
    for symbol in symbols:
        said = f"torch-history: {symbol.name} was called, and a carried release has a stub of {library.name} only"
        function = f'void {symbol.name}(void) {{ fputs("{said}\\n", stderr); abort(); }}'
        code.append(f"char {symbol.name}[4096];" if symbol.is_data else function)
    source, versions = library.with_suffix(".c"), library.with_suffix(".map")
    source.write_text("\n".join(code) + "\n", encoding="utf-8")
    flags = ["-shared", "-fPIC", "-O1", "-w", "-s", f"-Wl,-soname,{library.name}"]
    command = ["gcc", *flags, "-o", str(library), str(source)]
    if named := sorted({symbol.version for symbol in symbols if symbol.version}):
        groups = {name: [symbol.name for symbol in symbols if symbol.version == name] for name in named}
        text = "".join(f"{name} {{ global: {'; '.join(each)}; }};\n" for name, each in groups.items())
        versions.write_text(text, encoding="utf-8")
        command.append(f"-Wl,--version-script,{versions}")
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise UserError("A stub cannot be compiled, because there is no gcc here. Install it.") from error
    except subprocess.CalledProcessError as error:
        raise UserError(f"The stub of {library.name} cannot be compiled: {error.stderr.strip()[-600:]}") from error
    source.unlink()
    versions.unlink(missing_ok=True)
