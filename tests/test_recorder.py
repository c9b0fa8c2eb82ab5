"""Does the recorder count what a program asks of CUDA, exactly, and refuse what cannot be told without a GPU?

The program is C that calls the runtime as a wheel does, built with the machine's compiler; no torch is needed. The tests
marked `releases` ask two real wheels.
"""

import ctypes
import json
import pickle
import shutil
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from recorder import Refused, record
from recorder.build import Built, Wheel, build, compile_bodies, cudnn_source, link, redirection_source, stub_source
from recorder.cards import DEVICES, cards, source
from recorder.environments import create
from torch_history.system.errors import UserError

from . import caching_allocator
from .lab import AXIS
from .processes import ROOT, compiled, ran
from .test_carried import container, image

DECLARATIONS = """
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned x, y, z; } dim3;
int cudaMalloc(void **, size_t); int cudaFree(void *);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *); int cudaMemset(void *, int, size_t);
typedef struct { char bytes[64]; } handle_t;
int cudaIpcGetMemHandle(handle_t *, void *); int cudaIpcOpenMemHandle(void **, handle_t, unsigned);
int cudaIpcCloseMemHandle(void *); int cudaEventCreateWithFlags(void **, unsigned);
int cudaIpcGetEventHandle(handle_t *, void *); int cudaIpcOpenEventHandle(void **, handle_t);
int fork(void); int getppid(void); int wait(int *); void _exit(int);
int cudaMemGetInfo(size_t *, size_t *); int cudaStreamSynchronize(void *);
int cudaDeviceSynchronize(void); int cudaStreamCreateWithPriority(void **, unsigned, int); int cudaEventSynchronize(void *);
int cudaStreamGetPriority(void *, int *); int cudaStreamQuery(void *); int cudaEventQuery(void *);
int cudaEventRecord(void *, void *); int cudaStreamWaitEvent(void *, void *, unsigned);
int cudaGetDeviceCount(int *); int cuInit(unsigned); int cuptiGetResultString(int, const char **);
int cuptiActivityGetNumDroppedRecords(void *, unsigned, size_t *);
int cuMemCreate(void **, size_t); int cuMemRelease(void *); int cuMemAddressReserve(char **, size_t);
int cuMemAddressFree(char *, size_t); int cuMemMap(char *, size_t, size_t, void *); int cuMemUnmap(char *, size_t);
 int cudaGetLastError(void); int cudaEventElapsedTime(float *, void *, void *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *); int cudaDeviceGetAttribute(int *, int, int);
void **__cudaRegisterFatBinary(void *); int cublasSgemm_v2(void *); int cudnnConvolutionForward(void *);
int cublasCreate_v2(void **); int cublasDestroy_v2(void *); int cublasLtCreate(void **); int cublasLtDestroy(void *);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
static const char kernel[16];
static const dim3 one = {1, 1, 1};
static void launch(void) { cudaLaunchKernel(kernel, one, one, NULL, 0, NULL); }
__attribute__((constructor)) static void load(void) {
    __cudaRegisterFunction(__cudaRegisterFatBinary(NULL), kernel, "", "_Z3addPfi", -1, NULL, NULL, NULL, NULL, NULL);
}
"""

READER = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[2])
from recorder import Refused
from recorder.record import recording, card
library = ctypes.CDLL(sys.argv[1])
with recording() as recorded:
    returned = library.run()
names = "kernels library_calls copies waits allocations peak retained read_backs queries"
answer = {name: getattr(recorded, name) for name in names.split()}
answer["fills"] = [event.bytes for event in recorded.events if event.kind == "fill"]
try:
    recorded.sound(sys.argv[3])
except Refused as refused:
    answer["refused"] = str(refused)
