"""Builds the recorder for an environment that holds a torch release, with the machine's gcc. Entries that the wheel's
libraries ask for and the recorder lacks become stubs that are errors and name themselves."""

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from contract.surroundings import inherited
from torch_history.system.errors import UserError

from .cards import Card, cards, source

HERE = Path(__file__).resolve().parent

ENTRY = re.compile(
    r"(?!__cudaRegisterLinkedBinary)(__)?(cuda[A-Z]|cu[A-Z]|cublas|cudnn|cufft|curand|cusolver|cusparse|cupti|cudss|nccl|nvshmem|nvml|nvtx)\w+"
)
"""Names of entries of NVIDIA's libraries, of which only NVRTC is real: it compiles without a GPU. What registers linked
binaries has the prefix of an entry and is the compiler's code, part of the library that calls it."""

LIBRARY = re.compile(
    r"lib(cuda|cudart|cublas|cublasLt|cudnn\w*|cufft\w*|cufile\w*|curand|cusolver\w*|cusparse|cusparseLt|cupti|cudss\w*|nccl|"
    r"nvshmem\w*|nvToolsExt|nvJitLink|nvperf\w*|nvidia-ml)(-[0-9a-f]+)?\.so[.\d]*"
)
"""Files of those libraries, as a wheel asks for them; some wheels bring them along under a name with a digest in it."""

NVRTC = re.compile(r"libnvrtc")

BY_NAME = re.compile(rb"(?<![^\0])(cu|nvml)[A-Z]\w+(?=\0)")
"""Texts by which a library may ask the loader for an entry of the driver while it runs, and import none."""

STATIC_ENTRY = re.compile(r"((__)?cuda|cudnn)[A-Z]\w+")
"""Entries of which libraries of torch 1 hold a static copy, whose calls go past every preloaded entry: the runtime's in
libtorch_python, in 1.12 and 1.13 in libc10_cuda as well, and up to 1.12 cuDNN's in libtorch_cuda."""

JUMP_BYTES = 12
"""Bytes of the jump in redirect.c, which every overwritten entry must have room for."""

UNRECORDED = re.compile(r"cupti\w+")
"""Entries that fail without a word in the log: the profiler's, which is told that there is nothing to profile."""

TEXT = re.compile(r"\w+Get(Error|Status|LastError)(String|Name)?")
"""Entries that return a text about an error, which is printed: theirs must be one."""

DROPPED = ("CUDA_VISIBLE_DEVICES",)
"""Variables that a process on the recorder does not inherit, and one on a GPU does: which card is there is pretended."""


class Wheel(NamedTuple):
    """A torch release in an environment: where its packages are, its version, the CUDA it was built with, and the version of
    cuDNN that it requires, empty where it holds cuDNN itself."""

    packages: Path
    version: str
    cuda: tuple[int, int]
    cudnn: tuple[int, ...] = ()

    @property
    def libraries(self) -> list[Path]:
        """The files whose entries must be there when torch is imported."""
        torch = self.packages / "torch"
        return sorted(path for path in [*torch.glob("lib/*.so*"), *torch.glob("_C*.so")] if path.is_file())


class Built(NamedTuple):
    """A recorder in its folder, and which entries of the wheel have a body and which are stubs."""

    folder: Path
    wheel: Wheel
    bodies: list[str]
    stubs: list[str]

    def surroundings(self, card: str = "") -> dict[str, str]:
        """The environment variables of a process that runs on this recorder, on `card` or else the default."""
        environment = {name: value for name, value in inherited(os.environ).items() if name not in DROPPED}
        return {**environment, **self.variables(card)}

    def variables(self, card: str = "") -> dict[str, str]:
        """Of `surroundings` those that are set."""
        paths = [str(self.folder / "lib"), *(str(path) for path in _nvrtc_folders(self.wheel))]
        return {
            "LD_PRELOAD": str(self.folder / "librecorder.so"),
            "LD_LIBRARY_PATH": ":".join(paths),
            "TRITON_LIBCUDA_PATH": str(self.folder / "lib"),
            # A fuser that fails says so instead of running unfused.
            "PYTORCH_NVFUSER_DISABLE": "fallback",
            "PYTORCH_NVFUSER_DISABLE_FALLBACK": "1",
            "PYTORCH_TENSOREXPR_FALLBACK": "0",
            **({"RECORDER_CARD": card} if card else {}),
        }


