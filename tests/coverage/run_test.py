"""tests/coverage/run: the table it makes of what gcovr says, and what it does with tests that fail."""
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run"
ARCHITECTURE = """<!-- include table -->
| room | may include | |
|---|---|---|
| `src/device/remote*` `src/device/testing` | `src/base` | |
| `src/device` | `src/base` | |
| `src/backend/all.h` `src/backend/backends.cc` | | |
| `src/node/*` | | |
<!-- end -->
<!-- area table -->
<!-- end -->
"""


@pytest.fixture(scope="module")
def run():
    loader = importlib.machinery.SourceFileLoader("coverage_run", str(RUN))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def counted(file: str, *lines: tuple[int, list[int]]) -> dict:
    """As gcovr has it: for each line how often it ran, and each of its branches."""
    return {"file": file, "lines": [{"line_number": number, "count": count,
                                     "branches": [{"count": branch} for branch in branches]}
                                    for number, (count, branches) in enumerate(lines, 1)]}


def test_files_are_counted_with_their_rooms(run):
    files = [counted("src/device/model.cc", (1, [1, 0]), (3, [])),
             counted("src/device/remote.cc", (0, [0, 0]), (1, [])),
             counted("src/node/share/offer.cc", (1, [])),
             counted("src/node/share/assignment.cc", (0, [])),
             counted("src/node/cdi/spec_writer.cc", (1, [2])),
             counted("src/backend/backends.cc", (1, [])),
             counted("src/elsewhere/new.cc", (0, []))]
    table = run.table(files, run.Areas(ARCHITECTURE)).splitlines()
    assert set(table[2:-1]) == {
        "| `src/device` | 4 | 75.0 % | 4 | 25.0 % |",
        "| `src/node/share` | 2 | 50.0 % | 0 | – |",
        "| `src/node/cdi` | 1 | 100.0 % | 1 | 100.0 % |",
        "| `src/backend` | 1 | 100.0 % | 0 | – |",
        "| `src/elsewhere` | 1 | 0.0 % | 0 | – |"}
    assert table[-1] == "| `all` | 9 | 66.7 % | 5 | 40.0 % |"


def build_folder(folder: Path, **commands: str) -> Path:
    (folder / "CTestTestfile.cmake").write_text("".join(
        f'add_test({name} "{command}")\nset_tests_properties({name} PROPERTIES LABELS unit)\n'
        for name, command in commands.items()))
    return folder


def test_tests_that_fail_are_named(run, tmp_path):
    folder = build_folder(tmp_path, well="true", wrong="false", gone="/nowhere/program")
    with pytest.raises(SystemExit) as ended:
        run.test(folder)
    said, names = ended.value.code.split(" failed: ")
    assert said.endswith("these tests") and set(names.split(", ")) == {"wrong", "gone"}


def test_without_any_test_nothing_is_measured(run, tmp_path):
    with pytest.raises(SystemExit) as ended:
        run.test(build_folder(tmp_path))
    assert "ctest ended with" in ended.value.code


def test_where_all_pass_it_goes_on(run, tmp_path):
    run.test(build_folder(tmp_path, well="true", too="true"))
