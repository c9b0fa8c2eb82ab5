"""Which releases are there, in what order, and does asv see them as it sees commits? git itself says what a name or a range
means."""

from collections.abc import Callable

import pytest
from asv import util
from asv.commands.compare import Compare
from asv.commands.show import Show
from asv.repo import NoSuchNameError, get_repo

from torch_history.releases.axis import Axis, Release, UnknownRelease
from torch_history.releases.repository import ReleaseAxis
from torch_history.system.errors import UserError

from .processes import ran

FEW = ("2.0.0", "2.0.1", "2.1.0", "2.1.1", "2.2.0")
RELEASE = {
    **{"version": '"2.5.1"', "date": '"2024-10-29"', "date_source": '"index"', "pythons": '["3.11"]', "cuda": '"12.4"'}
}


def toml(**changed: str | None) -> str:
    """One [[release]] as in the shipped file, with keys changed, added or (None) left out."""
    keys = {**RELEASE, **changed}
    return "[[release]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None) + "\n"


@pytest.fixture
def axis(write_releases) -> Axis:
    return Axis.load(write_releases(*FEW))


def tags(releases: list[Release]) -> list[str]:
    return [release.tag for release in releases]


@pytest.fixture(scope="module")
def git(tmp_path_factory) -> Callable[..., list[str]]:
    """git in a repository with one commit per release of FEW, tagged; answers in tags."""
    folder = tmp_path_factory.mktemp("git")

    def run(*arguments: str) -> list[str]:
        options = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]
        return ran("git", *options, *arguments, cwd=folder).stdout.split()

    run("init", "--quiet")
    for version in FEW:
        run("commit", "--quiet", "--allow-empty", "--message", version)
        run("tag", f"v{version}")
    names = {run("rev-parse", f"v{version}")[0]: f"v{version}" for version in FEW}
    return lambda *arguments: [names[commit] for commit in run(*arguments)]


@pytest.mark.parametrize(
    "name", ["HEAD", "HEAD^", "HEAD^^", "HEAD~3", "v2.1.0", "v2.1.0~2", "v2.1.0~", "v2.1.0^~1", "v2.2.0~0", "v2.2.0~2^"]
)
def test_name_means_what_it_means_in_git(axis, git, name):
    assert [axis.find(name).tag] == git("rev-parse", name)


@pytest.mark.parametrize(
    "spec",
    [
        *("v2.0.1..v2.2.0", "v2.1.0..", "v2.0.0..HEAD", "v2.1.0^..v2.1.0", "HEAD~3..HEAD^", "v2.1.0^!", "HEAD^!"),
        "HEAD~2^!",
    ],
)
def test_range_means_what_it_means_in_git(axis, git, spec):
    assert tags(axis.select(spec)) == git("rev-list", "--reverse", spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("2.1.9", r"'2\.1\.9' is no PyTorch release .* nearest are .*v2\.1\.[01].*releases\.toml"),
        ("v2.20.0", r"'v2\.20\.0' is no PyTorch release on the axis\. The newest is v2\.\d\.\d\. A new release is"),
        ("2.0.1~2", r"'2\.0\.1~2' lies before v2\.0\.0, the oldest"),
        ("2.1.0..2.0.0", r"holds no release: .*begins after v2\.1\.0 and ends with v2\.0\.0"),
        ("2.0.0...2.1.0", r"'2\.0\.0\.\.\.2\.1\.0' is no range .*write a\.\.b"),
    ],
)
def test_what_names_no_release_is_refused(axis, spec, sentence):
    with pytest.raises((UserError, UnknownRelease), match=sentence):
        axis.select(spec)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[release]\n", r"releases\.toml cannot be read: .*line 1.* fix that one"),
        ("", r"missing required field `release`.* \[\[release\]\] table for each"),
        ("colour = 1\n" + toml(), r"unknown field `colour`\. It has a \[\[release\]\] table"),
        (toml() + toml(), r"releases\.toml lists release v2\.5\.1 twice: remove one"),
        (toml(version=None), r"missing required field `version`"),
        (toml(version='"v2.5.1"'), r"'v2\.5\.1' is no version as the package index writes it, such as 2\.5\.1"),
        (toml(version='"2.05.1"'), r"'2\.05\.1' is no version"),
        (toml(date='"2024-02-30"'), r"`\$\.release\[0\]\.date`"),
        (
            toml(version='"2.15.100"') + toml(version='"2.15.101"'),
            r"8 characters, and could not tell v2\.15\.100 from v2\.15\.101\. Only one",
        ),
        (toml(version='"2.1.1"') + toml(version='"2.1.10"'), r"could not tell v2\.1\.1 from v2\.1\.10\. Only one"),
        # one pair of brackets too few: the likeliest slip in this file
        (toml().replace("[[release]]", "[release]"), r"\[\[release\]\]"),
    ],
)
def test_bad_list_is_refused_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "releases.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence) as refused:
        Axis.load(path)
    assert str(path) in str(refused.value)
    assert str(refused.value).endswith(".")


def test_asv_takes_the_list_for_a_repository_with_its_ranges_tags_and_positions(asv_conf):
    conf = asv_conf(*FEW)
    repo = get_repo(conf)
    assert isinstance(repo, ReleaseAxis)
    assert repo.get_branch_commits("releases") == ["v2.2.0", "v2.1.1", "v2.1.0", "v2.0.1", "v2.0.0"]
    assert repo.get_hash_from_name("releases") == repo.get_hash_from_name(None) == "v2.2.0"
    assert ReleaseAxis.url_match(conf.repo)
    assert not ReleaseAxis.url_match("https://example.org/project.git")
    assert repo.get_hashes_from_range("v2.0.0..v2.1.1") == ["v2.1.1", "v2.1.0", "v2.0.1"]
    assert repo.get_hashes_from_range(repo.get_range_spec("v2.1.0", "v2.2.0")) == ["v2.2.0", "v2.1.1"]
    assert repo.get_hashes_from_range(repo.get_new_range_spec("v2.1.1")) == ["v2.2.0"]
    assert list(repo.get_tags()) == ["v2.0.0", "v2.0.1", "v2.1.0", "v2.1.1", "v2.2.0"]
    positions = repo.get_revisions(repo.get_tags().values())
    assert [positions[tag] for tag in repo.get_tags()] == [0, 1, 2, 3, 4]


def test_asv_catches_an_unknown_release_as_it_catches_an_unknown_commit(asv_conf):
    conf = asv_conf(*FEW)
    with pytest.raises(NoSuchNameError, match="is no PyTorch release"):
        get_repo(conf).get_hash_from_name("9.9")
    assert list(Show._iter_results(conf, ["a-machine"], None, "v9.9.9")) == []
    with pytest.raises(util.UserError, match=r"No results found|contains no launches"):
        Compare.run(conf, "v9.9.9", "v2.1.0")
