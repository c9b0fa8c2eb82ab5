"""Does the check of the documents find what it should? Each rule on a page that breaks it, and the committed pages pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_prose import BANNED, MEDIAN, ROOT, TAIL, Page, banned, report, said, sentences


def page(text: str) -> Page:
    return Page("page.md", sentences(text))


def of(words: int) -> str:
    return " ".join(["Word", *["word"] * (words - 1)]) + "."


def checkout(folder: Path, text: str) -> Path:
    (folder / "docs" / "generated").mkdir(parents=True)
    (folder / "README.md").write_text(text)
    return folder


def test_sentences_end_at_full_stops_and_not_within_numbers_code_or_abbreviations() -> None:
    text = "Use `a. B` on 2.5.1, e.g. here. It is\n*new*! See [this](x.md). - no item\n\n- One item. Another\n"
    found = [each.text.replace("\ufffc", "C") for each in sentences(text)]
    assert found == ["Use C on 2.5.1, eg here.", "It is new!", "See this. - no item", "One item.", "Another"]
    assert [each.words for each in sentences(text)] == [6, 3, 4, 2, 1]


def test_what_is_quoted_counts_as_a_word() -> None:
    (sentence,) = sentences("The release said “measured anew! " + "word " * 40 + "” and ended.")
    assert (sentence.words, banned(sentence.text)) == (6, [])


def test_tables_headings_code_and_what_programs_wrote_are_no_prose() -> None:
    written = "<!-- what follows is written by `x` -->\n\nBeside.\n\n<!-- end -->\n"
    findings = "<!-- findings: by `x` -->\nBeside.\n<!-- end of findings -->\n"
    text = f"# Beside\n\n| a |\n|---|\n| b. C |\n\n```\nBeside. Beside.\n```\n\n{written}\n{findings}\nOne."
    assert [each.text for each in sentences(text)] == ["One."]


@pytest.mark.parametrize(("lengths", "faults"), [([MEDIAN] * 20, 0), ([MEDIAN + 1] * 20, 1)])
def test_median_is_limited(lengths: list[int], faults: int) -> None:
    assert len(page(" ".join(map(of, lengths))).faults()) == faults


def test_tail_is_limited_and_the_long_sentences_are_listed_by_line() -> None:
    short = " ".join([of(5)] * 19)
    assert page(f"{short}\n\n{of(TAIL + 9)}\n").faults() == []
    figure, first, second = page(f"{short}\n\n{of(TAIL + 1)} {of(TAIL + 2)}\n").faults()
    assert f"95th percentile is {TAIL + 1} words" in figure
    assert first.startswith(f"line 3, {TAIL + 1} words: Word word")
    assert second.startswith(f"line 3, {TAIL + 2} words")


@pytest.mark.parametrize(
    "text",
    [
        "Those come first of which it decides most.",
        "They are started in an order of chance.",
        "The slowest call after the first takes so many medians.",
        "In half of 361 times, a change by 7 % would have been seen.",
        "Where that was disturbed too both are used, because all releases of the round were.",
        *(f"It is {phrase} here." for phrase in BANNED),
    ],
)
def test_coined_words_are_found(text: str) -> None:
    assert page(text).faults()


def test_words_that_only_contain_a_coined_one_are_fine() -> None:
    assert page("The silent excellent talent is besides the point.").faults() == []


@pytest.mark.parametrize("name", ["docs/x.md", "docs/generated/x.md"])
def test_a_bad_page_fails_whoever_wrote_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    root = checkout(tmp_path, "Good.\n")
    assert report(root)
    (root / name).write_text("Bad, because it is asked again.\n")
    assert not report(root)
    assert f'{name}: 1 sentences, median 6, 95th percentile 6\n  line 1: "asked again"' in capsys.readouterr().out


MODULE = '''"""It is asked again."""

def command():
    """It is asked anew."""
    say(f"No {1 + 1} times. It is {'lent'} here.", "word", "Two \\
words are pulled in.")
'''


def test_the_program_says_its_string_literals_but_not_its_docstrings() -> None:
    assert [(each.line, each.text.replace("\ufffc", "1")) for each in said(MODULE)] == [
        (5, "No 1 times."),
        (5, "It is 1 here."),
        (5, "Two words are pulled in."),
    ]
    assert Page("module", said(MODULE)).faults()[0].startswith('line 5: "pulled in"')


def test_docstrings_of_commands_are_help() -> None:
    module = '@click.command()\ndef command():\n    """It is asked anew."""\n'
    assert said(module) == ()
    assert [each.text for each in said(module, says_docstrings=True)] == ["It is asked anew."]


def test_a_module_that_says_something_bad_fails(tmp_path: Path) -> None:
    root = checkout(tmp_path, "Good.\n")
    (root / "torch_history").mkdir()
    (root / "torch_history" / "x.py").write_text("print('It is asked again.')")
    assert not report(root)


def test_committed_pages_read_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(ROOT), capsys.readouterr().out


def test_python_in_a_string_is_no_sentence() -> None:
    code = 'SCRIPT = """for number in range(3):\n    print(number)\nprint({last})\n"""\nWORDS = "Three. And more."\n'
    assert [sentence.text for sentence in said(code)] == ["Three.", "And more."]
