"""clang-tidy checks exactly the sources without a recorded result for their compilation inputs."""
import json

import pytest

from cache import Cache
from tidy import TOOLS, Tidy, tools

FILES = {".clang-tidy": "Checks: '*'", "src/a.cc": '#include "low.h"\n',
         "src/b.cc": '#include "devices.grpc.pb.h"\n', "src/proto/devices.proto": "",
         "src/b_test.cc": "", "src/low.h": '#include "lower.h"\n', "src/lower.h": "",
         "tests/t.cc": ""}


class Looks(Tidy):
    """Replaces the tool: records the sources that it would check, and reports findings where
    `wrong` requests them."""

    def look(self, file, log, seen):
        name = str(file.relative_to(self.root))
        self.looked.append(name)
        if name in self.wrong:
            seen(f"{file}:1:1: error: a finding [some-check]")
        return name not in self.wrong


@pytest.fixture
def look(tmp_path):
    root, build = tmp_path / "tree", tmp_path / "tree/build"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    build.mkdir()
    sources = [name for name in FILES if name.endswith(".cc")]
    (build / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(root), "file": str(root / name), "command": f"c++ {root / name}"}
         for name in sources]))

    def look(changes=(), wrong=(), installed="1"):
        for name, text in dict(changes).items():
            (root / name).write_text(text)
        tidy = Looks(root, build, Cache(tmp_path / "cache"), installed)
        tidy.looked, tidy.wrong = [], wrong
        found = tidy.findings(tmp_path / "log")
        return sorted(tidy.looked), found
    return look


def test_what_ships_is_looked_at_once(look):
    assert look() == (["src/a.cc", "src/b.cc"], [])
    assert look() == ([], [])


def test_a_source_with_findings_is_looked_at_until_it_has_none(look):
    looked, found = look(wrong=["src/a.cc"])
    assert looked == ["src/a.cc", "src/b.cc"] and len(found) == 1 and "some-check" in found[0]
    assert look(wrong=["src/a.cc"]) == (["src/a.cc"], found)
    assert look() == (["src/a.cc"], [])


@pytest.mark.parametrize("changes, again", [
    ({"src/a.cc": "int a;"}, ["src/a.cc"]), ({"src/lower.h": "int b;"}, ["src/a.cc"]),
    ({"src/proto/devices.proto": "message Device {}"}, ["src/b.cc"]),
    ({".clang-tidy": "Checks: 'a'"}, ["src/a.cc", "src/b.cc"]), ({"tests/t.cc": "int c;"}, [])])
def test_what_changed_is_looked_at_again(look, changes, again):
    look()
    assert look(changes)[0] == again


def test_with_other_tools_all_are_looked_at_again(look):
    look()
    assert look(installed="2")[0] == ["src/a.cc", "src/b.cc"]


@pytest.mark.parametrize("line, counts", [
    ("libc6-dev:amd64\t2.36", True), ("libspdlog-dev\t1.10", True), ("clang-tidy-14\t14", True),
    ("libllvm14:amd64\t14", True), ("libstdc++-12-dev:amd64\t12", True),
    ("protobuf-compiler-grpc\t1.51", True), ("fish\t3.6", False), ("linux-image\t6-dev1", False)])
def test_of_the_packages_those_with_headers_and_compilers_count(line, counts):
    assert bool(TOOLS.search(line)) is counts
    assert "libc6-dev" in tools()
