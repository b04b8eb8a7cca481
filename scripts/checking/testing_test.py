"""How tests are run."""
import os
from types import SimpleNamespace

import testing


def test_unit_tests_make_their_files_in_memory_and_leave_none(tmp_path):
    with testing.folder_in_memory(tmp_path) as environment:
        [folder] = tmp_path.iterdir()
        assert environment == {"TEST_TMPDIR": str(folder)} and folder.stat().st_mode & 0o777 == 0o755
        (folder / "left").mkdir()
    assert not list(tmp_path.iterdir())


def test_without_a_large_place_in_memory_that_can_have_programs_the_disk_is_used(tmp_path, monkeypatch):
    with testing.folder_in_memory(tmp_path / "missing") as environment:
        assert environment == {}
    for about in ({"f_flag": os.ST_NOEXEC, "f_bavail": 1 << 30}, {"f_flag": 0, "f_bavail": 1 << 10}):
        monkeypatch.setattr(testing.os, "statvfs", lambda _, about=about: SimpleNamespace(f_frsize=4096, **about))
        with testing.folder_in_memory(tmp_path) as environment:
            assert environment == {}
    assert not list(tmp_path.iterdir())
