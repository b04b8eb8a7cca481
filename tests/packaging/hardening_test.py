"""The programs and libraries that this build installs, judged by their files: an attacker who finds a mistake in one must not find a known
address, a writable table of functions or an unchecked buffer as well (cmake/Penstock.cmake has the options). Starts nothing."""
import re
import subprocess
from pathlib import Path

import pytest
from elf_files import DF_1_NOW, DF_1_PIE, DF_BIND_NOW, DF_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1, DT_TEXTREL, ET_DYN, PF_W, PF_X, PT_GNU_RELRO, \
    PT_GNU_STACK, PT_INTERP, PT_LOAD, Elf

ENDBR64 = b"\xf3\x0f\x1e\xfa"  # where an indirect jump may lead (Intel's CET)
BTI_C, PACIASP = b"\x5f\x24\x03\xd5", b"\x3f\x23\x03\xd5"  # the same of arm64, and a signed address to return to
STATIC = {"penstock-hook", "penstock-runtime", "penstock-probe"}


def installed(programs: Path) -> dict[str, Path]:
    """What `cmake --install` would copy, by CMake's own scripts, simulated hardware excepted: it runs on developers' machines alone."""
    texts = [file.read_text() for file in sorted(programs.parent.glob("**/cmake_install.cmake")) if "sim" not in file.relative_to(programs.parent).parts]
    files = {Path(path) for text in texts for path in re.findall(r'TYPE (?:EXECUTABLE|SHARED_LIBRARY|MODULE)[^"]*FILES "([^"]+)"', text)}
    return {file.name: file for file in files}


def complaints(elf: Elf) -> list[str]:
    """Everything about a file that makes an attack easier than it must be."""
    is_program = bool(elf.of_kind(PT_INTERP)) or elf.name in STATIC
    stack = elf.of_kind(PT_GNU_STACK)
    now = elf.values(DT_BIND_NOW) or elf.flags(DT_FLAGS) & DF_BIND_NOW or elf.flags(DT_FLAGS_1) & DF_1_NOW
    marks = elf.bytes.count(ENDBR64) if elf.bytes[18:20] == b"\x3e\0" else elf.bytes.count(BTI_C) + elf.bytes.count(PACIASP)
    wrong = {
        "is loaded at a fixed address": elf.type != ET_DYN or (is_program and not elf.flags(DT_FLAGS_1) & DF_1_PIE),
        "has an executable stack": len(stack) != 1 or stack[0][1] & PF_X,
        "has memory that is written and executed": any(flags & PF_X and flags & PF_W for _, flags, *_ in elf.of_kind(PT_LOAD)),
        "changes its own code as it is loaded": elf.values(DT_TEXTREL) or elf.flags(DT_FLAGS) & DF_TEXTREL,
        "has tables that stay writable": not elf.of_kind(PT_GNU_RELRO),
        "looks functions up as they are called": not now,
        "does not guard its stack": b"__stack_chk_fail" not in elf.bytes and b"stack smashing detected" not in elf.bytes,
        "does not check the sizes of buffers": not re.search(rb"__(mem|str|read|snprintf|vsnprintf|vfprintf|fprintf|fd)\w*_chk\b|buffer overflow detected", elf.bytes),
        "does not check the bounds of containers": is_program and elf.name != "penstock-probe" and b"__glibcxx_assert_fail" not in elf.bytes
        and b"Assertion '%s' failed" not in elf.bytes,
        "does not mark where jumps may lead": marks < 20,
        "searches libraries elsewhere": any(not path.startswith("$ORIGIN") for path in elf.search_path()),
        "loads libraries although it is static": elf.name in STATIC and (elf.needed() or elf.of_kind(PT_INTERP)),
    }
    return [what for what, so in wrong.items() if so]


def test_every_program_and_library_that_ships_is_hardened(request):
    programs = Path(request.config.getoption("--programs")).resolve()
    files = installed(programs)
    assert {"penstock", "penstock-agent", "penstock-worker", *STATIC} <= files.keys()
    missing = [name for name, file in files.items() if not file.exists()]
    assert not missing, f"not built: {missing}"
    print(*sorted(files))
    assert {name: found for name, file in sorted(files.items()) if (found := complaints(Elf(file)))} == {}


SOURCE = "#include <string.h>\n#include <stdio.h>\nint main(int count, char** words) { char text[99]; strcpy(text, words[0]); return puts(text) + count; }\n"


@pytest.mark.parametrize("options, complaint", [
    (["-no-pie"], "is loaded at a fixed address"), (["-Wl,-z,execstack"], "has an executable stack"), (["-Wl,-z,norelro"], "has tables that stay writable"),
    (["-Wl,-z,lazy"], "looks functions up as they are called"), (["-fno-stack-protector"], "does not guard its stack"),
    (["-U_FORTIFY_SOURCE"], "does not check the sizes of buffers"), (["-fcf-protection=none", "-mbranch-protection=none"], "does not mark where jumps may lead"),
    (["-Wl,-rpath,/tmp/elsewhere"], "searches libraries elsewhere")])
def test_each_option_that_is_left_out_would_be_found(tmp_path, options, complaint):
    file = tmp_path / "program"
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip()
    options = [option for option in options if option != ("-mbranch-protection=none" if machine == "x86_64" else "-fcf-protection=none")]
    (tmp_path / "program.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-pie", "-fPIE", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now", *options, "-o", file,
                    tmp_path / "program.c"], check=True, capture_output=True)
    assert complaint in complaints(Elf(file))
