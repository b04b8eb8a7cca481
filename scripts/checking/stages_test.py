"""Times and findings of stages are recorded whatever their result."""
import json

import pytest

from stages import Background, Failed, Stages, excerpt


def test_what_passed_and_what_failed_is_kept_and_printed(tmp_path):
    said = []
    stages = Stages(tmp_path / "folder/stages.json", said.append)
    assert stages.run("one", lambda: "found 3") == "found 3"

    def fail():
        raise Failed("no such thing\nat all")
    with pytest.raises(Failed):
        stages.run("another", fail)
    stages.add("third", "skipped", "not today")
    kept = json.loads((tmp_path / "folder/stages.json").read_text())
    assert [(one["name"], one["result"], one["findings"]) for one in kept] == [
        ("one", "passed", "found 3"), ("another", "failed", "no such thing\nat all"),
        ("third", "skipped", "not today")]
    assert said[0] == "== one" and said[1].startswith("== one took ")
    assert "another  failed" in stages.table() and "at all" not in stages.table()


def test_a_stage_in_the_background_hands_over_its_result_or_its_error():
    assert Background(lambda: 3).result() == 3

    def fail():
        raise Failed("x")
    with pytest.raises(Failed):
        Background(fail).result()


def test_an_excerpt_has_the_beginning_and_the_end_and_says_where_the_rest_is():
    assert excerpt("a\nb", "FILE").splitlines() == ["a", "b", "(also in FILE)"]
    text = "\n".join(map(str, range(1000)))
    lines = excerpt(text, "FILE", 2, 3).splitlines()
    assert lines[:2] == ["0", "1"] and lines[3:] == ["997", "998", "999"]
    assert "995 lines are left out here; all are in FILE" in lines[2]
    assert len(excerpt(text, "FILE").splitlines()) <= 200