print(json.dumps({**answer, "returned": returned, "card": card()}))
"""

Program = Callable[..., dict[str, Any]]


def library(folder: Path, stubs: Sequence[str] = (), known: Any = None, without: tuple[str, ...] = ()) -> Path:
    """A recorder for CUDA 12.8 without a wheel, whose stubs are named, and which pretends these cards."""
    generated = source(known or cards(), 12) + stub_source([*stubs, *without]) + redirection_source([])
    link(folder, compile_bodies(folder, (12, 8), without), generated)
    return folder / "librecorder.so"


@pytest.fixture(scope="module")
def recorder(tmp_path_factory) -> Path:
    return library(tmp_path_factory.mktemp("recorder"), ["cudnnConvolutionForward"])


@pytest.fixture
def program(recorder, tmp_path) -> Program:
    """Runs the body of a C function on the recorder and returns what was recorded of it."""

    def run(body: str, reads_by_design: str = "", on: Path = recorder, **variables: str) -> dict[str, Any]:
        code = f"{DECLARATIONS}\nint run(void) {{ {body} return 0; }}\n"
        made = compiled(tmp_path / "program.so", code, "-shared")
        surroundings = {"LD_PRELOAD": str(on), "PATH": "/usr/bin:/bin", **variables}
        ended = ran(sys.executable, "-c", READER, made, ROOT, reads_by_design, env=surroundings)
        return dict(json.loads(ended.stdout))

    return run


def test_what_a_program_asks_for_is_counted_to_the_byte(program):
    recorded = program(
        """
        void *a, *b, *c; char *host = calloc(1, 1000);
        cudaMalloc(&a, 1000); cudaMalloc(&b, 600); cudaMemcpyAsync(a, host, 1000, 1, NULL); cudaMemset(b, 0, 600);
        launch(); cublasSgemm_v2(NULL); launch(); cudaFree(b);
        cudaMalloc(&c, 100); cudaMemcpyAsync(c, a, 100, 3, NULL); cudaStreamSynchronize(NULL); cudaFree(a);
        """
    )
    assert recorded["kernels"] == ["add(float*, int)"] * 2
    assert recorded["library_calls"] == ["cublasSgemm_v2"]
    assert [copy[2:] for copy in recorded["copies"]] == [[1000, "host to device"], [100, "device to device"]]
    assert recorded["fills"] == [600]
    assert recorded["waits"] == {"cudaStreamSynchronize": 1}
    assert recorded["allocations"] == [1000, 600, 100]
    assert (recorded["peak"], recorded["retained"]) == (1600, 100)
    assert "refused" not in recorded


def test_what_was_copied_to_the_device_can_be_read_again(program):
    body = """void *a; int there = 7, back = 0; cudaMalloc(&a, 4);
    cudaMemcpyAsync(a, &there, 4, 1, NULL); cudaMemcpyAsync(&back, a, 4, 2, NULL); return back;"""
    recorded = program(body)
    assert recorded["returned"] == 7
    assert recorded["read_backs"] == []


def test_memory_that_the_card_does_not_have_is_out_of_memory(program):
    body = "void *a, *b; cudaMalloc(&a, 15000000000); return cudaMalloc(&b, 15000000000) * 100 + cudaGetLastError();"
    recorded = program(body)
    assert recorded["returned"] == 202
    assert recorded["allocations"] == [15_000_000_000]
    assert program(body, RECORDER_CARD="hopper")["returned"] == 0


def test_part_of_the_cards_memory_may_be_another_program_s(program):
    body = "void *a; size_t free, all; cudaMemGetInfo(&free, &all); return cudaMalloc(&a, 3000) * 10 + (all - free == 1000);"
    assert program(body, RECORDER_MEMORY="4000", RECORDER_OCCUPIED="1000")["returned"] == 1
    assert program(body, RECORDER_MEMORY="3999", RECORDER_OCCUPIED="1000")["returned"] == 21


@pytest.mark.parametrize(
    ("sizes", "granules"), [((1,), 1), ((1000, 2**20 - 1, 500), 1), ((3 * 2**20, 3 * 2**20), 4), ((20 * 2**20,), 10)]
)
def test_free_memory_falls_by_granules_of_two_mebibytes_and_comes_back(program, sizes, granules):
    take = "".join(f"cudaMalloc(&a[{place}], {size});" for place, size in enumerate(sizes))
    give = "".join(f"cudaFree(a[{place}]);" for place in range(len(sizes)))
    body = f"void *a[9]; size_t all, free[3]; cudaMemGetInfo(free, &all); {take} cudaMemGetInfo(free + 1, &all); {give}"
    body += "cudaMemGetInfo(free + 2, &all); return free[2] == free[0] ? (free[0] - free[1]) / 1024 : -1;"
    assert program(body)["returned"] == granules * 2048


def test_bytes_of_virtual_memory_are_taken_once_and_given_back_when_nothing_uses_them(program):
    """Two pieces of 2 MiB: the first is released and still mapped, the second is unmapped and then released."""
    body = """void *one, *two; char *at; size_t size = 2 << 20; int there = 41, back = 0;
    cuMemAddressReserve(&at, 4 * size); cuMemCreate(&one, size); cuMemCreate(&two, size);
    int errors = cuMemMap(at, size, 0, one) + cuMemMap(at + size, size, 0, two) + cuMemRelease(one);
    errors += cudaMemcpyAsync(at + size + 8, &there, 4, 1, NULL) + cudaMemcpyAsync(&back, at + size + 8, 4, 2, NULL);
    size_t before, after, all; cudaMemGetInfo(&before, &all); errors += cuMemUnmap(at, 2 * size);
    cudaMemGetInfo(&after, &all);
    errors += !cuMemUnmap(at, size) + !cudaMemcpyAsync(at, &there, 4, 1, NULL) + (after - before != size);
    return errors ? -errors : back + cuMemRelease(two) + cuMemAddressFree(at, 4 * size);"""
    recorded = program(body)
    assert (recorded["returned"], recorded["allocations"]) == (41, [2**21, 2**21])
    assert (recorded["peak"], recorded["retained"]) == (2**22, 0)
    assert program("void *a; return cuMemCreate(&a, 15843721217);")["returned"] == 2


@pytest.mark.parametrize(
    ("seen", "count"), [("0", 1), ("0,1", 1), ("32", 0), ("1,0", 0), ("", 0), ("-1", 0), ("GPU-8d0f", 0)]
)
def test_a_process_sees_the_one_device_unless_it_is_told_of_others(program, seen, count):
    """100 is CUDA's cudaErrorNoDevice."""
    body = "int n = 7; int error = cudaGetDeviceCount(&n); return 1000 * cuInit(0) + 10 * error + n;"
    assert program(body, CUDA_VISIBLE_DEVICES=seen)["returned"] == (1 if count else 101_000)
    assert program(body)["returned"] == 1


