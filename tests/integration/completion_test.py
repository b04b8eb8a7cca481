"""Shell completion: bash, fish and zsh complete command lines with the script that `penstock completion SHELL` prints."""
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

DEADLINE = 60


@pytest.fixture
def home(request, tmp_path):
    """A folder with the completion scripts, and an environment with the program on the PATH."""
    programs = request.config.getoption("--programs").resolve()
    for program in ("penstock", "nvidia-mig-parted"):
        for shell, name in (("bash", f"{program}.bash"), ("zsh", f"_{program}"), ("fish", f"{program}.fish")):
            done = subprocess.run([programs / program, "completion", shell], capture_output=True, text=True, check=True)
            (tmp_path / name).write_text(done.stdout)
    (tmp_path / "node.yaml").write_text("")
    (tmp_path / "environment").mkdir()
    return tmp_path


def environment(home: Path) -> dict:
    return {"HOME": str(home / "environment"), "ZDOTDIR": str(home / "environment"), "PATH": "/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8"}


def bash(home: Path, line: str) -> set[str]:
    words = line.split(" ")
    function = "_" + words[0].replace("-", "_")
    script = (f"source {home}/{words[0]}.bash; complete -p {words[0]} >&2; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; {function}; "
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return set(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=home, env=environment(home)).stdout.split())


def fish(home: Path, line: str) -> set[str]:
    done = subprocess.run(["fish", "--no-config", "-c", f"source {home}/{line.split()[0]}.fish; complete -C'{line}'"], capture_output=True, text=True,
                          check=True, cwd=home, env=environment(home))
    assert not done.stderr, done.stderr
    return {offered.split("\t")[0] for offered in done.stdout.splitlines()}


def zsh(home: Path, line: str) -> set[str]:
    """Completes at a prompt on a terminal, which zsh requires. The offers are printed between two marks."""
    start = (f"fpath=({home} $fpath); autoload -Uz compinit; compinit -u -d {home}/dump; PS1=''; unsetopt zle_bracketed_paste; "
             "zstyle ':completion:*' list-grouped false; zstyle ':completion:*' verbose false; bindkey -r '^I'; "
             "show() { compadd() { builtin compadd -O offered \"$@\"; print -r -- \"OFFER ${(j: :)offered}\"; builtin compadd \"$@\" }; "
             "_main_complete; unfunction compadd; print END }; zle -C show complete-word show; bindkey '^I' show; print READY-$((1+1))\n")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment(home))
    try:
        os.write(terminal, start.encode())
        read(terminal, "READY-2")
        os.write(terminal, line.encode() + b"\t")
        shown = read(terminal, "END")
    finally:
        os.close(terminal)
        os.kill(process, 9)
        os.waitpid(process, 0)
    return {word for offer in shown.replace("\r", "").split("OFFER ")[1:] for word in offer.split("\n")[0].split()}


def read(terminal: int, until: str) -> str:
    text, deadline = "", time.monotonic() + DEADLINE
    while until not in text:
        assert time.monotonic() < deadline, f"waited in vain for {until}; saw {text!r}"
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


SHELLS = pytest.mark.parametrize("complete", [bash, zsh, fish])


@SHELLS
def test_a_verb_is_completed(home, complete):
    assert complete(home, "penstock sta") == {"status"}
    assert {"up", "down", "run", "ps", "config"} <= complete(home, "penstock ")


@SHELLS
def test_options_of_the_verb_and_of_the_program_are_completed(home, complete):
    assert {"--detach", "--run-dir"} <= complete(home, "penstock up --") | complete(home, "penstock up --d") | complete(home, "penstock up --r")
    assert "--detach" not in complete(home, "penstock down --d")


@SHELLS
def test_what_a_value_or_a_word_can_be_is_completed(home, complete):
    assert complete(home, "penstock status --output ") == {"table", "wide", "json", "yaml", "name", "jsonpath="}
    assert complete(home, "penstock usage --output ") >= {"csv", "json"} and "wide" not in complete(home, "penstock usage --output ")
    assert {"bash", "zsh", "fish"} <= complete(home, "penstock completion ")
    assert "check" in complete(home, "penstock config ch")
    assert "--share" in complete(home, "penstock run --sh")
    assert complete(home, "penstock assi") == {"assign"} and not complete(home, "penstock doo")
    assert "kubelet" in complete(home, "penstock assign 3 ku")
    assert "--dry-run" in complete(home, "penstock assign 3 --dry")
    assert {"auto", "management", "wsl"} <= complete(home, "penstock cdi generate --mode ")
    assert complete(home, "penstock cdi generate --format ") == {"yaml", "json"}
    assert "--device-name-strategy" in complete(home, "penstock cdi generate --device-n")
    assert "generate" in complete(home, "penstock cdi gen") and "root" in complete(home, "penstock cdi transform ro")
    assert "--relative-to" in complete(home, "penstock cdi transform root --rel")


@SHELLS
def test_the_name_of_nvidias_program_is_completed(home, complete):
    assert complete(home, "nvidia-mig-parted ") >= {"apply", "assert", "export", "generate-config", "checkpoint", "restore", "help", "completion"}
    assert "run" not in complete(home, "nvidia-mig-parted ")
    assert complete(home, "nvidia-mig-parted app") == {"apply"}
    assert "--skip-reset" in complete(home, "nvidia-mig-parted apply --sk")
    assert complete(home, "nvidia-mig-parted export --output-format ") == {"yaml", "json"}


@SHELLS
def test_a_program_option_before_the_verb_does_not_hide_it(home, complete):
    assert complete(home, "penstock --run-dir /tmp sta") == {"status"}


def test_files_are_offered_where_files_are_wanted(home):
    assert "node.yaml" in zsh(home, "penstock config check no")
    assert "node.yaml" in fish(home, "penstock config check no")
    assert "node.yaml" not in fish(home, "penstock status no")
    assert "node.yaml" in zsh(home, "penstock cdi generate --output no")
    assert "node.yaml" in fish(home, "penstock cdi generate --output no")
    assert not {"table", "wide"} & bash(home, "penstock cdi generate --output ")
