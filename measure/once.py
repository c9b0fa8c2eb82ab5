"""Where does the time go of what a process does only once: its first call, an import, a whole command?

    python once.py start ANSWER QUESTION VARIANT
    python once.py command ANSWER WORD...

looks at one step of a start, or at a program of Python, in the process that is started so. An alarm looks now and then
which function runs, and the processes that it starts are timed. This file is imported there before torch is, so
whatever it need not have is imported within functions. What it finds is evidence of causes and changes no version of a
benchmark."""

from __future__ import annotations

import os
import signal
import sys
import time

LOOKING_SECONDS = 0.002
"""Between two looks at what runs: what is looked at takes at least tenths of a second."""

ELSEWHERE = "processes that it waits for"
"""Row of functions and packages: the time in which a process that it started runs."""

IN_ANOTHER = "another process"
"""Trace of a call that a new process makes, which settings of the one that asks do not reach."""

_FILE = os.path.abspath(__file__)
_SUITE = os.path.dirname(os.path.dirname(_FILE))
_IMPORTING = "importlib._bootstrap"


class _Processes:
    """What is started within the block: `rows`, name -> [seconds, number of processes]."""

    def __init__(self) -> None:
        self.rows: dict = {}
        self.running = 0
        self._began: dict = {}
        self._undo: list = []

    def __enter__(self) -> _Processes:
        from multiprocessing import popen_fork
        from subprocess import Popen

        self._wrap(Popen, "__init__", before=self._start)
        self._wrap(Popen, "_handle_exitstatus", after=lambda popen, _: self._end(popen, _program(popen.args)))
        self._wrap(popen_fork.Popen, "__init__", before=self._start)
        self._wrap(
            popen_fork.Popen,
            "poll",
            after=lambda popen, code: None if code is None else self._end(popen, f"a worker by {popen.method}"),
        )
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, was in self._undo:
            setattr(owner, name, was)

    def _wrap(self, owner: type, name: str, before=lambda popen: None, after=lambda popen, answer: None) -> None:
        was = getattr(owner, name)

        def wrapped(popen, *arguments, **named):
            before(popen)
            answer = was(popen, *arguments, **named)
            after(popen, answer)
            return answer

        self._undo.append((owner, name, was))
        setattr(owner, name, wrapped)

    def _start(self, popen: object) -> None:
        self._began[id(popen)] = time.perf_counter()
        self.running += 1

    def _end(self, popen: object, name: str) -> None:
        began = self._began.pop(id(popen), None)
        if began is not None:
            self.running -= 1
            row = self.rows.setdefault(name, [0.0, 0])
            row[0] += time.perf_counter() - began
            row[1] += 1


def _program(words: object) -> str:
    """What two releases share of a command: the program, and of a file that it is given how its name ends."""
    words = [words] if isinstance(words, (str, bytes)) else list(words)  # type: ignore[call-overload]
    told = [os.fsdecode(word) for word in words]
    program = os.path.basename((told[0].split() or [""])[0])
    program = "python" if program.startswith("python") else program
    for word in told[1:]:
        name = os.path.basename(word)
        if not word.startswith("-") and name.endswith((".c", ".cc", ".cpp", ".cu", ".h", ".hpp")):
            return f"{program} on {'*.' + name.partition('.')[2]}"
    return program


class _Samples:
    """Which function and package of Python run within the block: name -> seconds, in `functions` and `packages`."""

    def __init__(self, processes: _Processes) -> None:
        self.functions: dict = {}
        self.packages: dict = {}
        self._processes = processes
        self._last = 0.0

    def __enter__(self) -> _Samples:
        self._before = signal.signal(signal.SIGALRM, self._look)
        self._last = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, LOOKING_SECONDS, LOOKING_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _look(self, number: int, frame: object) -> None:
        # A long function written in C is interrupted once, at its end: all that has passed is then its caller's.
        passed, self._last = time.perf_counter() - self._last, time.perf_counter()
        function, package = (ELSEWHERE, ELSEWHERE) if self._processes.running else _places(frame)
        self.functions[function] = self.functions.get(function, 0.0) + passed
        self.packages[package] = self.packages.get(package, 0.0) + passed


def _places(frame: object) -> tuple:
    """The function that runs, and its package: while a module is found, read or loaded from a library, that module's."""
    at = frame
    function = package = ""
    while at is not None:
        code = at.f_code  # type: ignore[attr-defined]
        path, name = code.co_filename, code.co_name
        if _IMPORTING in path:
            if name == "_find_and_load" and not package:
                package = _package(at.f_locals.get("name", ""))  # type: ignore[attr-defined]
        elif path != __file__:
            function = function or _function(path, name)
            package = package or _package(at.f_globals.get("__name__", ""))  # type: ignore[attr-defined]
            break
        at = at.f_back  # type: ignore[attr-defined]
    return function or "Python", package or "Python"