@pytest.mark.parametrize(("asked", "got"), [(0, 0), (-1, -1), (-5, -5), (-9, -5), (3, 0)])
def test_a_stream_has_the_priority_that_it_was_given_within_the_range(program, asked, got):
    body = f"void *s; int priority; cudaStreamCreateWithPriority(&s, 1, {asked}); cudaStreamGetPriority(s, &priority);"
    assert program(body + "return priority;")["returned"] == got


def test_the_profiler_is_told_that_there_is_nothing_and_finds_no_rubbish(program):
    body = """const char *text = NULL; size_t dropped = 7; int error = cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
    return !error + 10 * cuptiGetResultString(1, &text) + 100 * !text + 1000 * dropped;"""
    recorded = program(body)
    assert recorded["returned"] == 0
    assert "refused" not in recorded


def test_nvml_knows_one_device_of_no_process_that_reaches_no_other_machine(program):
    body = """unsigned devices = 7, processes = 7; void *device;
    int errors = nvmlInit_v2() + nvmlDeviceGetCount_v2(&devices) + nvmlDeviceGetHandleByPciBusId_v2("0000:01:00.0", &device);
    errors += nvmlDeviceGetComputeRunningProcesses(device, &processes, NULL) + nvmlShutdown();
    return errors ? -1 : 100 * devices + 10 * processes + nvmlDeviceGetGpuFabricInfoV(device, NULL);"""
    assert program(body)["returned"] == 103


def test_cudnn_tells_the_version_that_the_wheel_requires(tmp_path):
    asks = "int major, minor, patch; cudnnGetProperty(0, &major); cudnnGetProperty(1, &minor); cudnnGetProperty(2, &patch);"
    says = 'printf("%zu %d %d %d", cudnnGetVersion(), major, minor, patch);'
    for version, said in (((9, 1, 0), "90100 9 1 0"), ((8, 5, 0), "8500 8 5 0")):
        code = f"#include <stdio.h>\n{cudnn_source(version)}\nint main(void) {{ {asks} {says} }}"
        assert ran(compiled(tmp_path / "version", code), code=None).stdout == said


SHARING = """void *a, *b; int there = 41, back = 0, ended = 0; handle_t handle; cudaMalloc(&a, 8);
    cudaMemcpyAsync(a, &there, 4, 1, NULL); if (cudaIpcGetMemHandle(&handle, a)) return -1;"""


def test_memory_of_another_process_is_shared_and_not_taken_twice(program):
    body = (
        SHARING
        + """if (!fork()) {
        size_t free, all, before; cudaMemGetInfo(&before, &all);
        int error = cudaIpcOpenMemHandle(&b, handle, 1); cudaMemGetInfo(&free, &all);
        cudaMemcpyAsync(&back, b, 4, 2, NULL); back++; cudaMemcpyAsync(b, &back, 4, 1, NULL);
        _exit(error || free != before || a == b || !cudaFree(b) || cudaIpcCloseMemHandle(b) || !cudaIpcCloseMemHandle(b)); }
        wait(&ended); cudaMemcpyAsync(&back, a, 4, 2, NULL); cudaFree(a); return ended ? -ended : back;"""
    )
    recorded = program(body, "what the other process wrote decides nothing")
    assert recorded["returned"] == 42
    assert (recorded["allocations"], recorded["peak"], recorded["retained"]) == ([8], 8, 0)


