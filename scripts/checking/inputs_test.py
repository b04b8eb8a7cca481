"""A suite is skipped only while none of its inputs changed: a change of any kind of input gives
another key."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import inputs
from inputs import Inputs, digest
from suites import Suite, Test

MACHINE = {"packages": "p", "tools": "t", "kernel": "k", "user": "u", "downloads": "d"}
FILES = {
    "docs/page.md": "text", "docs/read.md": "[text](linked.md)", "docs/help.md": "[text](page.md)",
    "docs/linked.md": "[text](page.md)", "docs/built.md": "text",
    "docs/neighbour.md": "text", "docs/shown.md": "text", "tests/other/helper.py": "read('docs/help.md')",
    "tests/other/one_test.py": "read('docs/neighbour.md')",
    "tests/architecture/all.py": "glob('*.md')",
    "src/room/a.cc": "code", "src/room/a.h": "code",
    "src/room/a_test.cc": 'SourcePath("docs/built.md")', "src/room/testing/fake.h": "code",
    "src/testdata/x": "data",
    "tests/kind/one_test.py": "import helper, shared_test  # docs/read.md", "tests/kind/two_test.py": "",
    "tests/kind/shared_test.py": "", "tests/kind/helper.py": "", "tests/corpus/in/1": "seed",
    "tests/corpus/out/1": "seed", "tests/script.py": "", "tests/wrapper": "", ".gitignore": "build\n"}
BUILT = {"tests/alone_test": b"\x7fELF alone", "tests/reader_test": b"\x7fELF CMakeCache.txt",
         "tests/helper": b"\x7fELF helper", "bin/program": b"\x7fELF",
         "lib/simulated/lib.so": b"\x7fELF",
         "share/data": b"data"}


class Checkout:
    def __init__(self, folder: Path):
        self.source, self.build = folder, folder / "build/dev"
        for name, text in FILES.items():
            self.write(folder / name, text.encode())
        for name, content in BUILT.items():
            self.write(self.build / name, content)
            (self.build / name).chmod(0o755)
        subprocess.run(["git", "init", "-q", folder], check=True)
        subprocess.run(["git", "-C", folder, "add", "."], check=True)

    @staticmethod
    def write(file: Path, content: bytes):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def suite(self, kind: str, **properties) -> Suite:
        source, build = str(self.source), str(self.build)
        command = {
            "alone": [f"{build}/tests/alone_test", "--gtest_filter=A.B"],
            "reader": [f"{build}/tests/reader_test", "--gtest_filter=A.B"],
            "corpus": [f"{build}/tests/alone_test", f"{source}/tests/corpus/in"],
            "wrapped": [f"{source}/tests/wrapper", f"{build}/tests/alone_test"],
            "pytest": ["/bin/sh", "--programs", f"{build}/bin", f"{source}/tests/kind/one_test.py"],
            "shell": ["/bin/sh", "-c", f"{build}/bin/program | diff {source}/docs/shown.md -"],
            "sources": ["/bin/sh", f"{source}/tests/script.py"]}[kind]
        return Suite(kind, [Test(1, kind, command, {"WORKING_DIRECTORY": build, **properties})])

    def key(self, kind: str, machine=MACHINE, **properties) -> str:
        return digest(Inputs(self.source, self.build, machine).of(self.suite(kind, **properties)))


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "one")


KINDS = ["alone", "wrapped", "reader", "corpus", "pytest", "shell", "sources"]
# Path -> the kinds of suites that it is an input of.
INPUT_OF = {
    "build/dev/tests/alone_test": {"alone", "wrapped", "corpus"},
    "build/dev/tests/reader_test": {"reader"},
    "build/dev/tests/helper": {"reader", "pytest", "shell"},
    "build/dev/bin/program": {"reader", "pytest", "shell"},
    "build/dev/bin/bench-program": set(),  # built while tests run
    "build/dev/lib/simulated/lib.so": {"reader", "pytest", "shell"},
    "build/dev/share/data": {"reader", "pytest", "shell"},
    "build/dev/deploy/agent.service": {"reader", "pytest", "shell"},
    "build/dev/deploy/CMakeFiles/x": set(),  # contains the checkout's path
    "build/dev/deploy/cmake_install.cmake": set(),
    "docs/page.md": {"sources"},  # a page is an input of those that name it
    "docs/read.md": {"pytest", "sources"},
    "docs/linked.md": {"pytest", "sources"},  # by a page that the test itself names; once
    "docs/shown.md": {"shell", "sources"},
    "docs/help.md": {"pytest", "shell", "sources"},  # by a module that a test can import
    "docs/neighbour.md": {"sources"},  # named by another folder's test
    "docs/built.md": {"reader", "sources"},
    "docs/new.md": {"sources"},
    "build/dev/deploy/packages/changelog.gz": set(),
    "src/testdata/x": {"reader", "pytest", "shell", "sources"},
    "bench/program.cc": {"reader", "pytest", "shell", "sources"},
    "src/room/a.cc": {"reader", "pytest", "shell", "sources"},
    "src/room/a.h": {"reader", "pytest", "shell", "sources"},
    "src/room/a_test.cc": {"sources"},  # an input of the others only through the program built from it
    "src/room/testing/fake.h": {"sources"},
    "tests/kind/one_test.py": {"reader", "pytest", "shell", "sources"},
    "tests/kind/helper.py": {"reader", "pytest", "shell", "sources"},
    "tests/kind/shared_test.py": {"reader", "pytest", "shell", "sources"},
    "tests/kind/two_test.py": {"reader", "shell", "sources"},
    "tests/wrapper": {"wrapped", "reader", "pytest", "shell", "sources"},
    "tests/corpus/in/1": {"reader", "corpus", "pytest", "shell", "sources"},
    "tests/corpus/in/2": {"reader", "corpus", "pytest", "shell", "sources"},  # new
    "tests/corpus/out/1": {"reader", "pytest", "shell", "sources"},
}


@pytest.mark.parametrize("path", INPUT_OF)
def test_a_file_that_changes_makes_another_key_for_each_suite_that_can_read_it(checkout, path):
    before = {kind: checkout.key(kind) for kind in KINDS}
    file = checkout.source / path
    checkout.write(file, file.read_bytes() + b"!" if file.exists() else b"new")
    assert {kind for kind in KINDS if checkout.key(kind) != before[kind]} == INPUT_OF[path]


def test_a_suite_that_looks_for_pages_has_all_as_inputs(checkout):
    checkout.write(checkout.source / "tests/kind/helper.py", b"glob('*.md')")
    before = checkout.key("pytest")
    checkout.write(checkout.source / "docs/page.md", b"other")
    assert checkout.key("pytest") != before


@pytest.mark.parametrize("path", ["docs/read.md", "build/dev/lib/simulated/lib.so"])
def test_a_file_that_goes_makes_another_key(checkout, path):
    before = checkout.key("pytest")
    (checkout.source / path).unlink()
    assert checkout.key("pytest") != before


def test_a_file_that_becomes_executable_makes_another_key(checkout):
    before = checkout.key("pytest")
    (checkout.source / "tests/kind/helper.py").chmod(0o755)
    assert checkout.key("pytest") != before


@pytest.mark.parametrize("name", MACHINE)
@pytest.mark.parametrize("kind", KINDS)
def test_another_machine_makes_another_key(checkout, name, kind):
    assert checkout.key(kind, {**MACHINE, name: "other"}) != checkout.key(kind)


def test_another_command_or_property_makes_another_key(checkout):
    assert checkout.key("alone", TIMEOUT=5) != checkout.key("alone")
    suite = checkout.suite("alone")
    suite.tests.append(Test(2, "another case", suite.tests[0].command))
    with_case = digest(Inputs(checkout.source, checkout.build, MACHINE).of(suite))
    assert with_case != checkout.key("alone")


def test_equal_checkouts_in_different_places_have_equal_keys(checkout, tmp_path):
    other = Checkout(tmp_path / "some/other place")
    assert {kind: other.key(kind) for kind in KINDS} == {kind: checkout.key(kind) for kind in KINDS}


def test_without_git_the_files_are_found_too(checkout):
    before = checkout.key("sources")
    shutil.rmtree(checkout.source / ".git")
    assert checkout.key("sources") == before


def test_a_program_that_is_not_built_has_no_key(checkout):
    os.unlink(checkout.build / "tests/alone_test")
    assert Inputs(checkout.source, checkout.build, MACHINE).of(checkout.suite("alone")) is None
    no_command = Suite("x_NOT_BUILT", [Test(1, "x_NOT_BUILT", [])])
    assert Inputs(checkout.source, checkout.build, MACHINE).of(no_command) is None


# --- the machine
def test_a_machine_is_known_by_packages_kernel_user_and_downloads(monkeypatch):
    def machine(downloads="d"):
        return inputs.machine(downloads)
    before = machine()
    assert machine() == before and set(before) == set(MACHINE)
    assert changed(before, machine("e")) == {"downloads"}
    with monkeypatch.context() as patch:
        patch.setattr(inputs.platform, "release", lambda: "another kernel")
        assert changed(before, machine()) == {"kernel"}
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "_mounts", lambda: "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
        pure = machine()
        patch.setattr(inputs, "_mounts", lambda: "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n")
        assert changed(pure, machine()) == {"kernel"}
    with monkeypatch.context() as patch:
        patch.setattr(inputs.os, "getuid", lambda: 12345)
        assert changed(before, machine()) == {"user"}
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "_output", lambda *command: "podman 99.9")
        assert changed(before, machine()) == {"packages"}


@pytest.mark.parametrize("tool", ["podman", "runc", "crun", "prometheus", "g++", "cc", "python3"])
def test_another_version_of_a_tool_is_another_machine(tool, tmp_path, monkeypatch):
    """Also finds a tool that no package installed."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = inputs.machine("")
    (tmp_path / tool).write_text("#!/bin/sh\n")
    (tmp_path / tool).chmod(0o755)
    installed = inputs.machine("")
    assert changed(before, installed) == {"tools"}
    (tmp_path / tool).write_text("#!/bin/sh\n# newer\n")
    assert changed(installed, inputs.machine("")) == {"tools"}


def changed(before: dict, after: dict) -> set[str]:
    return {name for name in before if before[name] != after[name]}
