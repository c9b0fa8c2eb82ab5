"""Does the recorder pass PyTorch's own tests of memory, streams and pinned memory, which were written to pass on GPUs?

    python -m research.conformance --release 2.6.0 --release 1.13.1 --card turing

Takes the tests from Debian's source package of the nearest release with `apt-get`, and keeps nothing of them. Each
release is installed (3 GiB) and removed again. Where the host asked whether the device had finished, a test is run
again on one that finishes only what the host waits for. What is known is kept in KEPT. Exit code 1 where a test is
wrong and nothing says so, or fails with nothing in the recorder's log."""

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from recorder.build import Built
from torch_history.measuring.subjects import FOLDER
from torch_history.releases.environments import prune
from torch_history.system.children import Answering, Ended
from torch_history.system.files import write_atomically

from .recorded import CARD, ROOT, installed, kept

PAGE = ROOT / "docs" / "generated" / "conformance.md"
KEPT = PAGE.with_suffix(".json")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITES = ("bookworm", "trixie", "sid")
PACKAGES = ("expecttest==0.2.1", "psutil==7.0.0")
"""What PyTorch's tests import besides torch."""

SECONDS = 900
"""For one test."""

TESTS = {
    "test_cuda*.py": (
        *("test_memory_allocation", "test_memory_stats", "test_out_of_memory", "test_out_of_memory_retry"),
        *("test_set_per_process_memory_fraction", "test_allocator_settings", "test_cachingAllocator_raw_alloc"),
        *("test_raises_oom", "test_notifies_oom", "test_allocator_fuzz", "test_matmul_memory_use", "test_mem_get_info"),
        *("test_cublas_workspace_explicit_allocation", "test_memory_snapshot_with_cpp", "test_memory_snapshot_script"),
        *("test_memory_plots_free_segment_stack", "test_cpp_memory_snapshot_pickle", "test_record_stream"),
        *("test_record_stream_on_shifted_view", "test_caching_pinned_memory", "test_events"),
        *("test_graph_capture_simple", "test_max_split_expandable"),
    ),
    "test_optim.py": ("test_peak_memory_foreach",),
}
"""File -> the tests in it that are asked."""

UNJUDGED = ("ImportError", "ModuleNotFoundError")
"""What a test raises that needs another package."""

ANOTHERS = {
    "test_allocator_settings": r"ValueError: Unrecognized key 'foo' in Accelerator allocator config",
    "test_cublas_workspace_explicit_allocation": r"check_workspace_size\(a\) - \(3072 \* 1024\)",
}
"""Tests of an earlier release that a later one cannot pass -> what of it fails where it asks for what is no longer so: 2.14
raises a ValueError for a setting that it does not know, where a RuntimeError is wanted, and reads CUBLAS_WORKSPACE_CONFIG
once in a process, where a test sets it three times. In tests/test_recorder.py three processes ask for its three bytes."""

KINDS = {
    "passes": "passed",
    "values": "other values only",
    "refused": "refused or a range",
    "unlogged": "error outside the log",
    "wrong": "wrong silently",
    "unjudged": "not judged",
    "skipped": "skipped",
}


class Judged(NamedTuple):
    """A test of a release on a card: its name, one of KINDS, and why."""

    test: str
    kind: str
    why: str


def archive() -> str:
    """The address of Debian's archive, as this machine's apt has it. Ends the program where it has none."""
    listed = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in listed if path.is_file())
    found = re.search(r"https?://(?!snapshot)\S+/debian/?(?=\s)", text)
    if found is None:
        sys.exit("PyTorch's sources come from Debian's archive, which /etc/apt names nowhere. Run this on a Debian.")
    return found[0]


