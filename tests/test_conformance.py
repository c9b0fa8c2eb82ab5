"""Is what becomes of PyTorch's own tests on the recorder told as it is?"""

import json
from pathlib import Path

import pytest

from research import conformance
from research.conformance import asked, judged, page

from .test_recorder import built

__all__ = ["built"]

FAILED = {"outcome": "failed", "why": "", "said": "AssertionError: 1 != 2", "unanswered": "", "read_backs": 0}


def test_what_no_longer_holds_is_not_judged_where_it_fails_in_just_that():
    line = "self.assertTrue(abs(check_workspace_size(a) - {}) < 524288)".format
    default, valid = line("size"), line("(3072 * 1024)")
    for why, later, kind in ((valid, True, "unjudged"), (valid, False, "wrong"), (default, True, "wrong")):
        failed = {**FAILED, "why": why}
        assert judged("test_cublas_workspace_explicit_allocation", failed, None, later).kind == kind
        assert judged("test_this", failed, None, later).kind == "wrong"
    lacking = {**FAILED, "outcome": "raised", "said": "ImportError: no torchvision"}
    assert judged("test_this", lacking, None).kind == "unjudged"


def test_the_page_is_what_was_asked_and_no_test_is_wrong_without_a_word():
    known = json.loads(conformance.KEPT.read_text(encoding="utf-8"))
    assert conformance.PAGE.read_text(encoding="utf-8") == page(known)
    assert {"1.13.1 turing", "2.6.0 turing", "2.6.0 hopper", "2.14.1 hopper"} <= set(known)
    assert not {kind for of in known.values() for _, kind, _ in of["tests"]} & {"wrong", "unlogged"}


PLANTED = {
    "test_right": ("self.assertEqual(torch.cuda.memory_allocated(), 512, self.kept)", "passes"),
    "test_values": ("self.assertEqual(float(torch.ones(2, device='cuda').sum()), 2)", "values"),
    "test_tensors": ("self.assertEqual(torch.ones(2, device='cuda')+1, torch.full((2,), 2., device='cuda'))", "passes"),
    "test_truth": ("self.assertTrue((torch.ones(2, device='cuda') == 1).all())", "passes"),
    "test_shapes": ("self.assertEqual(torch.ones(2, device='cuda'), torch.ones(3, device='cuda'))", "wrong"),
    "test_wrong": ("self.assertEqual(torch.cuda.memory_allocated(), 513)", "wrong"),
    "test_error": ("raise OSError", "unlogged"),
    "test_cudnn": ("torch.conv2d(*(torch.ones(1, 1, size, size, device='cuda') for size in (9, 3)))", "refused"),
    "test_query": ("event = torch.cuda.Event(); event.record(); self.assertFalse(event.query())", "refused"),
    "test_ended": ("os._exit(3)", "unlogged"),
    "test_skipped": ("self.skipTest('no')", "skipped"),
}
"""Test -> what it does, and the kind of its end."""


@pytest.mark.releases
def test_every_kind_of_end_is_told_from_the_others(built, tmp_path, monkeypatch):
    lines = ["import os, torch\nfrom torch.testing._internal.common_utils import TestCase\nclass Planted(TestCase):"]
    for name, (body, _) in PLANTED.items():
        lines += [f"    def {name}(self):", "        self.kept = torch.ones(1, device='cuda')", f"        {body}"]
    (tmp_path / "test_cuda.py").write_text("\n".join(lines))
    monkeypatch.setattr(conformance, "TESTS", {"test_cuda*.py": tuple(PLANTED)})
    told = {each.test: each.kind for each in asked(built, "turing", tmp_path, Path(tmp_path, "packages"))}
    assert told == {name: kind for name, (_, kind) in PLANTED.items()}
