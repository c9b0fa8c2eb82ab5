"""What did one call allocate, launch, copy and wait for? `with recording() as recorded: call()` asks the recorder,
inside a process that runs on it. The standard library alone, Python 3.9: it is imported inside each release's
environment."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import pickle
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from . import Refused

KINDS = (
    *("allocation", "free", "host_allocation", "host_free", "kernel", "library_call", "copy", "fill", "wait"),
    *("read_back", "assumption", "missing", "refusal", "query"),
)
"""Kinds of event, in the order of `enum kind` in recorder.h."""

DIRECTIONS = ("host to host", "host to device", "device to host", "device to device")

NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"
"""The variable that switches PyTorch's caching allocator off, read when a process first allocates on the device."""

UNFINISHED = "RECORDER_UNFINISHED"
"""The variable with which the device has finished only what the host waited for, and without which it always has. It is
read at each query, so a process may set it."""


class Event(NamedTuple):
    """One thing that the process asked of CUDA. `name`: the kernel's, or the entry's. `bytes`: of memory, a copy or a fill;
    otherwise 0. `direction`: of a copy; otherwise empty."""

    kind: str
    name: str
    bytes: int
    direction: str


class Recording:
    """What was asked of CUDA between two moments, in order; complete when its `with` block has ended. Bytes are those that
    passed cudaMalloc: whole segments with PyTorch's caching allocator, else what each tensor asked for."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events

    def _of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels that would have been launched, in order, demangled."""
        return [demangled(event.name) for event in self._of("kernel")]

    @property
    def library_calls(self) -> list[str]:
        """The calls of cuBLAS, in order; which and how many kernels each launches is its own secret."""
        return [event.name for event in self._of("library_call")]

    @property
    def copies(self) -> list[Event]:
        """Copies, in order. Copies within the host are left out."""
        return [event for event in self._of("copy") if event.direction != DIRECTIONS[0]]

    @property
    def waits(self) -> Counter[str]:
        """How often the host waited for the device, by entry. A cudaMemcpy that is not asynchronous is a wait."""
        return Counter(event.name for event in self._of("wait"))

    @property
    def read_backs(self) -> list[Event]:
        """Copies from the device after something was launched there, whose values are wrong because nothing ran."""
        return self._of("read_back")

    @property
    def assumptions(self) -> Counter[str]:
        """Answers that depend on a kernel's registers, which the recorder does not know, by entry. A release may size a grid
        or a scratch buffer by them."""
        return Counter(event.name for event in self._of("assumption"))

    @property
    def queries(self) -> Counter[str]:
        """How often the host asked whether the device had finished when it need not have, by entry."""
        return Counter(event.name for event in self._of("query"))

    @property
    def allocations(self) -> list[int]:
        """Bytes of each allocation of device memory, in order."""
        return [event.bytes for event in self._of("allocation")]

    @property
    def peak(self) -> int:
        """Bytes of device memory at the highest point, above what was taken when the recording began."""
        return max(self._levels())

    @property
    def retained(self) -> int:
        """Bytes of device memory that were still taken at the end, above what was taken when the recording began."""
        return self._levels()[-1]

    def _levels(self) -> list[int]:
        """Bytes above what was taken when the recording began: 0 there, and after each allocation and each free."""
        signs = {"allocation": 1, "free": -1}
        changes = (signs[event.kind] * event.bytes for event in self.events if event.kind in signs)
        return list(itertools.accumulate(changes, initial=0))

    def sound(self, reads_by_design: str = "") -> None:
        """Raises Refused where these counts are not what a GPU would show. `reads_by_design` names why what is read back
        decides nothing, as in `save_on_cpu`; such copies are then counted like others."""
        reason = unanswered()
        if reason:
            raise Refused(reason)
        if self.read_backs and not reads_by_design:
            read = sum(copy.bytes for copy in self.read_backs)
            raise Refused(
                f"The host read {read} bytes back from the device after a kernel was launched, and no kernel ran: what "
                "follows may depend on wrong values. Leave this case out, or name why the values decide nothing."
            )