def test_what_is_read_from_shared_memory_is_refused(program):
    recorded = program(SHARING + "cudaMemcpyAsync(&back, a, 4, 2, NULL); return back;")
    assert [copy[2:] for copy in recorded["read_backs"]] == [[4, "device to host"]]
    assert "4 bytes back" in recorded["refused"]


@pytest.mark.parametrize("place", [0, 32])
def test_a_handle_that_leads_to_no_memory_is_refused_by_name(program, place):
    """Spoiled are its mark, and the number of the file that it names, which another process is said to hold."""
    body = f"{SHARING} *(long long *)(handle.bytes + 8) = getppid(); handle.bytes[{place}]++;"
    recorded = program(body + "return cudaIpcOpenMemHandle(&b, handle, 1);")
    assert recorded["returned"] == 801
    assert "cudaIpcOpenMemHandle" in recorded["refused"]


@pytest.mark.parametrize("library", ["cublas", "cublasLt"])
def test_threads_that_create_cublas_handles_at_once_have_handles_of_their_own(program, library):
    """PyTorch keys a workspace by its handle: threads that had one and the same would share a workspace."""
    create = "cublasCreate_v2" if library == "cublas" else "cublasLtCreate"
    body = f"""enum {{ THREADS = 4, EACH = 1000 }};
    static void *handles[THREADS * EACH];
    void *creates(void *first) {{ for (void **one = first; one < (void **)first + EACH; one++) {create}(one); return NULL; }}
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, creates, handles + i * EACH);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    int same = 0;
    for (int i = 0; i < THREADS * EACH; i++)
        for (int j = 0; j <= i; j++) same += !handles[i] || (i != j && handles[i] == handles[j]);
    return same;"""
    assert program(body)["returned"] == 0


TWO_STREAMS = """void *s, *t, *e, *f; cudaStreamCreateWithPriority(&s, 1, 0); cudaStreamCreateWithPriority(&t, 1, -1);
    cudaEventCreateWithFlags(&e, 2); cudaEventCreateWithFlags(&f, 2);"""
AFTER_EACH_OTHER = "cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0); cudaEventRecord(f, t);"


@pytest.mark.parametrize(
    ("body", "query", "sure"),
    [
        ("", "cudaEventQuery(e)", True),
        ("cudaEventRecord(e, s);", "cudaEventQuery(e)", False),
        ("cudaEventRecord(e, s); cudaStreamSynchronize(t);", "cudaEventQuery(e)", False),
        ("cudaEventRecord(e, s); cudaStreamSynchronize(s);", "cudaEventQuery(e)", True),
        ("cudaEventRecord(e, s); cudaDeviceSynchronize();", "cudaEventQuery(e)", True),
        ("cudaEventRecord(e, s); cudaEventRecord(f, s); cudaEventSynchronize(f);", "cudaEventQuery(e)", True),
        ("cudaEventRecord(e, s); cudaEventRecord(f, s); cudaEventSynchronize(e);", "cudaEventQuery(f)", False),
        (f"{AFTER_EACH_OTHER} cudaEventSynchronize(f);", "cudaEventQuery(e)", True),
        (f"{AFTER_EACH_OTHER} cudaEventSynchronize(e);", "cudaEventQuery(f)", False),
        ("", "cudaStreamQuery(s)", True),
        ("launch();", "cudaStreamQuery(NULL)", False),
        ("launch(); cudaStreamSynchronize(NULL);", "cudaStreamQuery(NULL)", True),
    ],
)
def test_a_device_has_finished_what_the_host_waited_for_and_the_rest_as_the_switch_says(program, body, query, sure):
    """600 is CUDA's cudaErrorNotReady. Streams end in order, and one that waits for an event ends after it."""
    for variables, answer in (({}, 0), ({"RECORDER_UNFINISHED": "1"}, 0 if sure else 600)):
        recorded = program(f"{TWO_STREAMS} {body} return {query};", **variables)
        assert (recorded["returned"], sum(recorded["queries"].values())) == (answer, not sure)


def test_a_host_that_does_nothing_but_ask_is_told_in_the_end(program):
    body = "cudaEventRecord(e, s); while (cudaEventQuery(e)); return 7;"
    assert program(TWO_STREAMS + body, RECORDER_UNFINISHED="1")["returned"] == 7


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("cudnnConvolutionForward(NULL);", "cudnnConvolutionForward of CUDA was called"),
        ("float ms = 5; cudaEventElapsedTime(&ms, NULL, NULL); return (int)ms;", "cudaEventElapsedTime was asked for"),
        ("int value; cudaDeviceGetAttribute(&value, 9999, 0);", "cudaDeviceGetAttribute: attribute 9999 was asked for"),
        ('cudaLaunchKernel("no kernel", one, one, NULL, 0, NULL);', "cudaLaunchKernel was asked for"),
    ],
)
def test_what_only_a_gpu_can_answer_is_refused_by_name(program, body, refused):
    assert program(body)["refused"].startswith(refused)


