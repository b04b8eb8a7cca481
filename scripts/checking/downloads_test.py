"""A failed download is retried, and one error names all that are still missing."""
import os

import pytest

import downloads
from downloads import Download
from stages import Failed


@pytest.fixture
def fetch(tmp_path):
    return lambda *wanted: downloads.fetch(list(wanted), tmp_path / "log", say=lambda text: None,
                                           pauses=(0, 0))


def shell(what: str, script: str, **options) -> Download:
    return Download(what, ["sh", "-c", script], **options)


def test_folders_and_versions_that_are_provided_are_named(fetch, tmp_path):
    facts = fetch(shell("a", f"echo {tmp_path}; echo making it ...; echo /no/such/folder"),
                  shell("b", "echo libc6=2.36-9+deb12u10"))
    assert facts.splitlines() == [f"{tmp_path} {tmp_path.stat().st_mtime_ns}",
                                  "libc6=2.36-9+deb12u10"]


def test_a_folder_that_was_replaced_is_another_fact(fetch, tmp_path):
    part = tmp_path / "part"
    part.mkdir()
    before = fetch(shell("a", f"echo {part}"))
    part.rename(tmp_path / "old")
    part.mkdir()
    assert fetch(shell("a", f"echo {part}")) != before


def test_what_fails_is_tried_again_after_its_remedy(fetch, tmp_path):
    flag = tmp_path / "flag"
    one = shell("a", f"test -e {flag} && echo a=1", remedy=["touch", flag])
    assert fetch(one) == "a=1"


def test_all_that_is_missing_is_said_at_once_and_the_rest_is_fetched(fetch, tmp_path):
    done = tmp_path / "done"
    with pytest.raises(Failed) as failure:
        fetch(shell("the first thing", "echo no route to host >&2; exit 1"),
              shell("the second", f"touch {done}"), shell("the third", "exit 4"))
    assert "the first thing: no route to host" in str(failure.value)
    assert "the third: exit status 4" in str(failure.value)
    assert "the second" not in str(failure.value) and done.exists()


def test_downloads_are_allowed_here_even_where_tests_may_not(fetch, monkeypatch):
    monkeypatch.setenv("PENSTOCK_OFFLINE", "1")
    assert fetch(shell("a", 'echo "offline=${PENSTOCK_OFFLINE:-no}"')) == "offline=no"
    assert os.environ["PENSTOCK_OFFLINE"] == "1"
