"""Is each turning point one? The release before it and the release itself are asked, or what is known of their wheels.
What a release said stays so: `python -m tests.test_turning_points` asks all again, a test only what was never asked."""

import functools
import json
import tomllib

import pytest

from torch_history.releases.environments import prune
from torch_history.releases.wheels import FILE, load

from .lab import AXIS
from .processes import ROOT, ran
from .test_releases import install

FOUND = tomllib.loads((ROOT / "contract" / "turning_points.toml").read_text(encoding="utf-8"))["point"]
POINTS = {point["name"]: point for point in FOUND}

RUN = {
    "tf32": ("print(torch.backends.cuda.matmul.allow_tf32)", "True", "False"),
    "floor_divide": ("print(torch.floor_divide(torch.tensor(-3.0), 2).item())", "-1.0", "-2.0"),
    "rms_norm": (
        "print(torch._C._dispatch_has_kernel_for_dispatch_key('aten::rms_norm', 'AutocastCUDA'))",
        "False",
        "True",
    ),
    "zero_grad": (
        "layer = torch.nn.Linear(1, 1); layer(torch.ones(1)).sum().backward()\n"
        "torch.optim.SGD(layer.parameters(), lr=1.0).zero_grad(); print(layer.weight.grad)",
        "tensor([[0.]])",
        "None",
    ),
    "weights_only": (
        "import io\nclass Own: pass\nfile = io.BytesIO(); torch.save(Own(), file); file.seek(0)\n"
        "try: print(type(torch.load(file)).__name__)\nexcept Exception as error: print(type(error).__name__)",
        "Own",
        "UnpicklingError",
    ),
    "torchscript_warns": (
        "import warnings\nwith warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always'); torch.jit.script(torch.nn.Identity())\n"
        "print(sorted({each.category.__name__ for each in said if 'torch.jit.script`' in str(each.message)}))",
        "[]",
        "['DeprecationWarning']",
    ),
}
"""Turning point -> what a person's code does, and what it prints on the release before and on the release."""

WHEELS = {
    "cxx11_abi": (lambda wheel: wheel.cxx11_abi, False, True),
    "no_pascal": (lambda wheel: {"sm_50", "sm_60"} & {*wheel.architectures}, {"sm_50", "sm_60"}, set()),
    "no_volta": (lambda wheel: "sm_70" in wheel.architectures, True, False),
}
"""Turning point -> what is looked for in a wheel, and what is found in that of the release before and of the release."""


def around(name):
    """The tags of the release before a turning point, and of the release."""
    at = AXIS.position(f"v{POINTS[name]['release']}")
    return AXIS.releases[at - 1].tag, AXIS.releases[at].tag


def test_each_is_shown_or_says_why_it_cannot_be():
    not_shown = {name for name, point in POINTS.items() if point.get("not_shown")}
    assert sorted([*RUN, *WHEELS, *not_shown]) == sorted(POINTS)


@pytest.mark.parametrize("name", WHEELS)
def test_wheels_differ_as_a_turning_point_says(name):
    look, *expected = WHEELS[name]
    wheels = load(ROOT / FILE)
    assert [look(wheels[tag]) for tag in around(name)] == expected


SAID = ROOT / "tests" / "turning_points.json"
KNOWN = json.loads(SAID.read_text(encoding="utf-8"))  # what releases said: tag -> code -> its output


@functools.cache
def said(tag):
    """What a release says to each turning point that it is on either side of. It goes where it was not there before."""
    asked = {name: f"import torch\n{code}" for name, (code, *_) in RUN.items() if tag in around(name)}
    if {*asked.values()} <= KNOWN.get(tag, {}).keys():
        return {name: KNOWN[tag][code] for name, code in asked.items()}
    release = AXIS.find(tag)
    lane = "3.11" if "3.11" in release.pythons else "3.9"
    folder = ROOT / "env" / f"{tag}-py{lane}"
    there = folder.exists()
    install(tag, lane)
    if not folder.exists():
        pytest.skip(f"{tag} needs Python {lane}, which is neither here nor could it be downloaded")
    answers = {name: ran(folder / "bin" / "python", "-c", code).stdout.strip() for name, code in asked.items()}
    if not there:
        prune(ROOT / "env", tag.__eq__, lane)
    return answers


@pytest.mark.releases
@pytest.mark.parametrize("name", RUN)
def test_both_releases_say_what_a_turning_point_says(name):
    assert [said(tag)[name] for tag in around(name)] == list(RUN[name][1:])


if __name__ == "__main__":
    KNOWN.clear()
    for tag in sorted({tag for name in RUN for tag in around(name)}, key=AXIS.position):
        KNOWN[tag] = {f"import torch\n{RUN[name][0]}": answer for name, answer in said(tag).items()}
    SAID.write_text(json.dumps(KNOWN, indent=1) + "\n", encoding="utf-8")