def test_an_entry_that_was_taken_away_is_named(program, tmp_path):
    crippled = library(tmp_path, without=("cudaMemset",))
    recorded = program("void *a; cudaMalloc(&a, 8); cudaMemset(a, 0, 8);", on=crippled)
    assert recorded["fills"] == []
    assert recorded["refused"].startswith("cudaMemset of CUDA was called")


@pytest.mark.parametrize("change", ["launch();", "cudaMemcpyAsync(a, a, 4, 3, NULL);", "cudaMemset(a, 1, 4);"])
def test_a_result_that_is_read_is_refused_unless_it_decides_nothing(program, change):
    """What is counted and not done is not read either."""
    body = f"void *a; int back; cudaMalloc(&a, 4); {change} cudaMemcpyAsync(&back, a, 4, 2, NULL);"
    assert "read 4 bytes back from the device after a kernel" in program(body)["refused"]
    assert "refused" not in program(body, reads_by_design="saved tensors come back")


class OfWordsAndFrame(Exception):
    """As torch._dynamo's BackendCompilerFailed: pickle cannot make it again."""

    def __init__(self, words: str, frame: object) -> None:
        super().__init__(words)


@pytest.mark.parametrize("error", [ValueError("no such kernel"), OfWordsAndFrame("no such kernel", None)])
def test_what_a_release_raises_reaches_the_process_that_asked(error, monkeypatch):
    monkeypatch.setattr(record, "unanswered", lambda: "")
    with pytest.raises(Exception, match="no such kernel") as raised, record.explained():
        raise error
    assert "no such kernel" in str(pickle.loads(pickle.dumps(raised.value)))


def test_a_process_without_the_recorder_is_told_so():
    with pytest.raises(Refused, match="This process does not run on the recorder"), record.recording():
        pass


@pytest.mark.parametrize("line", ["multiProcessorCount = 0", ""])
def test_a_number_that_is_0_or_absent_is_refused(tmp_path, line):
    path = tmp_path / "devices.toml"
    path.write_text(DEVICES.read_text().replace("multiProcessorCount = 40", line))
    with pytest.raises(UserError, match=r"multiProcessorCount of the card 'turing' is (0|not given)\. A release may"):
        cards(path)


@pytest.mark.parametrize(("major", "size"), [(10, 712), (11, 728), (12, 1032), (13, 1008)])
def test_properties_are_as_large_as_cuda_has_them(tmp_path, major, size):
    """Sizes of cudaDeviceProp from the headers that properties.txt names; 10.2's is 11's without four members."""
    code = f'#include "{ROOT}/recorder/recorder.h"\n#include <stdio.h>\n{source(cards(), major)}\n'
    code += 'int main(void) { printf("%zu", sizeof(struct properties)); }'
    assert ran(compiled(tmp_path / "size", code), code=None).stdout == str(size)


