"""Which torch do files of requirements ask for, and what does a move from there bring? Forms and facts."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.utils import canonicalize_name
from packaging.version import Version

from contract.architectures import runs
from torch_history.cli import main
from torch_history.releases import moving
from torch_history.releases.requirement_files import read
from torch_history.system.errors import UserError

from .lab import AXIS
from .processes import ROOT, program, ran

FORMS = {
    "pinned.txt": ("torch==2.3.1\nnumpy\n", ["2.3.1"]),
    "hashes.txt": ("torch==2.3.1+cu121 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n", ["2.3.1"]),
    "range.in": (
        "torch>=2.1,<2.3  # as the model wants\nnumpy<2; python_version < '3.0'\n",
        ["2.1.0", "2.1.1", "2.1.2", "2.2.0"],
    ),
    "address.txt": (
        "-i https://example.org/simple\ntorch @ https://example.org/whl/torch-2.4.1%2Bcu121-cp311-cp311-linux_x86_64.whl\n",
        ["2.4.1"],
    ),
    "windows.txt": ("torch==1.9.0; sys_platform == 'win32'\ntorch==2.0.1; sys_platform == 'linux'\n", ["2.0.1"]),
    "pyproject.toml": (
        '[project]\nname = "a"\nrequires-python = ">=3.9"\ndependencies = ["torch~=2.2.0"]\n',
        ["2.2.0", "2.2.1"],
    ),
    "groups.toml": ('[project]\nname = "a"\n[project.optional-dependencies]\ngpu = ["torch[opt]==2.5.1"]\n', ["2.5.1"]),
    "poetry.toml": (
        '[tool.poetry.dependencies]\npython = {version = "^3.10"}\ntorch = {version = "2.1.*", source = "x"}\n',
        ["2.1.0", "2.1.1", "2.1.2"],
    ),
    "uv.lock": ('version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "torch"\nversion = "2.7.1"\n', ["2.7.1"]),
    "pylock.toml": ('lock-version = "1.0"\n[[packages]]\nname = "torch"\nversion = "2.8.0"\n', ["2.8.0"]),
    "Pipfile.lock": (json.dumps({"default": {"torch": {"version": "==1.13.1"}}, "develop": {}}), ["1.13.1"]),
    "environment.yml": (
        "name: a\nchannels: [pytorch]\ndependencies:\n- python=3.10\n- pytorch::pytorch=2.1.2=py3.10_cuda12.1_0\n- pip\n",
        ["2.1.2"],
    ),
    "with_pip.yaml": ("dependencies:\n- python\n- pip:\n  - --pre\n  - torch==2.9.0 --hash=sha256:00\n", ["2.9.0"]),
    "vision.txt": ("torchvision==0.20.1\n", []),
    "wildcard.yml": ("dependencies:\n- pytorch 2.3.*\n", ["2.3.0", "2.3.1"]),
    "build.yml": ("dependencies:\n- pytorch 2.3.1 cpu_*\n- blas=*=mkl\n", ["2.3.1"]),
    "bracket.yml": (
        "dependencies:\n- pytorch[version='>=2.1,<2.3',build=*cuda*]\n",
        ["2.1.0", "2.1.1", "2.1.2", "2.2.0"],
    ),
    "exported.yml": ("dependencies:\n- jpeg=9e=h5eee18b_1\n- tzdata=2024a=0\n- pytorch==2.3.1=py3.11_0\n", ["2.3.1"]),
    "bare.txt": ("https://example.org/torch-2.4.1%2Bcu121-cp311-cp311-linux_x86_64.whl\n./other\n", ["2.4.1"]),
    "near.txt": ("./wheels/torch-2.4.1-cp311-cp311-linux_x86_64.whl\n", ["2.4.1"]),
    "tag.txt": ("torch @ git+https://github.com/pytorch/pytorch@v2.3.1\n", ["2.3.1"]),
    "address.toml": ('[tool.poetry.dependencies]\ntorch = {url = "https://a.b/torch-2.3.1-cp311.whl"}\n', ["2.3.1"]),
    "chosen.txt": ("torch==2.3.1; 'gpu' == extra\n", ["2.3.1"]),
    "elsewhere.txt": ("torch==2.3.1\ntorch @ git+https://a.b/c@main ; sys_platform == 'darwin'\n", ["2.3.1"]),
    "tag.toml": ('[tool.poetry.dependencies]\ntorch = {git = "https://a.b/c.git", tag = "v2.3.1"}\n', ["2.3.1"]),
    "path.toml": ('[tool.poetry.dependencies]\ntorch = {path = "../torch-2.3.1-cp311.whl"}\n', ["2.3.1"]),
    "dev.toml": ('[tool.poetry.dev-dependencies]\npython = "^3.9"\ntorch = "2.3.1"\n', ["2.3.1"]),
    "both.toml": (
        '[tool.poetry.dependencies]\ntorch = "2.3.1"\n[tool.poetry.group.dev.dependencies]\ntorch = "*"\n',
        ["2.3.1"],
    ),
    "marked.txt": ("\ufefftorch==2.3.1\r\n", ["2.3.1"]),
}

MAC, REST = "sys_platform == 'darwin' and platform_machine == 'x86_64'", "sys_platform != 'darwin' or extra == 'gpu'"
FORKS = {
    "uv.lock": ("package", f'resolution-markers = ["{MAC}"]', f'resolution-markers = ["{MAC}", "{REST}"]'),
    "python.lock": ("package", "resolution-markers = [\"python_full_version < '3.11'\"]", ""),
    "poetry.lock": ("package", f'markers = "{MAC}"', f'groups = ["main", "dev"]\nmarkers = {{main = "{MAC}"}}'),
    "pylock.toml": ("packages", f'marker = "{MAC}"', f"marker = \"'gpu' in extras and ({REST})\""),
    "poetry.toml": (
        "tool.poetry.dependencies.torch",
        'platform = "darwin"',
        f'python = "<3.9 || ~3.11"\nmarkers = "{REST}"',
    ),
}
LOCK = '[[{0}]]\nname = "torch"\nversion = "2.2.2"\n{1}\n[[{0}]]\nname = "torch"\nversion = "2.5.1"\n{2}\n'
FORMS |= {f"forks_{name}": (LOCK.format(*of), ["2.5.1"]) for name, of in FORKS.items()}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_of_requirements_asks_for_the_torch_that_it_names(tmp_path, name):
    text, versions = FORMS[name]
    (tmp_path / name).write_text(text)
    wanted = read(tmp_path / name, "3.11").packages.get("torch")
    known = [each.version for each in AXIS.releases]
    assert [each for each in known if wanted is not None and wanted.contains(each)][: len(versions)] == versions
    assert (wanted is None) == (not versions)


def test_a_file_includes_others_and_names_them_where_they_are_gone(tmp_path):
    (tmp_path / "base.txt").write_text("torch==2.3.1\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("-r base.txt\n")
    (tmp_path / "all.txt").write_text('-r "base.txt"\n')
    assert str(read(tmp_path / "all.txt", "3.11").packages["torch"]) == "==2.3.1"
    (tmp_path / "more.txt").unlink()
    with pytest.raises(UserError, match=r"more\.txt cannot be read: No such file"):
        read(tmp_path / "all.txt", "3.11")
    (tmp_path / "more.txt").write_bytes("torchvision==0.18.1 \\\r\n --hash=sha256:00\r\n".encode("utf-16"))
    (tmp_path / "environment.yml").write_text("dependencies:\n- pip:\n  - -r more.txt\n")
    assert str(read(tmp_path / "environment.yml", "3.11").packages["torchvision"]) == "==0.18.1"


@pytest.mark.parametrize(
    ("name", "text", "able", "unable"),
    [
        (
            "poetry.lock",
            '[[package]]\nname = "torch"\nversion = "2.3.1"\n[metadata]\npython-versions = "^3.9,<3.11"',
            10,
            11,
        ),
        ("poetry.lock", "package = []\n[metadata]\npython-versions = '>=3.8 <3.11'", 10, 11),
        ("Pipfile.lock", json.dumps({"_meta": {"requires": {"python_version": "3.10"}}}), 10, 11),
        ("Pipfile.lock", json.dumps({"_meta": {"requires": {"python_version": ">=3.10"}}}), 10, 9),
        ("Pipfile.lock", json.dumps({"_meta": {"requires": {"python_full_version": "3.10.2"}}}), 10, 11),
        ("python.toml", "[tool.poetry.dependencies]\npython = '^3.9 || ^4.2'", 11, 7),
    ],
)
def test_a_file_says_for_which_python_it_is(tmp_path, name, text, able, unable):
    (tmp_path / name).write_text(text)
    pythons = read(tmp_path / name, "3.11").python
    assert pythons.contains(f"3.{able}.2")
    assert pythons.contains(f"3.{unable}.2") == ("||" in text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "torch = ["),
        ("a.yml", "- a: ["),
        ("uv.lock", "[[package]]\nname = 1\nversion = 2\n"),
        ("a.txt", "torch=2.3"),
        ("b.txt", "torch @ git+https://github.com/pytorch/pytorch@main"),
        ("b.toml", '[tool.poetry.dependencies]\ntorch = {git = "https://a.b/c.git", branch = "main"}\n'),
        ("Pipfile.lock", "[]"),
        ("b.yml", "dependencies: 3"),
        ("c.yml", "name: a"),
        ("c.lock", f'[[package]]\nname = "torch"\nversion = "1"\nmarkers = "{"(" * 9999}"'),
    ],
)
def test_what_is_no_file_of_requirements_is_refused_in_a_sentence(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=f"{name} cannot be read as its name says"):
        read(tmp_path / name, "3.11")


@pytest.mark.parametrize(
    ("gpu", "capability"),
    [
        ("RTX 2080", "7.5"), ("NVIDIA GeForce RTX 4090", "8.9"), ("Tesla V100-SXM2-16GB", "7.0"), ("GTX 1080 Ti", "6.1"),
        ("NVIDIA H100 80GB HBM3", "9.0"), ("Tesla T4", "7.5"), ("A100", "8.0"), ("L40S", "8.9"), ("A10", "8.6"),
        ("sm_86", "8.6"), ("12.0", "12.0"),
    ],
)  # fmt: skip
def test_a_gpu_is_known_by_its_name(gpu, capability):
    assert moving.capability_of(gpu) == capability


@pytest.mark.parametrize(
    ("capability", "archs", "answer"),
    [
        *(("sm_90", "sm_80 sm_86", False), ("sm_90", "sm_80 compute_80", True), ("sm_86", "sm_80", True)),
        *(("sm_80", "sm_86", False), ("sm_75", "sm_80", False), ("sm_75", "compute_80", False)),
        *(("sm_75", "sm_70", True), ("sm_90", "sm_90a", True), ("sm_100", "sm_90a", False)),
        *(("sm_90", "sm_100a", False), ("sm_100", "sm_90a compute_90", True), ("sm_103", "sm_100", True)),
        *(("sm_103", "sm_100a", False), ("sm_100", "sm_103", False), ("sm_120", "sm_90 sm_100", False)),
        *(("sm_120", "sm_120", True), ("sm_121", "sm_120", True), ("sm_120", "compute_120", True)),
        *(("sm_100", "sm_120", False), ("sm_90", "", False)),
        *(("sm_103", "sm_100f", True), ("sm_120", "compute_100f", False), ("sm_103", "compute_100a", False)),
        ("sm_90", "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86", False),  # 2.0.1 on an H200
        ("sm_70", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", False),  # 2.11.0 on a V100
    ],
)
def test_wheel_runs_where_cudas_rules_let_it(capability, archs, answer):
    assert runs(capability, archs.split()) is answer


def test_companions_are_those_of_the_wheels_and_in_order():
    known = moving.companions()
    assert known["torchvision"]["0.20.1"] == "2.5.1"
    assert known["torchvision"]["0.15.2"] == "2.0.1"
    assert known["torchaudio"]["2.3.1"] == "2.3.1"
    for of in known.values():
        assert list(of) == sorted(of, key=Version)


def command(*arguments):
    """On a machine that has measured nothing, which is told what the program came with."""
    return CliRunner(env={"TORCH_HISTORY_MACHINE": "elsewhere"}).invoke(main, ["upgrade", *map(str, arguments)])


def test_a_move_says_what_stops_it_and_what_was_measured(tmp_path):
    file = tmp_path / "requirements.in"
    file.write_text("torch==2.3.1\ntorchvision==0.18.1\n")
    answer = command(file, "--to", "2.13.0", "--gpu", "GTX 1080", "--json")
    assert answer.exit_code == 3, answer.output
    told = json.loads(answer.output[answer.output.index("{") :])
    assert (told["from"], told["to"]) == ("2.3.1", "2.13.0")
    assert "GPU" in told["stops"]
    assert "sm_60" in told["rows"]["GPU"]
    passed = ["2.6.0", *(f"2.{minor}.0" for minor in range(6, 13))]
    assert [point["release"] for point in told["on_the_way"]] == passed
    assert told["measured"]["cards"]["Time"]
    assert "3.8" in told["rows"]["Python"]
    fine = command(file, "--to", "2.5.1", "--gpu", "RTX 2080")
    assert fine.exit_code == 0, fine.output
    words = "0.20.1 is built for torch 2.5.1. The file asks for ==0.18.1: change it, too."
    assert words in " ".join(fine.output.split())
    (tmp_path / "newer.txt").write_text("torch==2.5.1\ntorchvision==0.20.1\n")
    shown = command(file, "--to", tmp_path / "newer.txt", "--markdown").output
    assert "torch 2.3.1 → 2.5.1" in shown
    assert "change it, too" not in shown
    assert len(shown.splitlines()) <= 40


@pytest.mark.parametrize(
    ("code", "text", "says"),
    [
        (1, "numpy", "asks for no torch"),
        (1, "torch==1.7.1", "no release here is"),
        (1, "torch==2.15.0", "is no move from there"),
        (1, "torch==2.2.2\ntorch==2.5.1", "asks for torch ==2.2.2,==2.5.1 at once"),
        (1, "torch==2.4.1; python_version != '3.12'", "asks for no torch, torchvision or torchaudio for Linux"),
        (1, "torchvision==0.29.1", "asks for torchvision ==0.29.1, and which torch goes with that is not known here."),
        (1, "torchvision==0.18.1\ntorchaudio==2.4.1", "torchaudio ==2.4.1, which go with different torch."),
        (1, "torchvision==0.29.1\ntorchaudio", "torchaudio, and which torch goes with that is not known here."),
        (0, "torch>=2.1,<2.3", "torch <2.3,>=2.1, so 2.1.0 to 2.2.2 may be installed. This is told from 2.1.0."),
        (0, "torchvision>=0.15", "torchvision >=0.15, built for torch 2.0.0 to 2.14.0. This is told from 2.0.0."),
        (0, "torchvision\ntorchaudio==2.1.0", "asks for torchvision and torchaudio ==2.1.0, built for torch 2.1.0."),
    ],
)
def test_what_a_file_asks_for_is_told_from_its_oldest_torch_or_refused_in_a_sentence(tmp_path, code, text, says):
    (tmp_path / "requirements.txt").write_text(text)
    answer = command(tmp_path / "requirements.txt", "--to", "2.15.0", "--lane", "3.12")
    assert answer.exit_code == code
    assert says in " ".join(answer.output.split())


ACTION = ROOT / ".github" / "actions" / "moves-torch"


@pytest.fixture
def pull_request(tmp_path):
    """A function that changes files of a repository with one commit, which asks for torch 2.3.1, and gives the lines of the
    action's comment on that. `upgrade` is played: what it prints of a file is in `upgrade-FILE`, its exit code last."""
    git = ["git", "-c", "user.email=a@example.org", "-c", "user.name=a"]
    project = tmp_path / "project"
    project.mkdir()
    (project / "requirements.txt").write_text("torch==2.3.1\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    real = Path(sys.executable).with_name("torch-history")
    program(
        tmp_path / "bin" / "torch-history",
        f'case "$*" in upgrade*.py) ;; *) exec {real} "$@";; esac\nfor file; do :; done\n'
        f'played={tmp_path}/upgrade-$file\nhead -n -1 "$played"; echo why >&2; exit "$(tail -n 1 "$played")"',
    )
    here = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    here |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "TORCH_HISTORY_MACHINE": "elsewhere"}

    def comment(gpu="", played=(), **files):
        for name, text in files.items():
            (project / name.replace("_", ".")).write_text(text)
        for name, text in dict(played).items():
            (tmp_path / f"upgrade-{name}").write_text(text)
        asked = [sys.executable, ACTION / "comment.py", "HEAD"]
        lines = ran(*asked, cwd=project, env={**here, "GPU": gpu}).stdout.splitlines()
        assert len(lines) <= 40
        assert ran("git", "worktree", "list", cwd=project).stdout.count("\n") == 1
        return lines

    return comment


