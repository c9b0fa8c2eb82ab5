"""A question from outside the repository: the file that TORCH_HISTORY_WORKLOAD names (docs/own-workload.md), completed with
what it leaves out. Without the variable this module holds no benchmark."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import itertools
import json
import os
import re
import reprlib
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from contract.metrics import METRICS, PROCESS, RESIDENT, SEQUENCE, STEADY, metrics_of
from contract.own_file import CLASSES, LONGEST_NAME, MEASURABLE, SCRIPT, TESTS, form_of, nearest
from contract.request import ADDED, Request
from contract.words import of_error
from measure import device
from measure.beside import TOO_LONG, answers
from workloads import Unavailable, WrongResult

METRICS_OF_FUNCTIONS = ("time", "peak_memory", "operators", "allocations", "kernels")
METRICS_OF_COMMANDS = ("process_time", "process_cpu_time", "process_peak_memory")
"""What is measured where the file names no METRICS."""

CALLS = 16
"""Calls that a process makes where its first ones are measured."""

TOLERANCE = 1e-4
"""Largest difference that counts as rounding, as a share of the largest expected number: float32 sums of some thousand terms
in another order differ by less. The file's own TOLERANCE replaces it."""


TABLES = ("functions", "iterators", "variants", "commands", "sizes")
"""What a file has by name."""


HINTS = {
    ModuleNotFoundError: ". If that is a package, name it in the file's `requirements`",
    FileNotFoundError: ". It is not run in its folder: `Path(__file__).parent` leads to what lies beside it",
}


class WorkloadUnreadable(Exception):
    """The file cannot be used; the text is a sentence that says why."""