def judged(test: str, finished: dict[str, Any], unfinished: dict[str, Any] | None, later: bool = False) -> Judged:
    """What the answers of conforming.py say of a test: on a device that has always finished and, where it was asked, on one
    that finishes only what the host waits for. `later`: whether the release is later than the test's."""
    one, other = (_judged(test, each, later) for each in (finished, unfinished or finished))
    right = [each for each in (one, other) if each.kind in ("passes", "values")]
    if "refused" in (one.kind, other.kind) or one.kind == other.kind or not right:
        return max(one, other, key=lambda each: each.kind == "refused")
    said = "passes" if right[0].kind == "passes" else "differs in values alone"
    return Judged(test, "refused", f"It depends on whether the device has finished, and {said} at one end.")


def _judged(test: str, answer: dict[str, Any], later: bool) -> Judged:
    if answer["outcome"] == "skipped":
        return Judged(test, "skipped", answer["said"])
    if answer["unanswered"]:
        return Judged(test, "refused", answer["unanswered"])
    if answer["outcome"] == "passed":
        return Judged(test, "passes", "")
    if answer["said"].startswith(UNJUDGED):
        return Judged(test, "unjudged", answer["said"])
    if later and test in ANOTHERS and re.search(ANOTHERS[test], answer["why"]):
        return Judged(test, "unjudged", f"It asks for what an earlier release did: {answer['said']}")
    if answer["read_backs"]:
        return Judged(test, "values", answer["said"])
    return Judged(test, "wrong" if answer["outcome"] == "failed" else "unlogged", answer["said"])


def nearest(release: str, offered: list[str]) -> list[str]:
    """Debian's versions from the nearest on: from the release's own back, and then from it on."""
    versions = sorted(offered, key=_of)
    before = [version for version in versions if _of(version) <= Version(release)]
    return before[::-1] + versions[len(before) :]


def _of(version: str) -> Version:
    """The release of a version of Debian's."""
    return Version(version.partition("+")[0])


class Debian:
    """Debian's source packages, in a folder and with an apt of their own: the system's is left alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        lines = [f"deb-src [signed-by={KEYRING}] {archive()} {suite} main" for suite in SUITES]
        (folder / "sources.list").write_text("\n".join(lines) + "\n")
        self._run("apt-get", "update")
        shown = self._run("apt-cache", "showsrc", "pytorch").splitlines()
        self.versions = [line.split()[1] for line in shown if line.startswith("Version:")]

    def tests(self, release: str) -> Path:
        """The folder of PyTorch's tests of the nearest version that is still there, by whose name it is called."""
        for version in nearest(release, self.versions):
            target = self.folder / version
            if target.exists():
                return target
            try:
                self._run("apt-get", "source", "--download-only", "--tar-only", f"pytorch={version}")
            except subprocess.CalledProcessError:
                continue  # listed, and its files are not there
            target.mkdir()
            (archive,) = self.folder.glob(f"pytorch_{version.rpartition('-')[0]}.orig.tar.*")
            command = ("tar", "--extract", "--file", str(archive), "--strip-components=2", "--wildcards")
            subprocess.run([*command, "*/test/*.py"], cwd=target, check=True)
            return target
        raise SystemExit("No source of PyTorch can be had from Debian.")

    def _run(self, *command: str) -> str:
        places = {"Etc::sourcelist": "sources.list", "State::lists": "lists", "State": "", "Cache": "cache"}
        options = [f"--option=Dir::{name}={self.folder / place}" for name, place in places.items()]
        options += ["--option=Dir::Etc::sourceparts=-", "--option=APT::Sandbox::User="]
        whole = [command[0], *options, *command[1:]]
        return subprocess.run(whole, cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def asked(built: Built, card: str, tests: Path, packages: Path, later: bool = False) -> Iterator[Judged]:
    """The verdict on each of PyTorch's tests, as soon as it is known, on a card and the recorder of a release, which may be
    `later` than they are. What they import is installed in the folder `packages`."""
    python = str(built.wheel.packages.parents[2] / "bin" / "python")
    if not packages.exists():
        uv = (str(ROOT / ".venv" / "bin" / "uv"), "--no-config", "pip", "install", "--quiet", "--no-deps")
        subprocess.run([*uv, "--python", python, "--target", str(packages), *PACKAGES], check=True)
    surroundings = {
        **built.surroundings(card),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, tests, packages))),
        "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cuda",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }
    for pattern, names in TESTS.items():
        for path in sorted(tests.glob(pattern)):
            there = [name for name in names if f"def {name}(" in path.read_text()]
            if not there:
                continue
            file = _File([python, "-W", "ignore", str(ROOT / "research" / "conforming.py"), str(path)], surroundings)
            for case, test in file.asked(wanted=there)["offered"]:
                finished = file.asked(test=(case, test))
                other = file.asked(test=(case, test), unfinished=True) if finished["queries"] else None
                yield judged(test, finished, other, later)
            file.close()