MOVE = "Nothing here keeps you from moving."
LOOK = (
    "**Before you move, look at `a.py`, which became 5 % slower or more, takes 1 % more memory or more, or broke.** "
    "Apart from that, nothing here keeps you from moving."
)
OWN = '[tool.torch-history]\nfiles = ["a.py", "b.py"]\n'


def test_a_comment_begins_with_what_is_recommended(pull_request):
    assert pull_request() == []
    lines = pull_request(requirements_txt="torch==2.15.0\n", pyproject_toml=OWN, gpu="V100")
    assert lines[0] == "### torch 2.3.1 → 2.15.0"
    assert lines[2] == "As the file stands the move cannot work: see GPU."
    (tells,) = [line for line in lines if line.startswith("- **GPU**")]
    assert "NO code" in tells
    assert pull_request(requirements_txt="torch==2.15.0  # pinned\n", pyproject_toml="")[2] == (
        "Nothing here keeps you from moving. Then try your own code: "
        "`torch-history upgrade mine.py --from 2.3.1 --to 2.15.0`"
    )


@pytest.mark.parametrize(
    ("first", "second", "recommended"),
    [
        ("fine\n0", "fine\n0", f"{MOVE} As far as could be measured, `a.py` and `b.py` got no worse."),
        ("slow\n3", "fine\n0", f"{LOOK} As far as could be measured, `b.py` got no worse."),
        ("slow\n3", "1", f"{LOOK} `b.py` could not be measured: see below."),
        ("4", "slow\n3", f"{LOOK.replace('a.py', 'b.py')} `a.py` could not be measured: see below."),
    ],
)
def test_own_files_come_before_what_the_move_brings(pull_request, tmp_path, first, second, recommended):
    played = {"a.py": first, "b.py": second}
    lines = pull_request(requirements_txt="torch==2.15.0\n", pyproject_toml=OWN, played=played)
    assert lines[2] == recommended
    said = [text.partition("\n")[0] if "\n" in text else "    why" for text in (first, second)]
    assert lines[3:7] == ["", said[0], "", said[1]]
    assert lines[8] == "requirements.txt asks for torch ==2.3.1."
    assert (tmp_path / "summary.md").read_text().splitlines() == lines