def load(path: Path, text: Path) -> ModuleType:
    """The module of the file at `path`, with all that a workload has; its source is read from `text`, which is that file or
    a copy. Raises WorkloadUnreadable."""
    name = re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, text)
    if spec is None or spec.loader is None or not text.exists():
        raise WorkloadUnreadable(f"there is no Python file {text}")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # modules beside the file, and the file itself for processes that are spawned
    sys.argv = [str(path)]  # without the arguments of what measures it, should it read its own
    of_file: Any = module
    try:
        form, tests = form_of(ast.parse(text.read_bytes()))
        if form == SCRIPT:
            of_file.commands = {SCRIPT: ["python", str(path)]}
            return complete(module)
        torch.manual_seed(0)  # a model that is made beside `functions` has the same weights on every release
        np.random.seed(0)
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise WorkloadUnreadable(f"line {error.lineno} of {path.name} is no Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        hint = HINTS.get(type(error), "")
        raise WorkloadUnreadable(f"{path.name} cannot be imported: {of_error(error)}{hint}") from None
    if form == TESTS:
        of_file.inputs, of_file.check = tuple, None
        of_file.functions = {name: getattr(module, name) for name in tests}
    return complete(module)


def complete(module: ModuleType) -> ModuleType:
    """Gives a module with `inputs` and `functions`, `variants`, `iterators` or `command` what a workload has besides. Raises
    WorkloadUnreadable."""
    of_file: Any = module
    name = Path(str(module.__file__)).name
    of_file.IS_OWN = True
    for table in TABLES:
        if not isinstance(getattr(of_file, table, {}), dict):
            raise WorkloadUnreadable(f"{name} has `{table}` that is no dictionary: write {table} = {{name: ...}}")
    of_file.commands = _commands(of_file, name)
    _refuse_names(of_file, name)
    functions = {
        **getattr(of_file, "functions", {}),
        **{label: functools.partial(_consumed, make) for label, make in getattr(of_file, "iterators", {}).items()},
    }
    of_file.functions = functions
    builders = {label: functools.partial(_bound, of_file, function) for label, function in functions.items()}
    of_file.variants = {**builders, **getattr(of_file, "variants", {})}
    if not of_file.variants and not of_file.commands:
        raise WorkloadUnreadable(
            f"{name} names nothing to measure: give it `functions`, name -> a function of the inputs"
        )
    if of_file.variants and not callable(getattr(of_file, "inputs", None)):
        raise WorkloadUnreadable(f"{name} has no function `inputs` that returns what its functions are called with")
    of_file.METRICS = _metrics(of_file, name)
    of_file.sizes = dict(getattr(of_file, "sizes", {"": {}}))
    of_file.takes = {}
    if of_file.variants:
        of_file.takes = inspect.signature(of_file.inputs).parameters
        of_file.inputs = functools.partial(_inputs, of_file.inputs)
    own = getattr(of_file, "check", lambda arguments, result: _check(of_file, arguments, result))
    of_file.check = functools.partial(_own_check, own)
    return module


def _refuse_names(module: Any, name: str) -> None:
    """Raises WorkloadUnreadable where a case would have no name, or a name twice: a case is asked for by its name. And
    where a function is a generator, which nothing would consume."""
    known: dict[str, str] = {}
    for table in TABLES:
        for each, named in getattr(module, table, {}).items():
            if table == "functions" and inspect.isgeneratorfunction(named):
                raise WorkloadUnreadable(
                    f"{name} has `{each}` in `functions`, which is a generator: a call of it runs nothing. Name it in "
                    "`iterators`, of which everything is taken"
                )
            if not isinstance(each, str) or not each.isprintable() or len(each) > LONGEST_NAME:
                raise WorkloadUnreadable(
                    f"{name} has {each!r:.60} in `{table}`, which is no name: give it a text of at most {LONGEST_NAME} "
                    "printable characters"
                )
            if table not in ("commands", "sizes") and known.setdefault(each, table) != table:
                raise WorkloadUnreadable(
                    f"{name} has `{each}` in `{known[each]}` and in `{table}`: give one of them another name"
                )


def _commands(module: Any, name: str) -> dict:
    """Name -> words of each process to be measured."""
    found = dict(getattr(module, "commands", {}))
    if hasattr(module, "command"):
        found["command"] = module.command
    for label, words in found.items():
        if not isinstance(words, (list, tuple)) or not words or not all(isinstance(word, str) for word in words):
            raise WorkloadUnreadable(
                f'{name} has a command `{label}` that is no list of words: write ["python", "-c", "import torch"]'
            )
    return found


def _metrics(module: Any, name: str) -> tuple:
    """The metrics that the file names, else those of what it has."""
    default = (METRICS_OF_FUNCTIONS if module.variants else ()) + (METRICS_OF_COMMANDS if module.commands else ())
    named = getattr(module, "METRICS", default)
    named = (named,) if isinstance(named, str) else tuple(named)
    for metric in named:
        if metric not in METRICS:
            raise WorkloadUnreadable(
                f"{name} asks for a metric `{metric}`, and there is none.{nearest(str(metric), METRICS)} "
                f"These can be measured: {', '.join(MEASURABLE)}"
            )
        if METRICS[metric].measured not in CLASSES:
            raise WorkloadUnreadable(
                f"{name} asks for `{metric}`, which only the question start_up has: measure a `command` by `process_time`"
            )
        if METRICS[metric].measured == PROCESS and not module.commands:
            raise WorkloadUnreadable(f"{name} asks for `{metric}`, which is of a process, and has no `command`")
        if METRICS[metric].measured != PROCESS and not module.variants:
            raise WorkloadUnreadable(f"{name} asks for `{metric}`, which is of functions, and has none")
    return named


class _Call:
    """A function with what it is called with. `before`, where there is one, is to be called before each call. The recorder,
    which calls in its own way, gets both as one function."""

    def __init__(self, function: Callable, state: tuple) -> None:
        self._function = function
        self._state = state

    def __call__(self) -> object:
        return self._function(*self._state)


def _bound(module: Any, function: Callable, arguments: tuple) -> Callable[[], object]:
    state = _state(module, arguments)
    call: Any = _Call(function, state)
    if not hasattr(module, "before"):
        return call
    before = functools.partial(module.before, *state)
    if device.name() != "recorder":
        call.before = before
        return call
    return lambda: (before(), call())[1]


def _state(module: Any, arguments: tuple) -> tuple:
    """What the functions are called with: what the file's `setup` makes of the inputs, else the inputs."""
    if not hasattr(module, "setup"):
        return arguments
    # Each function is compared with the first, which has a state of its own: a model in it must have the same weights.
    torch.manual_seed(0)
    np.random.seed(0)
    state = module.setup(*arguments)
    return state if isinstance(state, tuple) else (state,)


def _consumed(make: Callable, *state: object) -> int:
    """How many items an iterator gives, all of them taken."""
    return sum(1 for _ in make(*state))


def _inputs(function: Callable, size: str, device: str, seed: int, **more: object) -> tuple:
    """What `function` returns, as a tuple with tensors on `device`; it is given what it asks for of size, device, seed, and
    of `more`: `call`, the number of the call, and `batch`."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    offered = {"size": size, "device": device, "seed": seed, "call": 0, **more}
    asked = inspect.signature(function).parameters
    arguments = function(**{name: value for name, value in offered.items() if name in asked})
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    return tuple(value.to(device) if isinstance(value, torch.Tensor) else value for value in arguments)


def _own_check(check: Callable | None, arguments: tuple, result: object) -> None:
    """Asks the file's check, which raises or returns False where the result is wrong; None says that none is wanted."""
    if check is not None and check(arguments, result) is False:
        raise WrongResult("`check` says that the result is wrong")


ADVICE = (
    "If these functions are meant to differ, or one draws at random or changes what it is given, say `check = None` in "
    "the file"
)


def _check(module: Any, arguments: tuple, result: object) -> None:
    """Compares with the file's `expected(*inputs)`, else with what its first function returns. Raises WrongResult."""
    if hasattr(module, "expected"):
        want, source, advice = module.expected(*arguments), "`expected`", ""
    elif len(module.variants) == 1:
        return
    else:
        first, builder = next(iter(module.variants.items()))
        want, source, advice = builder(arguments)(), f"the variant `{first}`", f". {ADVICE}"
    try:
        wanted, got = _leaves(want), _leaves(result)
    except RecursionError:
        raise WrongResult(f"the result refers to itself, which cannot be compared{advice or f'. {ADVICE}'}") from None
    ours, theirs = ([_form(value) for value in values] for values in (got, wanted))
    if ours != theirs:
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs)))
        forms = f"{reprlib.repr(ours[same:])} and {reprlib.repr(theirs[same:])}"
        raise WrongResult(f"the result's shape differs from that of {source}: {forms}{advice}")
    allowed = getattr(module, "TOLERANCE", TOLERANCE)
    for value, other in zip(got, wanted):
        if why := _difference(value, other, allowed, source):
            raise WrongResult(why + advice)


