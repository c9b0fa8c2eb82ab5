"""Do products and convolutions give what loops give in each dtype, is another result refused, and is who answers named?"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from .processes import ROOT, ran
from .torch_here import torch

# isort: split

from measure import libraries
from workloads import Unavailable, WrongResult, dtypes, products

SMALL: dict[str, Any] = {
    "square": {"left": (5, 7), "right": (7, 3)},
    "transposed": {"left": (7, 5), "right": (3, 7), "transposed": True},
    "tall": {"left": (19, 2), "right": (2, 3)},
    "batched": {"left": (4, 2, 3), "right": (4, 3, 2)},
    **{
        f"convolution stride {stride}": {"left": (2, 3, 7, 10), "right": (4, 3, 3, 3), "stride": stride}
        for stride in (1, 2, 3)
    },
}


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    assert SMALL.keys() == products.sizes.keys()
    monkeypatch.setattr(products, "sizes", SMALL)


def built(variant: str, size: str) -> tuple[Any, Any]:
    arguments = products.inputs(size, "cpu", 5)
    try:
        return arguments, products.variants[variant](arguments)()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("variant", products.variants)
def test_result_is_that_of_numpy(variant, size):
    products.check(*built(variant, size))


def one_changed(values: Any) -> Any:
    values[..., -1, -1] += int(values.abs().max()) // 5 + 1
    return values


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (one_changed, "off by"),
        (lambda values: -values, "off by 2 of the largest"),
        (lambda values: values * (1 if values.dtype == torch.int32 else float("nan")) + 1, "off by"),
        (lambda values: values.double(), "the result is torch.float64"),
        (lambda values: values[..., 1:], r"not torch\.\w+ \(5, 3\)"),
    ],
)
@pytest.mark.parametrize("variant", products.variants)
def test_wrong_result_is_refused_in_a_sentence(variant, wrong, sentence):
    arguments, result = built(variant, "square")
    with pytest.raises(WrongResult, match=sentence):
        products.check(arguments, result._replace(values=wrong(result.values.clone())))


@pytest.mark.parametrize("size", ["batched", "convolution stride 1"])
def test_int8_says_what_it_cannot_do(size):
    with pytest.raises(Unavailable, match=r"batches|quantised"):
        products.variants["int8"](products.inputs(size, "cpu", 5))


@pytest.mark.parametrize(
    ("said", "error", "sentence"),
    [
        ("\"mm\" not implemented for 'Half'\nsomewhere", Unavailable, 'cannot compute this in float16 here: "mm" not'),
        ("mat1 and mat2 shapes cannot be multiplied", RuntimeError, "mat1 and mat2"),
    ],
)
def test_a_dtype_that_a_release_lacks_is_unavailable_and_any_other_failure_stays_one(said, error, sentence):
    def call() -> None:
        raise RuntimeError(said)

    with pytest.raises(error, match=sentence):
        dtypes.tried(call, torch.float16)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "dnnl_verbose,exec,cpu,reorder,jit:uni,undef,src_f32\n"
            "dnnl_verbose,exec,cpu,convolution,jit:avx512_core,forward_training,src_f32,1.5\n",
            "oneDNN convolution jit:avx512_core",
        ),
        ("onednn_verbose,12.5,primitive,exec,cpu,matmul,brg:avx512_core_amx,undef\n" * 2,
         "oneDNN matmul brg:avx512_core_amx"),
        ("onednn_verbose,v1,primitive,create:cache_miss,cpu,matmul,gemm:jit,u\n"
         "onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,s\n", "oneDNN matmul ref:any"),
        ("onednn_verbose,primitive,exec,cpu,gemm_api,,undef,src_s8,,,4096x64:64x64,0.9\n", "oneDNN gemm_api"),
        ("MKL_VERBOSE oneMKL 2024.0\nMKL_VERBOSE SGEMM(N,N,256) 1ms\n", "MKL SGEMM (AVX2)"),
        ("something else\n", "neither oneDNN nor MKL"),
    ],
)  # fmt: skip
def test_who_answers_is_named_by_what_each_version_prints(text, name):
    assert libraries.named(text, " (AVX2)") == name


ASK = """
import json, measure, torch
from measure import libraries
case = lambda: torch.nn.functional.conv2d(torch.ones(2, 32, 28, 28), torch.ones(64, 32, 3, 3))
wrong = lambda: torch.ones(2) @ torch.ones(3)
said = libraries.answered([("convolution", lambda: case), ("wrong", lambda: wrong), ("sum", lambda: torch.ones(2).sum)])
print(json.dumps(said))
"""


@pytest.mark.skipif(" avx" not in Path("/proc/cpuinfo").read_text(), reason="needs a processor with AVX to hold back")
def test_less_of_the_processor_is_seen_in_the_name_of_what_answers():
    """The same convolution, and then with oneDNN held to SSE4.1: the planted fall-back is named."""
    held = {"ONEDNN_MAX_CPU_ISA": "SSE41", "DNNL_MAX_CPU_ISA": "SSE41"}
    free, planted = (
        json.loads(ran(sys.executable, "-c", ASK, cwd=ROOT, env={**os.environ, **more}).stdout) for more in ({}, held)
    )
    assert free.keys() == planted.keys() == {"convolution", "sum"}
    assert free["sum"] == planted["sum"] == libraries.NEITHER
    assert "sse41" in planted["convolution"]
    assert free["convolution"].startswith("oneDNN convolution ")
    assert "sse41" not in free["convolution"]
