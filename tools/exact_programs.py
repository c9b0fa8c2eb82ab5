"""Small programs whose bytes can be worked out by hand, run inside a release on the recorder; see tools/exact.py.

Each is a function of torch. It runs in a process of its own, which had not touched CUDA before. Python 3.9, torch 1.8.
"""

from __future__ import annotations

import json
import os
import sys

import torch

MIB = 2**20


def bytes_on_gpu(count):
    return torch.empty(count, dtype=torch.uint8, device="cuda")


def square(side=1000):
    return torch.empty(side, side, device="cuda")


def three_small():
    return [torch.empty(1, device="cuda") for _ in range(3)]


def small_at_its_limit():
    return bytes_on_gpu(MIB)


def large_from_its_limit():
    return bytes_on_gpu(MIB + 1)


def below_ten_mebibytes():
    return bytes_on_gpu(10 * MIB - 512)


def ten_mebibytes():
    return bytes_on_gpu(10 * MIB)


def rest_that_is_split():
    return bytes_on_gpu(10 * MIB + 1)


def rest_that_is_not_split():
    return bytes_on_gpu(11 * MIB + 512)


def block_is_split_and_filled():
    held = bytes_on_gpu(20 * MIB)
    del held
    first = bytes_on_gpu(12 * MIB)
    return first, bytes_on_gpu(8 * MIB)


def larger_than_what_was_cached():
    held = bytes_on_gpu(20 * MIB)
    del held
    return bytes_on_gpu(21 * MIB)


def charged_for_a_whole_block():
    held = bytes_on_gpu(20 * MIB)
    del held
    return bytes_on_gpu(19 * MIB + 1)


def best_fit():
    held = [bytes_on_gpu(size * MIB) for size in (30, 40, 50)]
    held.clear()
    return [bytes_on_gpu(size * MIB) for size in (35, 35, 28, 10)]


def neighbours_are_merged():
    parts = [bytes_on_gpu(5 * MIB) for _ in range(4)]
    del parts[1]
    del parts[1]
    return parts, bytes_on_gpu(10 * MIB - 512)


def emptied_cache():
    held = bytes_on_gpu(30 * MIB)
    del held
    torch.cuda.empty_cache()
    part = bytes_on_gpu(5 * MIB)
    torch.cuda.empty_cache()
    return part


def more_than_the_card_has():
    held = bytes_on_gpu(6 * 10**9)
    kept = bytes_on_gpu(5 * 10**9)
    del held
    try:
        bytes_on_gpu(12 * 10**9)
    except RuntimeError:
        return kept, bytes_on_gpu(10**9)
    raise AssertionError("memory that the card does not have was allocated")


def cache_is_given_back_before_memory_runs_out():
    held = bytes_on_gpu(10**10)
    del held
    return bytes_on_gpu(11 * 10**9)


def from_the_host():
    return torch.zeros(1000, 1000).cuda()


def chain():
    a = square()
    return a, ((a * 2) + 1).relu()


def in_place():
    return square().add_(1).mul_(2).relu_()


def views():
    a = square()
    return a, a.t(), a[10:], a.view(-1), a.unsqueeze(0).expand(9, 1000, 1000)


def casts():
    a = square()
    return a, a.half(), a.double(), a.to(torch.bool)


def comparison():
    a, b = square(), square()
    return a, b, torch.where(a > b, a, b)


def concatenation():
    a, b = torch.empty(300, 1000, device="cuda"), torch.empty(500, 1000, device="cuda")
    return a, b, torch.cat([a, b]), torch.stack([a, a])


def indexing():
    a, index = square(), torch.zeros(500, dtype=torch.int64, device="cuda")
    return a, index, a[index], a.index_select(0, index), torch.nn.functional.embedding(index, a)


def softmax():
    a = square()
    return a, a.softmax(1), a.log_softmax(1)


def layer_norm():
    a = square()
    return a, torch.nn.functional.layer_norm(a, (1000,))


def sum_of_rows():
    a = square()
    return a, a.sum(1)


def dropout():
    a = square().requires_grad_()
    return a, torch.nn.functional.dropout(a, 0.5, True)


def gelu_forward_and_backward():
    a, g = square().requires_grad_(), square()
    torch.nn.functional.gelu(a).backward(g)
    return a, g


def product():
    a, b = square(512), square(512)
    return a, b, a @ b


def products_one_after_the_other():
    a = square()
    for _ in range(3):
        b = a @ a
    return a, b


def linear_training_step():
    w, x, g = square().requires_grad_(), torch.empty(128, 1000, device="cuda"), torch.empty(128, 1000, device="cuda")
    for _ in range(2):
        torch.nn.functional.linear(x, w).backward(g)
        with torch.no_grad():
            w.sub_(w.grad)
        w.grad = None
    return w, x, g


def batch_of_products():
    a, b = torch.empty(8, 300, 200, device="cuda"), torch.empty(8, 200, 300, device="cuda")
    return a, b, torch.bmm(a, b)


def sgd_with_momentum():
    w = square().requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        w.grad = square()
        optimizer.step()
        w.grad = None
    return w, optimizer


PROGRAMS = (
    three_small, small_at_its_limit, large_from_its_limit, below_ten_mebibytes, ten_mebibytes, rest_that_is_split,
    rest_that_is_not_split, block_is_split_and_filled, larger_than_what_was_cached, charged_for_a_whole_block, best_fit,
    neighbours_are_merged, emptied_cache, more_than_the_card_has, cache_is_given_back_before_memory_runs_out,
    from_the_host, chain, in_place, views, casts, comparison, concatenation, indexing, softmax, layer_norm, sum_of_rows,
    dropout, gelu_forward_and_backward, product, products_one_after_the_other, linear_training_step, batch_of_products,
    sgd_with_momentum,
)  # fmt: skip


def told(program):
    """What the allocator and the recorder say of one program: bytes."""
    from recorder import Refused
    from recorder.record import recording

    with recording() as recorded:
        result = program()
    answer = {
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "peak_malloc": recorded.peak,
        "malloc": recorded.retained,
    }
    del result
    try:
        recorded.sound()
    except Refused as refused:
        answer["refused"] = str(refused)
    return answer


def in_process(program):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            try:
                answer = told(program)
            except Exception as error:
                answer = {"failed": f"{type(error).__name__}: {error}"}
            os.write(writer, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": "its process ended without a word"}


if __name__ == "__main__":
    wanted = sys.argv[1:]
    print(json.dumps({p.__name__: in_process(p) for p in PROGRAMS if not wanted or p.__name__ in wanted}))