def _difference(value: Any, other: Any, allowed: float, source: str) -> str:
    """Why a leaf of the result is wrong; empty where it is right."""
    if not isinstance(value, np.ndarray):
        return "" if value == other else f"the result holds {value!r:.60}, and that of {source} {other!r:.60}"
    if not np.array_equal(np.isnan(value), np.isnan(other)):
        return f"the result is not a number in other places than that of {source}"
    with np.errstate(invalid="ignore"):
        off = np.where(value == other, 0.0, np.abs(value - other))
    worst, largest = (float(np.nanmax(part, initial=0.0)) for part in (off, np.abs(other)))
    if worst <= allowed * largest:
        return ""
    return f"the result is off by {worst:.3g} from that of {source}, whose largest number is {largest:.3g}"


def _form(leaf: Any) -> object:
    return leaf.shape if isinstance(leaf, np.ndarray) else type(leaf).__name__


def _leaves(value: Any) -> list:
    """Every number in a result as arrays of float64 or complex128, and all else as it is, whatever holds them: tensors,
    arrays, dictionaries in the order of their keys, lists, tuples, and objects by their attributes."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value, key=str) for leaf in (str(key), *_leaves(value[key]))]
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value if value.layout == torch.strided else value.to_dense()
        value = value.dequantize() if value.is_quantized else value
        if value.is_complex():
            return [value.resolve_conj().numpy() if hasattr(value, "resolve_conj") else value.numpy()]
        return [value.double().numpy()]
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind in "biufc":
            return [array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)]
        return [array.tolist()]
    if value is None or isinstance(value, (str, bytes)):
        return [value]
    return [type(value).__name__, *_leaves(getattr(value, "__dict__", {}))]


def of_first_calls(module: Any) -> ModuleType:
    """The workload as the calls of a fresh process. Where `inputs` takes `call`, each has inputs of its own."""
    view = _view(module, SEQUENCE)
    each = "call" in module.takes

    def inputs(size: str, on: str, seed: int) -> list:
        return [module.inputs(size, on, seed, call=number if each else 0) for number in range(CALLS)]

    def caller(function: Callable, arguments: list) -> Callable[[tuple], object]:
        state = None if each else _state(module, arguments[0])
        return lambda argument: function(*(argument if state is None else state))

    def built(builder: Callable, arguments: list) -> Callable[[tuple], object]:
        call = builder(arguments[0])
        return lambda argument: call()

    view.inputs = inputs
    view.variants = {
        **{name: functools.partial(built, builder) for name, builder in module.variants.items()},
        **{name: functools.partial(caller, function) for name, function in module.functions.items()},
    }
    view.check = lambda arguments, results: module.check(arguments[-1], results[-1])
    return view


def _view(module: Any, measured: str, **others: Any) -> Any:
    """A copy of the module with `others` and those of its metrics that are measured in one way."""
    view: Any = ModuleType(module.__name__)
    view.__dict__.update({**vars(module), **others})
    view.METRICS = tuple(name for name in metrics_of(module.METRICS) if METRICS[name].measured == measured)
    return view


VIEWS: dict[str, Callable[[Any], Any]] = {
    STEADY: functools.partial(_view, measured=STEADY),
    SEQUENCE: of_first_calls,
    RESIDENT: functools.partial(_view, measured=RESIDENT),
    PROCESS: lambda module: _view(module, PROCESS, variants=dict(module.commands), sizes={"": {}}),
}
"""How a metric is measured -> the workload as that is done."""


TRIAL_SECONDS, TRIALS_SECONDS = 20.0, 120.0
"""How long a function is tried, and all of them together. What takes longer is left to the measurement."""


def trial(answer: str) -> None:
    """Calls each function once, in the first size and in a process of its own, and writes what failed to the file `answer`:
    {name: sentence} as JSON, null for what this release cannot run."""
    ends = time.monotonic() + TRIALS_SECONDS
    told: dict[str, str | None] = {}
    for name in _workload.variants:
        told[name] = _tried(functools.partial(_once, name)) if time.monotonic() < ends else ""
    Path(answer).write_text(json.dumps(told))


def _once(name: str) -> str | None:
    """How a function fails: empty where it does not, None where this release cannot run it."""
    try:
        on = _ready()
        arguments = _workload.inputs(next(iter(_workload.sizes)), on, 1)
        call = _workload.variants[name](arguments)
        getattr(call, "before", lambda: None)()
        _workload.check(arguments, call())
    except (Unavailable, device.DeviceUnavailable, device.NotMeasured):
        return None
    except Exception as error:
        return of_error(error)
    return ""


def _tried(once: Callable[[], str | None]) -> str | None:
    """What `once` returns in a process of its own, whose output goes nowhere; how that ended, where it did not answer, and
    nothing where it took too long."""

    def quietly() -> dict:
        child, nowhere = os.getpid(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        said = once()
        if os.getpid() != child:  # what was tried has forked, and both returned
            os._exit(0)
        return {"said": said}

    ((_, answer),) = answers([("", quietly)], 1, TRIAL_SECONDS, TRIAL_SECONDS)
    if "said" in answer:
        return answer["said"]
    return "" if answer["failed"].startswith(TOO_LONG) else answer["failed"]


_ASKED = Request.of(os.environ)

if _ASKED.workload:
    # Only here: who wants nothing but `load` needs no asv, and what common.py imports may ask for a GPU.
    from .common import _Question, _ready

    if os.environ.get(ADDED) and os.environ[ADDED] not in sys.path:
        sys.path.insert(0, os.environ[ADDED])  # again: asv takes what PYTHONPATH names off the path
    _workload = load(Path(_ASKED.workload), Path(_ASKED.text or _ASKED.workload))

    for _measured, _name in CLASSES.items():
        _of_class = VIEWS[_measured](_workload)
        if not _of_class.METRICS:
            continue
        _class: Any = types.new_class(_name, (_Question,), {"workload": _of_class})
        _class.__module__, _class.__doc__ = __name__, "Functions x sizes."
        for _metric in _of_class.METRICS:
            getattr(_class, f"track_{_metric}").benchmark_name = f"{_workload.__name__}.{_name}.track_{_metric}"
        globals()[_name] = _class