def find_wheel(environment: Path) -> Wheel:
    """The torch release in `environment`. Raises UserError where there is none, or it was built without CUDA."""
    text = min(environment.glob("lib/python*/site-packages/torch/version.py"), default=None)
    if text is None:
        raise UserError(f"{environment} contains no torch: install a release into it first.")
    folder, written = text.parents[1], text.read_text(encoding="utf-8")
    version = re.search(r"^__version__ = '([^']+)'", written, re.MULTILINE)
    cuda = re.search(r"^cuda.*= '(\d+)\.(\d+)", written, re.MULTILINE)
    name = version[1] if version else "?"
    if cuda is None:
        raise UserError(
            f"torch {name} in {environment} was built without CUDA, so there is nothing to count: install the package "
            "index's default wheel."
        )
    wheel = Wheel(folder, name, (int(cuda[1]), int(cuda[2])), _cudnn(folder))
    if not _nvrtc_folders(wheel):
        raise UserError(
            f"torch {name} needs NVRTC to compile fused kernels, and {environment} contains none: install nvidia-cuda-nvrtc "
            f"for CUDA {cuda[1]}.{cuda[2]}."
        )
    return wheel


def _cudnn(packages: Path) -> tuple[int, ...]:
    """The version of cuDNN that is required, as (9, 1, 0)."""
    for path in packages.glob("torch-*.dist-info/METADATA"):
        text = path.read_text(encoding="utf-8", errors="replace")
        required = re.search(r"^Requires-Dist: nvidia-cudnn\S* ?\(?==(\d+)\.(\d+)\.(\d+)", text, re.MULTILINE)
        if required:
            return tuple(int(part) for part in required.groups())
    return ()


def cudnn_source(version: tuple[int, ...]) -> str:
    """How cuDNN tells its version, as C: a release decides by the number, 8500 for 8.5.0 and 90100 for 9.1.0."""
    major, minor, patch = version
    number = (10_000 if major >= 9 else 1_000) * major + 100 * minor + patch
    parts = f"*into = (int[]){{{major}, {minor}, {patch}}}[which]; return 0;"
    return f"""size_t cudnnGetVersion(void) {{ return {number}; }}
int cudnnGetProperty(int which, int *into) {{ {parts} }}
"""


def _nvrtc_folders(wheel: Wheel) -> list[Path]:
    """Where NVRTC and what it loads are: a package of its own, or the wheel itself up to 1.12."""
    return sorted({path.parent for path in wheel.packages.glob("**/lib/libnvrtc*.so*")})


def build(environment: Path, folder: Path | None = None, devices: Mapping[str, Card] | None = None) -> Built:
    """Builds the recorder for the release in `environment` into `folder`, or else into its folder `recorder`. `devices`:
    cards by their keys, the default first, or else those of devices.toml. Raises UserError."""
    wheel = find_wheel(environment)
    asked = _read(wheel)
    target = folder or environment / "recorder"
    (target / "lib").mkdir(parents=True, exist_ok=True)
    objects = compile_bodies(target, wheel.cuda)
    lines = _run("nm", "--defined-only", "--extern-only", *(str(path) for path in objects)).splitlines()
    bodies = {line.split()[-1] for line in lines if line and not line.endswith(":")}
    generated = source(devices or cards(), wheel.cuda[0]) + redirection_source(asked.static)
    if wheel.cudnn:
        generated += cudnn_source(wheel.cudnn)
        bodies |= {"cudnnGetVersion", "cudnnGetProperty"}
    stubs = sorted((asked.entries | {copy.name for copy in asked.static}) - bodies)
    link(target, objects, generated + stub_source(stubs))
    for name in {*asked.libraries, "libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"}:
        # The loader knows a library that it has by its file: under every name it is the one that was preloaded.
        link_path = target / "lib" / name
        link_path.unlink(missing_ok=True)
        link_path.symlink_to("../librecorder.so")
    return Built(target, wheel, sorted(bodies & asked.entries), stubs)


class Static(NamedTuple):
    """A static copy of an entry: the library that holds it, the entry's name, and where it is in the library, in bytes."""

    library: str
    name: str
    offset: int


class _Asked(NamedTuple):
    """What a wheel asks for: entries and files of NVIDIA's libraries, and static copies of entries."""

    entries: set[str]
    libraries: set[str]
    static: list[Static]


def _read(wheel: Wheel) -> _Asked:
    paths = [path for path in wheel.libraries if not LIBRARY.fullmatch(path.name) and not NVRTC.match(path.name)]
    copies = wheel.version.startswith("1.")
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda path: _of_library(path, copies), paths))
    # Triton compiles C where it runs, from its own sources.
    of_triton = (path for kind in ("*.c", "*.py") for path in (wheel.packages / "triton").rglob(kind))
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in of_triton)
    entries = {name for text in texts for name in re.findall(r"\bcu[A-Z]\w+", text)}
    entries = entries.union(*(part.entries for part in parts))
    needed = {name for part in parts for name in part.libraries}
    # A library may have functions of its own with such names. The runtime's are in every library that needs no other.
    alone = [part for part in parts if part.static and not any("cudart" in name for name in part.libraries)]
    runtimes = [{copy.name for copy in part.static} for part in alone]
    of_runtime = set.intersection(*runtimes) if runtimes else set()
    static = (copy for part in parts for copy in part.static)
    kept = [copy for copy in static if copy.name.startswith("cudnn") or copy.name in of_runtime]
    return _Asked(entries, needed, kept)


