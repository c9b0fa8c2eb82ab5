"""Does docs/generated/attacks.md list the attacks that the suite tries, and none that was not survived?"""

from .tally import BEGIN, CLASSES, END, PAGE


def test_page_lists_every_kind_of_attack_and_all_were_survived():
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    assert [words for words, _, _ in rows] == list(CLASSES.values())
    for words, tried, survived in rows:
        assert int(tried) > 0, f"'{words}' was never tried"
        assert survived == tried, words