def wheel(environment: Path, cuda: str = "'12.8'", nvrtc: bool = True) -> Path:
    """An environment that looks as if it held torch 2.9.0."""
    packages = environment / "lib" / "python3.11" / "site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "version.py").write_text(f"__version__ = '2.9.0'\ncuda: Optional[str] = {cuda}\n")
    if nvrtc:
        (packages / "nvidia" / "cuda_nvrtc" / "lib").mkdir(parents=True)
        (packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12").touch()
    return environment


def test_entries_that_a_library_finds_by_their_names_are_there_as_if_it_imported_them(tmp_path):
    environment = wheel(tmp_path)
    library = next(environment.glob("lib/python*/site-packages/torch")) / "lib" / "libc10_cuda.so"
    library.parent.mkdir()
    program = """#include <dlfcn.h>
    void cudaNoSuchImport(void); void imports(void) { cudaNoSuchImport(); }
    void *counts(void) { return dlsym(0, "nvmlNoSuchEntry"); }
    void *finds(void) { return dlsym(0, "cuNoSuchEntry") ? dlsym(0, "cuMemcpyHtoD_v2") : "not cuAnEntry"; }"""
    compiled(library, program, "-shared")
    built = build(environment)
    assert built.stubs == ["cuNoSuchEntry", "cudaNoSuchImport", "nvmlNoSuchEntry"]
    assert (built.folder / "lib" / "libnvidia-ml.so.1").exists()  # by which 2.14.1 asks for a card's reach
    assert "cuMemcpyHtoD_v2" in built.bodies


def test_a_process_on_the_recorder_inherits_nothing_that_changes_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    built = Built(tmp_path, Wheel(tmp_path, "2.9.0", (12, 8)), [], [])
    assert "PYTORCH_CUDA_ALLOC_CONF" not in built.surroundings()
    assert "PYTORCH_NO_CUDA_MEMORY_CACHING" not in built.surroundings()
    assert built.surroundings("hopper")["RECORDER_CARD"] == "hopper"


INTERSECTION = """
import json, sys
sys.path.insert(0, sys.argv[1])
from recorder.counts import launched, requested
from recorder.record import caching
from workloads import intersection
call = intersection.variants["eager"](intersection.inputs("small", "cuda", 0))
call(), call()
print(json.dumps(launched(call)._asdict() if caching() else requested(call)._asdict()))
"""


@pytest.fixture(scope="module", params=["1.13.1", "2.0.1"])
def built(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Built]:
    """The recorder of a real release, with the environment that was made for it, and goes after its last test."""
    version, folder = request.param, tmp_path_factory.mktemp("env")
    yield build(create(AXIS.find(version), "3.9" if version == "1.13.1" else "3.11", folder / version))
    shutil.rmtree(folder)  # pytest would keep several releases


def run(built: Built, script: str, words: tuple[str, ...] = (), card: str = "", **variables: str) -> str:
    python = built.wheel.packages.parents[2] / "bin" / "python"
    # Unbuffered: else a process that is forked prints what this one held back.
    return ran(python, "-u", "-c", script, ROOT, *words, env=built.surroundings(card) | variables).stdout


PRETENDED = """
#include "recorder.h"
static struct card pretended;
const struct card *card(void) { return &pretended; }
int chosen(int major, int minor, const void *binary) {
    struct code code;
    pretended = (struct card){.major = major, .minor = minor};
    if (!code_for_card(binary, &code)) return -1;
    return 1000 * code.ptx + code.machine;
}
"""


@pytest.mark.parametrize(
    ("capability", "images", "chosen"),
    [
        (89, [(2, 75), (2, 80), (2, 86), (2, 90), (2, 120)], 86_086),
        *((90, [(2, 75), (2, 80), (2, 86), (2, 90), (2, 120)], 90_090), (75, [(2, 37), (2, 60), (2, 70)], 70_070)),
        *((86, [(2, 70), (1, 70)], 70_086), (86, [(1, 70), (1, 75), (1, 90)], 75_086)),
        (75, [(2, 80), (2, 90)], 75),
    ],
)
def test_kernel_has_the_code_that_the_driver_would_take(tmp_path, capability, images, chosen):
    """By CUDA's rules: machine code of the same major capability and no later minor, the newest; else the newest PTX,
    which is compiled for the card; else none, whose PTX is 0."""
    options = ("-shared", f"-I{ROOT / 'recorder'}", str(ROOT / "recorder" / "fatbin.c"))
    library = compiled(tmp_path / "pretended.so", PRETENDED, *options)
    code = ctypes.create_string_buffer(container(*(image(arch, bytes(24), kind) for kind, arch in images)))
    wrapper = ctypes.create_string_buffer(struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(code), 0))
    ask = ctypes.CDLL(str(library)).chosen
    assert ask(*divmod(capability, 10), wrapper) == chosen
    assert ask(*divmod(capability, 10), code) == -1


LAYER_AND_PINNED = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from recorder.record import recording
layer = torch.nn.Linear(100, 100).cuda()
print(torch.cuda.memory_allocated())
with recording() as recorded:
    torch.empty(5 * 2**20 + 4, dtype=torch.uint8, pin_memory=True)
