"""How tests are run."""
import os
from types import SimpleNamespace

import pytest

import testing


def answer(monkeypatch, flags: int, blocks: int):
    monkeypatch.setattr(testing.os, "statvfs", lambda _: SimpleNamespace(f_flag=flags, f_bavail=blocks, f_frsize=4096))


def test_unit_tests_make_their_files_in_memory_and_leave_none(tmp_path, monkeypatch):
    answer(monkeypatch, 0, 1 << 20)
    with testing.folder_in_memory(tmp_path) as environment:
        [folder] = tmp_path.iterdir()
        assert environment == {"TEST_TMPDIR": str(folder)} and folder.stat().st_mode & 0o777 == 0o755
        (folder / "left").mkdir()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flags, blocks", [(os.ST_NOEXEC, 1 << 20), (os.ST_NODEV, 1 << 20), (0, 1 << 10)])
def test_without_a_large_place_in_memory_for_programs_and_device_files_the_disk_is_used(tmp_path, monkeypatch, flags, blocks):
    answer(monkeypatch, flags, blocks)
    with testing.folder_in_memory(tmp_path) as environment:
        assert environment == {}
    assert not list(tmp_path.iterdir())


def test_without_the_place_the_disk_is_used(tmp_path):
    with testing.folder_in_memory(tmp_path / "missing") as environment:
        assert environment == {}


@pytest.mark.parametrize("gibibytes, tests", [(64, 5), (15, 5), (8, 2), (2, 1), (0, 1)])
def test_fewer_tests_run_at_once_where_memory_is_short(monkeypatch, gibibytes, tests):
    monkeypatch.setattr(testing.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(testing.downloads, "memory_available", lambda: gibibytes << 30)
    assert testing.at_once() == tests
