"""Words: text from files is no Markdown, absent numbers are no data."""

import pytest

from eagle3dash.analysis import wording
from eagle3dash.charts import theme
from eagle3dash.cli import text
from eagle3dash.records import Run
from eagle3dash.web import reports, words


@pytest.mark.parametrize(
    "evil",
    [
        "![x](http://evil/p.png)",
        "[a](javascript:alert(1))",
        "<img src=x onerror=alert(1)>",
        "**b**",
        "`c`",
        "$\\href{x}$",
        ":red[x]",
    ],
)
def test_safe_leaves_no_special_character_alone(evil):
    shown = words.safe(evil)
    for special in "[]()<>*`$:":
        assert all(shown[at - 1] == "\\" for at, char in enumerate(shown) if char == special)


def test_safe_is_one_line_of_bounded_length():
    assert words.safe("a\n\n# b") == "a \\# b"
    assert len(words.safe("x" * 1000, 20)) == 20


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no data"), (True, "yes"), (0, "0"), (1234, "1,234"), (0.98765, "0.9877"), ((0, 2, 15), "0, 2, 15"),
        ({"a": None}, "a no data"), (float("1e9"), "1,000,000,000"),
    ],
)  # fmt: skip
def test_values(value, text):
    assert words.value(value) == text


def test_sizes_times_and_states():
    assert [words.size(n) for n in (0, 999, 15_200_000, 2e12)] == ["0 bytes", "999 bytes", "15.2 MB", "2,000.0 GB"]
    assert [words.duration(s) for s in (None, 3.2, 130, 3900)] == ["unknown", "3 s", "2 min 10 s", "1 h 5 min"]
    assert words.states([0, None, "s2"]) == "HF[0], unknown, s2"
    assert words.number(None) == "no data"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.985, "1.99"), (1.0 + 0.479 + 0.262 + 0.15 + 0.094, "1.99"), (2.675, "2.68"), (-0.001, "0.00"), (None, "no data")],
)
def test_halves_are_rounded_up_everywhere_alike(value, shown):
    assert words.number(value) == shown == theme.number(value)
    assert text.number(value, 2) == shown


def test_a_fix_is_a_line_for_each_engine():
    fix = "Feed 2, 3. vLLM: write [2]; SGLang: write [1]. Or train again."
    assert wording.by_engine(fix) == ("Feed 2, 3.", "vLLM: write [2];", "SGLang: write [1].", "Or train again.")


def test_signs_are_shown():
    assert [wording.signed(x) for x in (0.0026, -0.94, 0.0, None)] == ["+0.003", "−0.940", "+0.000", "no data"]


@pytest.mark.parametrize(
    ("run", "name"),
    [("story", "diagnosis-story.html"), ("a/../b c<x>", "diagnosis-a-..-b-c-x.html"), ("///", "diagnosis.html")],
)
def test_a_report_is_called_like_its_run(run, name):
    assert reports.file_name(Run(run, "today", (), {}, (), ""), "html") == name