class _File:
    """conforming.py on a file of tests. It is started again where a test takes too long."""

    def __init__(self, command: list[str], surroundings: dict[str, str]) -> None:
        self._start = functools.partial(Answering, command, surroundings, Path(command[-1]).parent)
        self._process = self._start()

    def close(self) -> None:
        self._process.close()

    def asked(self, wanted: Sequence[str] = (), test: Sequence[str] = (), unfinished: bool = False) -> dict[str, Any]:
        """Its answer; a test whose process ends without a word raised something. Raises Ended where no test was asked."""
        self._process.tell({"wanted": wanted, "test": test, "unfinished": unfinished})
        try:
            answer = self._process.answer(SECONDS)
        except Ended as error:
            answer = {"error": str(error)}
            self._process.close()
            self._process = self._start()
        if "error" not in answer:
            return answer
        if not test:
            raise Ended(answer["error"])
        said = f"its process ended without an answer: {answer['error']}"
        return {"outcome": "raised", "why": said, "said": said, "unanswered": "", "read_backs": 0, "queries": 0}


def page(known: dict[str, dict[str, Any]]) -> str:
    """What became of each test as Markdown: release and card -> Debian's version as `source`, and `tests` as Judged."""
    lines = [
        "# PyTorch's own tests on the recorder",
        "",
        "Made by `python -m research.conformance`; not edited by hand. **No kernel ran**: tensors' values are not compared.",
        "",
        "| release | card | tests of | " + " | ".join(KINDS.values()) + " |",
        "|---" * (3 + len(KINDS)) + "|",
    ]
    for where, of in sorted(known.items()):
        counted = Counter(kind for _, kind, _ in of["tests"])
        cells = (*where.split(), of["source"], *(str(counted[kind]) for kind in KINDS))
        lines.append(f"| {' | '.join(cells)} |")
    for kind in KINDS:
        whys: dict[str, list[str]] = {}
        for where, of in sorted(known.items()):
            for test, ended, why in of["tests"]:
                if ended == kind != "passes":
                    whys.setdefault(f"`{test}`: {' '.join(why.split())[:90]}", []).append(where)
        if whys:
            lines += ["", f"## {KINDS[kind].capitalize()}", ""]
            lines += [f"- {why} ({', '.join(places)})" for why, places in whys.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="append", default=[], help="none: the page is written from what is kept")
    parser.add_argument("--card", action="append")
    given = parser.parse_args()
    known = kept(KEPT)
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        debian = Debian(Path(folder))
        for release in given.release:
            tests, built = debian.tests(release), installed(release)
            later = _of(tests.name) < Version(release)
            for card in given.card or [CARD]:
                found = []
                for test in asked(built, card, tests, Path(folder, f"packages-{release}"), later):
                    print(release, card, *test, flush=True)
                    found.append(test)
                bad |= any(test.kind in ("wrong", "unlogged") for test in found)
                known = kept(KEPT)  # another of these programs may have ended meanwhile
                known[f"{release} {card}"] = {"source": tests.name, "tests": found}
                write_atomically(KEPT, json.dumps(known, indent=1, sort_keys=True) + "\n")
            prune(ROOT / "env" / FOLDER, f"v{release}".__eq__)
    write_atomically(PAGE, page(known))
    sys.exit(bad)


if __name__ == "__main__":
    main()