print(*(event.bytes for event in recorded.events if event.kind == "host_allocation"))
"""


@pytest.mark.releases
def test_a_layer_takes_blocks_of_512_bytes_and_pinned_memory_a_power_of_two(built):
    """Both were published: 40,000 and 400 bytes are 79 blocks and one, and 8 MiB is the power above 5 MiB."""
    assert run(built, LAYER_AND_PINNED).split() == ["40960", "8388608"]


@pytest.mark.releases
def test_eager_intersection_takes_its_analytic_bytes(built):
    """Four tensors of [30,000, 500] float32 live at once, in 9 kernels, of which the result stays."""
    whole = 30_000 * 500 * 4
    asked = json.loads(run(built, INTERSECTION, PYTORCH_NO_CUDA_MEMORY_CACHING="1"))
    kernels = asked.pop("kernels")
    assert asked == {"peak": 4 * whole, "retained": whole, "allocations": 9}
    made = json.loads(run(built, INTERSECTION))
    assert made["kernels"] == kernels
    assert len(kernels) == 9
    assert (made["library_calls"], made["copied"], made["waits"]) == ([], {}, 0)
    assert made["peak_allocated"] == 4 * 29 * 2**21


@pytest.mark.releases
def test_the_caching_allocator_gets_and_gives_back_what_its_model_says(built):
    """Around each threshold: split and merged blocks, best fit, an emptied cache, and memory that runs out."""
    programs = caching_allocator.PROGRAMS
    said = run(built, f"PROGRAMS = {programs!r}\n{caching_allocator.SCRIPT}")
    assert dict(map(json.loads, said.splitlines())) == {
        name: caching_allocator.expected(events) for name, events in programs.items()
    }


ASYNCHRONOUS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import torch
from recorder import Refused
from recorder.counts import launched
from recorder.record import recording

def on_a_side_stream():
    side = torch.cuda.Stream()
    for _ in range(8):
        block = torch.empty(20 * 2**20, dtype=torch.uint8, device="cuda")
        with torch.cuda.stream(side):
            torch.cuda._sleep(10**9)
        block.record_stream(side)
        del block

def from_pinned_memory():
    places, to = set(), torch.empty(2**20, device="cuda")
    for _ in range(8):
        pinned = torch.empty(2**20, pin_memory=True)
        to.copy_(pinned, non_blocking=True)
        places.add(pinned.data_ptr())
        del pinned
    return len(places)

torch.cuda.init()
with recording() as recorded:
    on_a_side_stream()
print(recorded.peak // (20 * 2**20), len(recorded.queries) > 0, from_pinned_memory())
try:
    print(launched(from_pinned_memory).copied == {"host to device": [4 * 2**20] * 8})
    launched(on_a_side_stream)
except Refused as refused:
    print(refused)
"""


@pytest.mark.releases
def test_what_is_free_when_the_device_has_finished_is_counted_at_both_ends_or_refused(built):
    """Eight blocks that a busy stream uses, and eight pinned buffers that are copied from: a GPU that is done takes one of
    each, and one that is not takes eight. Copies are the same, and pinned memory is no device's."""
    finished = run(built, ASYNCHRONOUS).splitlines()
    assert finished[:2] == ["1 True 1", "True"]
    assert finished[2].startswith("cudaEventQuery asked whether the device had finished")
    assert run(built, ASYNCHRONOUS, RECORDER_UNFINISHED="1").splitlines()[0] == "8 True 8"


BACKWARD = """
import os, sys
os.environ.update(word.split("=") for word in sys.argv[2:])
import torch
x, w, g = (torch.ones(128, 128, device="cuda", requires_grad=of == "w") for of in "xwg")
y = x @ w
before = torch.cuda.memory_allocated()
y.backward(g)
print(torch.cuda.memory_allocated() - before, flush=True)
os._exit(0)  # 2.14.1 now and then aborts in its own end
"""

BIASED = """
import os, sys, threading, torch
sys.path.insert(0, sys.argv[1])
from recorder.record import recording
x, w, bias = torch.ones(128, 128, device="cuda"), torch.ones(128, 128, device="cuda"), torch.ones(128, device="cuda")
def product():
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    with torch.no_grad(), recording() as recorded:
        torch.addmm(bias, x, w)
    return torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before, *recorded.library_calls
def twice():
    (first, *_), (_, peak, called) = product(), product()
    print(first, peak, called, flush=True)
twice()
thread = threading.Thread(target=lambda: (twice(), os._exit(0)))
thread.start()
thread.join()
"""

BOTH = (2 * 4096 + 8 * 16) * 1024, 4096 * 8 * 1024
LEFT = {
    **{"1.13.1": (0, 0, 2**20), "2.0.1": (*BOTH, 2**20), "2.6.0": (*BOTH, 2**20)},
    **{"2.14.1": (*BOTH, 0), "2.15.0": (0, 0, 2**20)},
}
"""Version -> bytes that are left on turing and on hopper, and those of cublasLt."""


@pytest.mark.releases
@pytest.mark.parametrize("built", LEFT, indirect=True, scope="module")
def test_backward_leaves_a_workspace_of_its_own_from_2_0_to_2_14(built):
    """Autograd's thread has a handle of cuBLAS of its own, and PyTorch keeps a workspace for each handle and stream: of
    :4096:2:16:8 KiB before sm_90 and :4096:8 on it, as CublasHandlePool.cpp has it. 2.15 frees it after each product. On
    real GPUs 8,519,680 bytes were left on 2.0, and none on 1.13 (pytorch #95668).

    cublasLt's is made for each call, of 1 MiB as #73328 has it. 2.14 has it work in that of the thread's handle. A process
    that sets CUBLAS_WORKSPACE_CONFIG has the sum that it names, and the default's where it cannot be read.
    """
    (turing, hopper, by_lt), gradient = LEFT[built.wheel.version.partition("+")[0]], 128 * 128 * 4
    left = {card: int(run(built, BACKWARD, card=card)) for card in ("turing", "hopper")}
    set_to = {"": hopper, "-1": hopper, ":128:8:64:16:32:32": (128 * 8 + 64 * 16 + 32 * 32) * 1024 if hopper else 0}
    words = {value: (f"CUBLAS_WORKSPACE_CONFIG={value}",) for value in set_to}
    asked = {value: int(run(built, BACKWARD, words=of, card="hopper")) - gradient for value, of in words.items()}
    biased = run(built, BIASED).splitlines()
    assert left == {"turing": gradient + turing, "hopper": gradient + hopper}
    assert asked == set_to
    assert biased == [f"{turing} {gradient + by_lt} cublasLtMatmul"] * 2


