"""Fault injection into `penstock runtime configure`. Each call on a file of an engine or of its own
fails once, and once kills the program. The tests assert that the engine's configuration is then the
old one or the new one, and that the next call completes or reverts the change. Needs root.

By default a subset of the points is tried; `--every-fault` tries all of them. faults_points.json
records the number of points, which must not decrease; `--count-faults` writes it."""
import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from faults import KILL, Faults, Point, chosen, counted  # noqa: E402

PATIENCE = 60
NAMES = ((r"(/\.[^/]+)\.[A-Za-z0-9]{6}$", r"\1.*"),)  # random parts of paths


def test_an_engine_is_configured_or_left_alone_whatever_fails(request, tmp_path, capsys):
    programs = request.config.getoption("--programs").resolve()
    config, memory, links = tmp_path / "engine/daemon.json", tmp_path / "memory", tmp_path / "links"
    first = '{"features": {"buildkit": true}}\n'
    wanted = ("--cdi.enabled", "--runtime-path", "/opt/penstock/penstock-runtime", "--nvidia-runtime-hook-path", programs / "penstock-hook",
              "--gpus-links", links)
    config.parent.mkdir()
    links.mkdir()

    def linked() -> int:
        """The number of links; asserts that the folder contains nothing else."""
        return len([path.readlink() for path in links.iterdir()])

    def run(verb: str, *words, wrapper: tuple = ()):
        command = [*wrapper, programs / "penstock", "runtime", verb, "--runtime", "docker", "--config", config, "--config-source", "file",
                   "--restart-mode", "none", "--state-dir", memory, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def configure(point: Point | None):
        config.write_text(first)
        shutil.rmtree(memory, ignore_errors=True)  # so that each call creates its folders
        for link in links.iterdir():
            link.unlink()
        faults = Faults(tmp_path, {"engine": config.parent, "links": links, "state": memory}, NAMES)
        faults.look(point)
        done = run("configure", *wanted, wrapper=faults.wrapper())
        faults.close()
        return done, faults

    written = ""

    def observe() -> list[Point]:
        nonlocal written
        done, faults = configure(None)
        assert done.returncode == 0, done.stderr
        written = config.read_text()
        assert linked() == 2
        assert run("unconfigure").returncode == 0 and config.read_text() == first and linked() == 0
        return faults.stop()

    points = counted(request, "configure", lambda least: observe())
    for point in (tried := chosen(points, request)):
        done, faults = configure(point)
        assert faults.hit, f"{point} was not reached"
        assert config.read_text() in (first, written), point
        if point.action == KILL:
            assert done.returncode == -signal.SIGKILL
        elif done.returncode != 0:
            assert os.strerror(getattr(errno, point.action)) in done.stderr and str(tmp_path) in done.stderr, f"{point}: {done.stderr}"
        again = run("configure", *wanted)
        assert again.returncode == 0 and config.read_text() == written and linked() == 2, f"{point}: {again.stderr}"
        back = run("unconfigure")
        assert back.returncode == 0 and config.read_text() == first and linked() == 0, f"{point}: {back.stderr}"
        assert not list((memory / "engines").glob("docker*")), point
    with capsys.disabled():
        print(f"\nconfigure: {len(points)} points, {len(tried)} tried")