def _function(path: str, name: str) -> str:
    """A function's name that two releases share: no line, and of the path what lies within its package."""
    for root in ("site-packages/", "lib/python"):
        if root in path:
            path = path.rpartition(root)[2]
    return f"{path} {name}" if path.startswith(("torch/", "numpy/")) else f"{os.path.basename(path)} {name}"


def _package(module: str) -> str:
    """Of a module's name its package, of torch's the part of torch."""
    first, _, rest = module.partition(".")
    return f"torch.{rest.partition('.')[0]}" if first == "torch" and rest else first


def looked_at(step) -> dict:
    """Calls `step` once, and tells the `seconds`; and `processes`, `functions` and `packages`: name -> [seconds, number].
    The number is of processes, and of the modules of a package that were imported."""
    before = set(sys.modules)
    begin = time.perf_counter()
    with _Processes() as processes, _Samples(processes) as samples:
        step()
    seconds = time.perf_counter() - begin
    imported: dict = {}
    for module in set(sys.modules) - before:
        imported[_package(module)] = imported.get(_package(module), 0) + 1
    return {
        "seconds": seconds,
        "processes": processes.rows,
        "functions": {name: [spent, 0] for name, spent in samples.functions.items()},
        "packages": {name: [spent, imported.get(name, 0)] for name, spent in samples.packages.items()},
    }


def timed(step) -> dict:
    """Calls `step` once: seconds of the wall's clock, and of processors with those of processes that it started."""
    from . import start_up

    below = start_up.used_below()
    before, begin = start_up.used(), time.perf_counter()
    step()
    seconds = time.perf_counter() - begin
    worked = start_up.used() - before
    return {"wall": seconds, "cpu": worked + start_up.used_below() - below}


# --- of a new process


def start(question: str, variant: str, look: bool) -> dict:
    """As `timed`, or as `looked_at`, of one step of a question of starts. Raises CommandFailed and start_up.Refused."""
    from . import start_up

    if not look:
        told = start_up._in_a_process(question, variant)
        return {"wall": told["seconds"], "cpu": told["busy"]}
    return _told(["-I", _FILE, "start"], [question, variant])


def command(words: list, folder: str, look: bool) -> dict:
    """As `timed`, or as `looked_at`, of a command that is started in `folder`. Raises CommandFailed, and CannotLook where it
    is no program of Python."""
    from . import process

    python = words[0] in process.PYTHONS
    if not look:
        seconds, busy, _ = process._one([sys.executable if python else words[0], *words[1:]], folder)
        return {"wall": seconds, "cpu": busy}
    if not python or len(words) < 2 or (words[1].startswith("-") and words[1] not in ("-c", "-m")):
        raise CannotLook(
            "only a command that begins with `python`, and with -c, -m or a file after it, can be looked into"
        )
    return _told([_FILE, "command"], words[1:], folder)


class CannotLook(Exception):
    """This cannot be looked at or into here; the text is one sentence that says why."""


def _told(before: list, after: list, folder: str = "") -> dict:
    """What a process of this file wrote into its ANSWER, started with empty caches and the words before and after that."""
    import json

    from . import process, sequence

    with sequence.empty_caches() as empty:
        os.environ["TMPDIR"] = empty
        answer = os.path.join(empty, "answer.json")
        process._one([sys.executable, *before, answer, *after], folder or empty)
        if not os.path.exists(answer):
            raise CannotLook("it ends its process itself, before what was seen can be told")
        with open(answer, encoding="utf-8") as stream:
            told = json.load(stream)
    if "unavailable" in told:
        raise CannotLook(told["unavailable"])
    return told


def _of_start(question: str, variant: str) -> dict:
    sys.path.insert(0, _SUITE)
    start_up = __import__("measure.start_up", fromlist=["look"])
    module = __import__(f"workloads.{question}", fromlist=["variants"])
    try:
        step = module.variants[variant](start_up.look)
    except module.Unavailable as unavailable:
        return {"unavailable": str(unavailable)}
    return looked_at(step)


def _of_program(words: list) -> dict:
    """Runs a program of Python as `python WORD...` does, and looks at it."""
    import runpy

    sys.argv = words[1:] if words[0] in ("-c", "-m") else words
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path[0] = ""
        code = compile(words[1], "<string>", "exec")
        return looked_at(lambda: _ended(exec, code, {"__name__": "__main__"}))
    if words[0] == "-m":
        sys.path[0] = ""
        return looked_at(lambda: _ended(runpy.run_module, words[1], None, "__main__", True))
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    return looked_at(lambda: _ended(runpy.run_path, words[0], None, "__main__"))


def _ended(run, *arguments) -> None:
    """Runs a program until it ends, by itself or by `sys.exit`. Raises SystemExit where it says that it failed."""
    try:
        run(*arguments)
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise


def _main(words: list) -> None:
    import json

    kind, answer, *rest = words
    told = _of_start(*rest) if kind == "start" else _of_program(rest)
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump(told, stream)


if __name__ == "__main__":
    _main(sys.argv[1:])
