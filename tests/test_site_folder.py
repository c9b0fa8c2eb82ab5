"""Does a publish replace only what is its own? Everything else is refused in a sentence and stays as it is."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from asv import util
from asv.commands.publish import Publish as AsvPublish
from asv.config import Config

from torch_history.site import asv_dashboard as folders
from torch_history.site.asv_dashboard import POLICY, SCRATCH, require_replaceable
from torch_history.site.build import publish_site
from torch_history.system.errors import UserError
from torch_history.system.scratch import MARK, MARK_TEXT, mark, scratch

from .lab import AXIS, write_few
from .processes import ROOT, listing, ran

REMOTE = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)\s*=\s*["']?(?:https?:)?//""", re.I)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A checkout with results, a .git and an env, which is the working folder, in somebody's home."""
    root = tmp_path / "home" / "checkout"
    root.mkdir(parents=True)
    conf = write_few(root)
    for name in (".git", "env", "benchmarks", "docs"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "file").write_text("somebody's work")
    conf.benchmark_dir = str(root / "benchmarks")
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return conf


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        *((".", "holds the results"), ("..", "holds the results"), ("../..", "holds the results")),
        *(("results", "is the results"), ("results/new", "lies within the results")),
        *(
            ("results/a-laboratory-4-cores/new/html", "lies within the results"),
            ("results/a-laboratory-4-cores", "lies within the results"),
        ),
        *(("results/../results", "is the results"), ("env", "is the releases' environments")),
        *(("env/new", "lies within the releases' environments"), ("benchmarks/new", "lies within the benchmarks")),
        *((".git", "lies within a folder of git's"), (".git/new", "lies within a folder of git's")),
        *(("docs", f"none named {MARK}"), ("to-docs", f"none named {MARK}"), ("releases.toml", "is no folder")),
        *(("to-results", "is the results"), ("to-checkout/results", "is the results")),
        *(("to-checkout", "holds the results"), ("to-home", "holds the results")),
        ("to-git", "lies within a folder of git's"),
    ],
)
@pytest.mark.parametrize("marked", [False, True])
def test_a_publish_into_what_must_stay_is_refused_and_nothing_is_touched(
    checkout: Config, asked: str, said: str, marked: bool
) -> None:
    root = Path.cwd()
    targets = {"docs": root / "docs", "results": root / "results", "git": root / ".git"}
    for name, target in {**targets, "checkout": root, "home": root.parent}.items():
        (root / f"to-{name}").symlink_to(target)
    if marked and asked not in ("docs", "to-docs", "releases.toml") and Path(asked).is_dir():
        mark(Path(asked))

    def everything() -> tuple[dict[str, bytes], list[Path]]:
        return listing(root.parent.parent), sorted(root.parent.parent.rglob("*"))

    before = everything()
    with pytest.raises(UserError, match="A site cannot take the place of") as refused:
        publish_site(checkout, AXIS, Path(asked))
    assert said in str(refused.value)
    assert "Nothing was changed." in str(refused.value)
    assert everything() == before


def test_the_home_folder_and_the_checkout_that_runs_are_refused_where_the_results_lie_elsewhere(
    checkout: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere" / "home"))
    for asked, said in (
        *((tmp_path / "elsewhere", "holds your home folder"), (tmp_path / "elsewhere" / "home", "is your home folder")),
        *((ROOT, "is the checkout"), (ROOT.parent, "holds the (checkout|results)")),
    ):
        with pytest.raises(UserError, match=said):
            require_replaceable(asked, checkout)


def test_a_new_an_empty_and_an_own_folder_are_replaced(checkout: Config) -> None:
    for html in (Path("new/html"), Path("empty")):
        if html.name == "empty":
            html.mkdir()
        publish_site(checkout, AXIS, html)
        assert (html / MARK).read_text() == MARK_TEXT
        publish_site(checkout, AXIS, html)
        assert (html / "index.html").is_file()
    for text in ("", "somebody's own\n", MARK_TEXT + "more"):
        (html / MARK).write_text(text)
        before = listing(html)
        with pytest.raises(UserError, match="remove it yourself first"):
            publish_site(checkout, AXIS, html)
        assert listing(html) == before


@pytest.mark.parametrize("program", ["torch_history", "asv"])
def test_both_commands_refuse_in_a_sentence(tmp_path: Path, program: str) -> None:
    own = tmp_path / "thesis"
    own.mkdir()
    (own / "chapter").write_text("somebody's work")
    answer = ran(sys.executable, "-m", program, "publish", "--html-dir", own, cwd=ROOT, code=1)
    said = " ".join((answer.stdout + answer.stderr).split())
    assert f"A site cannot take the place of {own}: it holds files" in said
    assert "Traceback" not in said
    assert listing(tmp_path) == {"thesis/chapter": b"somebody's work"}


def test_asvs_own_publish_deletes_nothing_of_others_leaves_a_mark_and_gives_its_pages_the_policy(
    checkout: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AsvPublish, "run", AsvPublish.run)
    folders.setup()
    for asked in ("docs", ".", "results"):
        checkout.html_dir = asked
        before = listing(Path.cwd())
        with pytest.raises(util.UserError, match="A site cannot take the place of"):
            AsvPublish.run(checkout)
        assert listing(Path.cwd()) == before
    checkout.html_dir = "html/asv"
    for _ in range(2):
        AsvPublish.run(checkout)
        assert folders.is_own(Path("html/asv"))
        assert (Path("html/asv") / "index.json").is_file()
    pages = list(Path("html/asv").glob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f'content="{POLICY}"' in text, page
        assert not REMOTE.findall(text), page
        for file in re.findall(r'<(?:script|link)\b[^>]*(?:src|href)="([^"]+)"', text):
            assert (page.parent / file).is_file(), file


def test_a_folder_is_no_sites_where_anything_in_it_is_somebodys(tmp_path: Path) -> None:
    html = tmp_path / "html"
    (html / "asv").mkdir(parents=True)
    mark(html / "asv")
    (html / "elsewhere").symlink_to(html / "asv")
    before = listing(tmp_path)
    conf = Config()
    with pytest.raises(UserError, match="it holds files"):
        require_replaceable(html, conf)
    assert listing(tmp_path) == before
    (html / "elsewhere").unlink()
    require_replaceable(html, conf)
    (html / "notes").write_text("somebody's work")
    with pytest.raises(UserError, match="it holds files"):
        require_replaceable(html, conf)


KILLED = f"""
import sys, time
from pathlib import Path
from torch_history.system.scratch import scratch
with scratch(Path(sys.argv[1]), {SCRATCH!r}) as made:
    (made / "half").write_text("half a site")
    print(made, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_publish_left_goes_at_the_next_start_and_nothing_else(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    left = Path(process.stdout.readline().strip())
    others = tmp_path / f"{SCRATCH}of-somebody"
    others.mkdir()
    (others / "file").write_text("somebody's work")
    linked = tmp_path / f"{SCRATCH}link"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    mark(elsewhere)
    linked.symlink_to(elsewhere)
    with scratch(tmp_path, SCRATCH):
        assert (left / "half").is_file(), "a publish that lives was swept"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with scratch(tmp_path, SCRATCH) as made:
        assert not left.exists()
        assert made.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [linked.name, others.name, "elsewhere"]
    assert folders.is_own(elsewhere)
