"""A cache entry that is broken, foreign or not writable counts as absent."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cache import VERSION, Cache


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def test_an_entry_is_read_as_it_was_written(cache):
    assert cache.write("a/b", {"x": [1, "é"]})
    assert cache.read("a/b") == {"x": [1, "é"]}


def test_what_was_never_written_is_absent(cache):
    assert cache.read("a") is None


@pytest.mark.parametrize("text", [
    "", "{", '{"version": 1, "val', "[]", "null", '"x"', "\x00\x01", '{"value": {"x": 1}}',
    json.dumps({"version": VERSION + 1, "value": {"x": 1}}),
    json.dumps({"version": VERSION, "value": [1]}), json.dumps({"version": VERSION})])
def test_an_entry_that_is_half_written_or_of_another_version_is_absent(cache, text):
    assert cache.write("a", {"x": 1})
    (cache.folder / "a").write_text(text)
    assert cache.read("a") is None
    assert cache.write("a", {"x": 2}) and cache.read("a") == {"x": 2}


def test_bytes_that_are_no_text_are_absent(cache):
    cache.folder.mkdir()
    (cache.folder / "a").write_bytes(b"\xff\xfe")
    assert cache.read("a") is None


def test_a_folder_in_the_place_of_an_entry_is_absent_and_stays(cache):
    (cache.folder / "a").mkdir(parents=True)
    assert cache.read("a") is None
    assert not cache.write("a", {}) and cache.problem


def test_where_nothing_can_be_written_nothing_is_kept_and_it_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    assert not cache.write("a", {"x": 1})
    assert not cache.update("a", lambda entry: {"x": 1})
    assert cache.problem
    assert cache.read("a") is None
    cache.prune("a", 1)


def test_a_full_disk_leaves_the_entry_that_was_there_and_no_scraps(cache):
    assert cache.write("a", {"x": 1})
    # A limit on the size of files makes the write fail midway, like a full disk.
    code = ("import resource, signal, sys; sys.path.insert(0, sys.argv[1])\n"
            "from cache import Cache; from pathlib import Path\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
            "cache = Cache(Path(sys.argv[2]))\n"
            "print(cache.write('a', {'x': 'y' * 100_000}), cache.problem)")
    said = subprocess.run([sys.executable, "-B", "-c", code, Path(__file__).parent, cache.folder],
                          check=True, capture_output=True, text=True).stdout
    assert said.startswith("False") and "File too large" in said
    assert cache.read("a") == {"x": 1}
    assert os.listdir(cache.folder) == ["a"]


def test_updates_of_several_checks_lose_nothing(cache):
    code = ("import sys; sys.path.insert(0, sys.argv[1]); from cache import Cache\n"
            "from pathlib import Path\n"
            "for _ in range(50):\n"
            "    Cache(Path(sys.argv[2])).update('a', lambda e: {'n': (e or {'n': 0})['n'] + 1})\n")
    words = [sys.executable, "-B", "-c", code, Path(__file__).parent, cache.folder]
    for process in [subprocess.Popen(words) for _ in range(4)]:
        assert process.wait() == 0
    assert cache.read("a") == {"n": 200}


def test_the_oldest_entries_are_pruned_first(cache):
    for number in range(6):
        cache.write(f"a/{number}", {})
        os.utime(cache.folder / f"a/{number}", (number, number))
    (cache.folder / "a/.new-left").write_text("by an interrupted check")
    os.utime(cache.folder / "a/.new-left", (0, 0))
    cache.prune("a", 3)
    assert sorted(os.listdir(cache.folder / "a")) == ["3", "4", "5"]