def _of_library(path: Path, copies: bool) -> _Asked:
    """What one library of a wheel asks for, and where wanted its static copies."""
    # Entries that the wheel holds itself count too: up to 1.12 cuBLAS is part of it, and gives way to a preloaded one.
    names = (line.split()[-1].partition("@")[0] for line in _run("nm", "-D", str(path)).splitlines())
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", _run("readelf", "-d", str(path)))
    entries = {name for name in names if ENTRY.fullmatch(name)} | _by_name(path)
    libraries = {name for name in needed if LIBRARY.fullmatch(name)}
    return _Asked(entries, libraries, _static_entries(path) if copies else [])


def _by_name(path: Path) -> set[str]:
    place = re.search(r" \.rodata +\S+ +\w+ (\w+) (\w+)", _run("readelf", "--section-headers", "--wide", str(path)))
    if not place:
        return set()
    with path.open("rb") as stream:
        stream.seek(int(place[1], 16))
        return {found[0].decode() for found in BY_NAME.finditer(stream.read(int(place[2], 16)))}


def _static_entries(path: Path) -> list[Static]:
    found = []
    for line in _run("nm", "-S", str(path)).splitlines():
        fields = line.split()
        local = len(fields) == 4 and fields[2] == "t" and STATIC_ENTRY.fullmatch(fields[3])
        if local and int(fields[1], 16) >= JUMP_BYTES:
            found.append(Static(path.name, fields[3], int(fields[0], 16)))
    return found


def compile_bodies(folder: Path, cuda: tuple[int, int], without: Collection[str] = ()) -> list[Path]:
    """Compiles the recorder's sources for a version of CUDA into `folder` and returns the objects."""
    flags = [f"-DCUDA_MAJOR={cuda[0]}", f"-DCUDA_VERSION={1000 * cuda[0] + 10 * cuda[1]}"]
    flags += [f"-D{name}=recorder_without_{name}" for name in without]
    objects = []
    for path in sorted(HERE.glob("*.c")):
        objects.append(folder / f"{path.stem}.o")
        _gcc("-Wall", "-Wextra", *flags, "-c", str(path), "-o", str(objects[-1]))
    return objects


def link(folder: Path, objects: list[Path], generated: str) -> None:
    """Links the objects and the C text that was generated into `folder`/librecorder.so."""
    text = folder / "generated.c"
    text.write_text(f'#include "{HERE}/recorder.h"\n\n{generated}', encoding="utf-8")
    library = folder / "librecorder.so"
    library.unlink(missing_ok=True)
    options = ["-shared", "-pthread", "-ldl", "-Wl,-soname,librecorder.so"]
    _gcc("-Wno-missing-braces", "-o", str(library), str(text), *(str(path) for path in objects), *options)


def stub_source(names: Iterable[str]) -> str:
    """Entries without a body as C: each is an error and names itself."""
    lines = []
    for name in names:
        missing = f'recorder_missing("{name}")'
        if UNRECORDED.fullmatch(name):
            lines.append(f"int {name}(void) {{ return 1; }}")
        elif TEXT.fullmatch(name):
            lines.append(f'const char *{name}(void) {{ {missing}; return "refused by the recorder"; }}')
        else:
            lines.append(f"int {name}(void) {{ return {missing}; }}")
    return "\n".join([*lines, "", ""])


def redirection_source(static: Collection[Static]) -> str:
    """The static copies of entries as C for `recorder.h`. Only addresses are taken: entries are declared as any object."""
    lines = [f'extern char {name}_address __asm__("{name}");' for name in sorted({copy.name for copy in static})]
    lines.append("const struct redirection recorder_redirections[] = {")
    lines += [f'    {{"{library}", {offset}, &{name}_address}},' for library, name, offset in static]
    return "\n".join([*lines, "    {0},", "};", ""])


def _gcc(*arguments: str) -> None:
    _run("gcc", "-std=gnu11", "-O1", "-fPIC", "-fno-builtin", *arguments)


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout
    except FileNotFoundError as error:
        raise UserError(
            f"Building the recorder needs {command[0]}, which is not here: install gcc and binutils."
        ) from error
    except subprocess.CalledProcessError as error:
        raise UserError(f"Building the recorder failed: {command[0]} said: {error.stderr.strip()[-600:]}") from error
