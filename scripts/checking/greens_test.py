"""A suite is skipped when it passed on the same inputs, and an expensive one when no path of its
area changed; with any other content of the cache it runs."""
import pytest

from areas import Areas
from cache import Cache
from greens import Greens, changed_since_green
from suites import Suite, Test

AREAS = Areas("<!-- include table --><!-- end --><!-- area table -->\n"
              "| `src/its` | `dear` |\n| `src/other` | |\n<!-- end -->")
INPUTS = {"program": "1", "files": "1", "kernel": "1"}


def suite(*labels) -> Suite:
    return Suite("suite", [Test(1, "suite", ["/bin/true"], {"LABELS": list(labels)})])


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


def greens(cache, files=None, commit="abc", series="dev", areas=AREAS) -> Greens:
    return Greens(cache, areas, files or {"src/its/a": "1", "src/other/a": "1"}, commit, series)


def test_a_suite_that_never_passed_runs(cache):
    assert greens(cache).decide(suite(), INPUTS).run


def test_a_suite_that_passed_on_the_same_inputs_is_skipped_and_it_says_since_when(cache):
    greens(cache, commit="abc").note(suite(), INPUTS)
    decision = greens(cache, commit="def").decide(suite(), INPUTS)
    assert not decision.run
    assert decision.why.startswith("unchanged since it passed on abc at 2")


@pytest.mark.parametrize("name", INPUTS)
def test_a_suite_runs_when_an_input_changed_and_it_says_which(cache, name):
    greens(cache).note(suite(), INPUTS)
    decision = greens(cache).decide(suite(), {**INPUTS, name: "2"})
    assert decision.run and decision.why == f"changed since it passed: {name}"


def test_inputs_that_passed_before_others_are_still_known(cache):
    greens(cache).note(suite(), INPUTS)
    greens(cache).note(suite(), {**INPUTS, "files": "2"})
    assert not greens(cache).decide(suite(), INPUTS).run


def test_a_suite_without_a_key_runs(cache):
    assert greens(cache).decide(suite(), None).run


def test_what_passed_in_another_build_or_stage_does_not_count(cache):
    greens(cache, series="asan").note(suite(), INPUTS)
    assert greens(cache).decide(suite(), INPUTS).run


def test_a_dear_suite_is_skipped_while_no_path_of_its_area_changed(cache):
    greens(cache).note(suite("dear"), INPUTS)
    now = greens(cache, {"src/its/a": "1", "src/other/a": "2"})
    decision = now.decide(suite("dear"), {**INPUTS, "files": "2", "program": "2"})
    assert not decision.run and decision.why.startswith("no path of its area changed since")


@pytest.mark.parametrize("files", [
    {"src/its/a": "2", "src/other/a": "1"}, {"src/other/a": "1"},
    {"src/its/a": "1", "src/its/new": "1", "src/other/a": "1"},
    {"src/its/a": "1", "src/other/a": "1", "no/row/knows/it": "1"}])
def test_a_dear_suite_runs_when_a_path_of_its_area_or_an_unknown_one_changed(cache, files):
    greens(cache).note(suite("dear"), INPUTS)
    assert greens(cache, files).decide(suite("dear"), {**INPUTS, "files": "2"}).run


def test_changes_beside_the_area_add_up_over_several_checks(cache):
    greens(cache).note(suite("dear"), INPUTS)
    between = greens(cache, {"src/its/a": "2", "src/other/a": "1"})
    assert between.decide(suite("dear"), {**INPUTS, "files": "2"}).run  # and did not pass
    after = greens(cache, {"src/its/a": "2", "src/other/a": "2"})
    assert after.decide(suite("dear"), {**INPUTS, "files": "3"}).run


def test_a_dear_suite_runs_when_something_other_than_a_file_changed(cache):
    greens(cache).note(suite("dear"), INPUTS)
    now = greens(cache, {"src/its/a": "1", "src/other/a": "2"})
    assert now.decide(suite("dear"), {**INPUTS, "files": "2", "kernel": "2"}).run


def test_an_ordinary_suite_has_no_area(cache):
    greens(cache).note(suite(), INPUTS)
    now = greens(cache, {"src/its/a": "1", "src/other/a": "2"})
    assert now.decide(suite(), {**INPUTS, "files": "2"}).run


@pytest.mark.parametrize("entry", [{}, {"commit": "abc"}, {"time": 3},
                                   {"commit": "a", "time": "t", "ingredients": None},
                                   {"commit": "a", "time": "t", "ingredients": [1],
                                    "manifest": "x"}])
def test_entries_of_another_form_mean_that_it_runs(cache, entry):
    assert cache.write("last/dev/suite", entry)
    assert greens(cache).decide(suite("dear"), INPUTS).run


def test_what_changed_since_the_last_green_check_is_known(cache):
    assert changed_since_green(cache, {"a": "1"}) is None
    cache.write("last-green", {"commit": "abc", "manifest": {"a": "1", "b": "1", "c": "1"}})
    assert changed_since_green(cache, {"a": "2", "b": "1", "d": "1"}) == ("abc", ["a", "c", "d"])
    cache.write("last-green", {"commit": "abc", "manifest": ["a"]})
    assert changed_since_green(cache, {"a": "1"}) is None