def test_an_action_installs_what_is_locked_alone():
    installs = [line for line in (ACTION / "action.yml").read_text().splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-deps --no-build-isolation" in installs[1]
    locks = {name: (ROOT / name).read_text() for name in ("tool.lock", "requirements.lock")}
    ours, everybody = (dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)) for text in locks.values())
    assert ours.items() <= everybody.items()
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = asked["project"]
    lines = project["dependencies"] + project["optional-dependencies"]["compare"] + asked["dependency-groups"]["build"]
    assert {canonicalize_name(re.split(r"[<>=]", line)[0]) for line in lines} <= ours.keys()


def test_a_move_is_answered_without_scipy_and_a_comparison_names_it(tmp_path):
    file = tmp_path / "requirements.txt"
    file.write_text("torch==2.4.0\n")
    program = "import sys; sys.modules['scipy'] = None; from torch_history.__main__ import main; main()"
    move = ran(sys.executable, "-c", program, "upgrade", file, "--to", "2.15.0")
    assert move.stdout.startswith("PyTorch 2.4.0 -> 2.15.0")
    for command in (["compare", "2.14.1", "2.15.0", "--all"], ["upgrade", tmp_path / "mine.py", "--from", "2.14.1"]):
        refused = ran(sys.executable, "-c", program, *command, code=None).stderr
        assert f"`{command[0]}` needs the package scipy" in refused
        assert "Traceback" not in refused
    refused = ran(sys.executable, "-c", program, "run", "--budget", "5m", "2.14.1", "2.15.0", code=None).stderr
    assert "needs SciPy: install torch-history[compare]" in refused


@pytest.mark.parametrize(
    ("python", "code"), [("=3.11.4", 0), ("=3.11", 0), (">=3.9,<=3.12", 0), ("=3.8.10", 3), ("<3.10", 3)]
)
def test_a_python_stops_a_move_only_where_no_wheel_is_for_it(tmp_path, python, code):
    (tmp_path / "environment.yml").write_text(f"dependencies:\n- python{python}\n- pytorch=2.3.1\n")
    assert command(tmp_path / "environment.yml", "--to", "2.15.0", "--json").exit_code == code