def unanswered() -> str:
    """One sentence on what this process asked of CUDA that the recorder could not answer; empty where it answered all."""
    missing = Counter(_all_of("missing"))
    if missing:
        return (
            f"{_list(missing)} of CUDA was called in this process, and the recorder has no body for it. What "
            "followed may not be what a GPU would show. Give it one in recorder/, or leave this case out."
        )
    refused = Counter(_all_of("refusal"))
    if refused:
        return (
            f"{_list(refused)} was asked for in this process, which cannot be told without a GPU: a time, an attribute "
            "that the card lacks, a kernel that nobody registered or a handle that no process gave. Leave this case out, or "
            "complete the card."
        )
    return ""


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turns an exception inside the block into Refused where something could not be answered, which is its likely cause.
    One that another process could not read becomes a RuntimeError of the same words."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:
        reason = unanswered()
        if reason:
            raise Refused(reason) from error
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # torch._dynamo's BackendCompilerFailed, for one, cannot be made from its words
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise


def _list(names: Counter[str]) -> str:
    shown = [f"{name} ({count} times)" if count > 1 else name for name, count in names.most_common(5)]
    return ", ".join(shown) + (", ..." if len(names) > 5 else "")


class _RawEvent(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("bytes", ctypes.c_uint64),
        ("kind", ctypes.c_int32),
        ("direction", ctypes.c_int32),
    )


def _library() -> ctypes.CDLL:
    """The recorder that this process runs on. Raises Refused where it runs on none."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "recorder_count"):
        raise Refused(
            "This process does not run on the recorder: start it with the variables of `Built.surroundings`, which load it."
        )
    library.recorder_count.restype = ctypes.c_size_t
    library.recorder_read.restype = library.recorder_next.restype = library.recorder_bytes.restype = ctypes.c_size_t
    library.recorder_read.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(_RawEvent))
    library.recorder_next.argtypes = (ctypes.c_size_t, ctypes.c_int)
    library.recorder_card.restype = ctypes.c_char_p
    return library


def card() -> str:
    """The key of the pretended card in devices.toml. Raises Refused where this process does not run on the recorder."""
    name: bytes = _library().recorder_card()
    return name.decode()


def capability() -> str:
    """The pretended card's compute capability, as `sm_75`. Raises Refused where this process runs on no recorder."""
    return f"sm_{_library().recorder_capability()}"


def caching() -> bool:
    """Whether PyTorch's caching allocator stands between tensors and cudaMalloc in this process."""
    return NO_CACHING not in os.environ


@contextlib.contextmanager
def unfinished() -> Iterator[None]:
    """Inside the block the device has finished only what the host waited for."""
    ours = UNFINISHED not in os.environ
    os.environ[UNFINISHED] = "1"
    try:
        yield
    finally:
        if ours:
            del os.environ[UNFINISHED]


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Records what the block asks of CUDA. Raises Refused where this process does not run on the recorder."""
    library = _library()
    first = library.recorder_count()
    recorded = Recording([])
    yield recorded
    recorded.events.extend(_events(first, library.recorder_count() - first))


def _events(first: int, count: int) -> list[Event]:
    raw = (_RawEvent * count)()
    count = _library().recorder_read(first, count, raw)
    found = []
    for event in raw[:count]:
        kind = KINDS[event.kind]
        direction = DIRECTIONS[event.direction] if kind in ("copy", "read_back") else ""
        found.append(Event(kind, event.name.decode(), event.bytes, direction))
    return found


def _all_of(kind: str) -> list[str]:
    """The names of all events of a kind since the process began."""
    library = _library()
    count, names = library.recorder_count(), []
    index = library.recorder_next(0, KINDS.index(kind))
    while index < count:
        names.append(_events(index, 1)[0].name)
        index = library.recorder_next(index + 1, KINDS.index(kind))
    return names


@functools.cache
def demangled(name: str) -> str:
    """A C++ name as its source has it; any other name as it is. `name` is taken for C++'s where it begins with _Z."""
    if not name.startswith("_Z"):
        return name
    runtime = ctypes.CDLL("libstdc++.so.6")
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    runtime.free.argtypes = (ctypes.c_void_p,)
    status = ctypes.c_int()
    text = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode()
    finally:
        runtime.free(text)
