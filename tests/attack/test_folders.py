"""Is a folder that the program did not make ever replaced or emptied by `publish`?"""

import hashlib
import os
import shutil
from pathlib import Path

from torch_history.measuring import machine

from .material import command, fill


def digest(folder: Path) -> dict[str, str]:
    """What lies in `folder`: path -> digest of a file, target of a link, or nothing for a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name == ".asv-machine.json":
            continue  # what asv knows of this machine, which it writes itself
        if path.is_symlink():
            found[str(path)] = f"-> {os.readlink(path)}"
        else:
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return found


def test_folder_that_publish_did_not_make_is_left_as_it_is(root, tmp_path, attacks, monkeypatch):
    """The working folder is a checkout that may be lost, in a home folder of its own."""
    home = tmp_path / "home"
    checkout = home / "work" / "checkout"
    checkout.mkdir(parents=True)
    for name in ("asv.conf.json", "releases.toml", "releases.lock"):
        shutil.copy(root / name, checkout)
    for name in (".git", "env", "results", "docs"):
        (checkout / name).mkdir()
        (checkout / name / "kept").write_text("of value")
    foreign = home / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("of value")
    (foreign / "index.html").write_text("<p>a site of somebody's own")
    (home / "a-file").write_text("of value")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(machine, "describe", lambda: {"machine": "here"})
    monkeypatch.chdir(checkout)
    fill(checkout / "results")
    attack = attacks("folders")
    for number, target in enumerate([checkout, checkout / "results", checkout / ".git", home / "foreign", home]):
        (home / f"link-{number}").symlink_to(target)
    given = [
        ".", "..", "../..", "./", "results", "results/here", "results/new", ".git", ".git/new", "env", "env/new", "docs",
        str(checkout), str(home), f"{home}/foreign", f"{home}/a-file", "results/../results",
        *(str(home / f"link-{number}") for number in range(5)), f"{home}/link-0/results",
    ]  # fmt: skip
    for name in given:
        with attack(f"--html-dir {name}"):
            monkeypatch.chdir(checkout)
            before = digest(home)
            found = command("publish", "--html-dir", name)
            assert found.exit_code == 1, "it was taken"
            assert digest(home) == before, "something was touched"
        if not checkout.joinpath("results", "here").is_dir():
            break