EXPANDABLE = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:" + sys.argv[2]
import torch
from recorder.record import _library, recording
with recording() as recorded:
    held = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in json.loads(sys.argv[3])]
    stats = torch.cuda.memory_stats()
    print(stats["requested_bytes.all.current"], stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"])
    del held[1:]
    torch.cuda.empty_cache()
    print(torch.cuda.memory_reserved(), _library().recorder_bytes())
recorded.sound()
print(recorded.peak)
"""


@pytest.mark.releases
@pytest.mark.parametrize("built", ["2.6.0", "2.14.1"], indirect=True, scope="module")
def test_expandable_segments_grow_by_20_mebibytes_and_give_back_what_is_free(built):
    """As PyTorch's documentation has them, blocks lie one after the other in one segment that is mapped piece by piece.
    Otherwise the model of the caching allocator says it."""
    mebibyte, model = 2**20, caching_allocator.Allocator()
    sizes = [15 * mebibyte, 33 * mebibyte, 11 * mebibyte, 15 * mebibyte, 27 * mebibyte - 512]
    asked, blocks = sum(sizes), [model.take(size) for size in sizes]
    lines = {switch: run(built, EXPANDABLE, words=(switch, str(sizes))).split() for switch in ("True", "False")}
    pieces, piece = -(-asked // (20 * mebibyte)) * 20 * mebibyte, 20 * mebibyte
    assert [int(number) for number in lines["True"]] == [asked, asked, pieces, piece, piece, pieces]
    assert blocks[0]
    first, whole = blocks[0].size, model.reserved
    assert [int(number) for number in lines["False"]] == [asked, model.allocated, whole, first, first, whole]


CASE = """
import json, os, sys, types
sys.path.insert(0, sys.argv[1])
os.environ["TORCH_HISTORY_DEVICE"] = "recorder"
import torch
from measure import counted, device, shared
from recorder import Refused
from workloads import intersection, saved_tensors, selection
device.ready(device.name())
print(json.dumps(counted.counts(saved_tensors, "save_on_cpu", "product small", 0)))
print(json.dumps([counted.counts(intersection, "scripted", "small", 0) for _ in range(2)]))
print(json.dumps(counted.counts(selection, "mask", "vector 50 % x 1", 0)))
reads = types.SimpleNamespace(
    METRICS=("peak_memory",),
    inputs=lambda size, device, seed: torch.ones(1, device=device),
    variants={"reads": lambda x: lambda: x * x.item()},
)
print(json.dumps([shared.counts(saved_tensors, "subprocess", "chain", 0) for _ in range(2)]))
try:
    counted.counts(reads, "reads", "", 0)
except Refused as refused:
    print(refused)
"""


@pytest.mark.releases
def test_a_case_of_the_suite_is_counted_alike_in_every_process_or_refused(built):
    saved, scripted, mask, other, refused = run(built, CASE).splitlines()
    square = 2_000 * 2_000 * 4
    found = json.loads(saved)
    assert found["copied"] == {"device to host": [square] * 2, "host to device": [square] * 2}
    assert (found["host_syncs"], found["gradients"]) == (4, 1)
    assert found["form"] == ["float32 []", "float32 [2000, 2000]", "float32 [2000, 2000]"]
    once, again = json.loads(scripted)
    assert once == again
    assert (once["peak_memory"], once["kernels"], once["fusion_groups"]) == (60_000_000, 1, 1)
    assert json.loads(mask) == {"host_syncs": 1}
    once, again = json.loads(other)
    assert once == again
    names = ("peak_memory", "retained", "allocations", "kernels", "peak_allocated")
    assert ([once[name] for name in names], once["form"]) == ([0] * 5, ["float32 []"])
    assert refused.startswith("The host read 4 bytes back")


def test_a_folder_of_someone_elses_is_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="did not make"):
        create(AXIS.find("2.15.0"), "3.11", tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
