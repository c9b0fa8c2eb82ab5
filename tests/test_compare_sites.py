"""Does the comparison of two sites list what differs, and only that? Two checkouts publish results that are made here."""

from __future__ import annotations

import shutil
from pathlib import Path

from click.testing import CliRunner

from tools.compare_sites import BESIDE_SOURCES, differences, main

from .synthetic import write_tree


def write(site: Path, files: dict[str, str]) -> Path:
    (site / "asv").mkdir(parents=True)
    for name, text in files.items():
        (site / name).write_text(text)
    return site


def test_files_that_differ_are_listed_with_what_differs_first(tmp_path: Path) -> None:
    stamp = "asv/info.json"
    before = {"same": "1", "old": "a", "number": "[1, 2.5]", stamp: '{"timestamp": 1795424130496}'}
    after = {"same": "1", "new": "a", "number": "[1, 2.6]", stamp: '{"timestamp": 1795424177883}'}
    assert differences(write(tmp_path / "before", before), write(tmp_path / "after", after)) == {
        "new": "only after",
        "old": "only before",
        "number": "from byte 6 on\n    - '[1, 2.5]'\n    + '[1, 2.6]'",
    }


def test_a_checkout_publishes_the_same_site_twice_and_another_after_an_edit(root: Path, tmp_path: Path) -> None:
    results = str(Path(write_tree(tmp_path, 3, series=20, machines=1).results_dir))
    edited = tmp_path / "edited"
    shutil.copytree(root, edited, ignore=BESIDE_SOURCES)
    shutil.copy(tmp_path / "releases.toml", edited)
    command = ["--results", results, str(edited)]
    again = CliRunner().invoke(main, [*command, str(edited)])
    assert again.output.startswith("Files that differ: 0 of ")
    assert again.exit_code == 0
    style = tmp_path / "edited again"
    shutil.copytree(edited, style)
    with (style / "torch_history" / "site" / "templates" / "style.css").open("a") as stream:
        stream.write(".edited { color: red; }\n")
    answer = CliRunner().invoke(main, [*command, str(style)])
    assert answer.exit_code == 1
    assert answer.output.startswith("style.css: from byte ")
    assert "\nFiles that differ: 1 of " in answer.output
