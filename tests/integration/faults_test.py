"""Each call that `penstock runtime configure` makes on files of an engine or of its own fails once,
and once kills it. Afterwards the engine's configuration is the old one or the new one, and the next
run has all of it or takes all of it back. As root.

By default a part of the points is tried, another one with each commit; `--every-fault` tries all of
them. faults_points.json has how many there are, which must not become fewer; `--count-faults` writes
it."""
import errno
import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from faults import ERRORS, KILL, NEW, Faults, Point  # noqa: E402

POINTS = Path(__file__).with_name("faults_points.json")
PATIENCE = 60
SHARE = 16  # of all points, in a run that does not try each
MOST_OF_ONE_CALL = 2  # what comes after that on the same file is the same loop again
NAMES = ((r"(/\.[^/]+)\.[A-Za-z0-9]{6}$", r"\1.*"),)  # what is random in paths


def actions(call: str) -> tuple:
    return (*ERRORS.get(call, NEW), KILL)


def points_of(seen: list[Point]) -> list[Point]:
    calls = {point for point in seen if point.occurrence <= MOST_OF_ONE_CALL}
    return [Point(call.call, call.path, call.occurrence, action) for call in sorted(calls) for action in actions(call.call)]


def chosen(points: list[Point], request) -> list[Point]:
    """All, or with each commit other ones, and one at least of each call."""
    if request.config.getoption("--every-fault"):
        return points
    commit = subprocess.run(["git", "-C", Path(__file__).parent, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()

    def rank(point: Point) -> int:
        return zlib.crc32(f"{commit} {point}".encode())
    first = {point.call: point for point in sorted(points, key=rank, reverse=True)}
    return sorted({*first.values(), *(point for point in points if rank(point) % SHARE == 0)})


def count(request, name: str, points: list[Point]):
    """What is recorded must not become less."""
    recorded = json.loads(POINTS.read_text()) if POINTS.exists() else {}
    if request.config.getoption("--count-faults"):
        POINTS.write_text(json.dumps(recorded | {name: len(points)}, indent=1, sort_keys=True) + "\n")
        print(*points, sep="\n")
    else:
        assert len(points) >= recorded[name], f"there were {recorded[name]} points in {name}, now there are {len(points)}"


def test_an_engine_is_configured_or_left_alone_whatever_fails(request, tmp_path, capsys):
    programs = request.config.getoption("--programs").resolve()
    config, memory = tmp_path / "engine/daemon.json", tmp_path / "memory"
    first = '{"features": {"buildkit": true}}\n'
    config.parent.mkdir()

    def run(verb: str, *words, wrapper: tuple = ()):
        command = [*wrapper, programs / "penstock", "runtime", verb, "--runtime", "docker", "--config", config, "--config-source", "file",
                   "--restart-mode", "none", "--state-dir", memory, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def configure(point: Point | None):
        config.write_text(first)
        faults = Faults(tmp_path, {"engine": config.parent, "state": memory}, NAMES)
        faults.look(point)
        done = run("configure", "--cdi.enabled", "--runtime-path", "/opt/penstock/penstock-runtime", wrapper=faults.wrapper())
        faults.close()
        return done, faults

    done, faults = configure(None)
    assert done.returncode == 0, done.stderr
    written, points = config.read_text(), points_of(faults.stop())
    assert run("unconfigure").returncode == 0 and config.read_text() == first
    count(request, "configure", points)
    for point in (tried := chosen(points, request)):
        done, faults = configure(point)
        assert faults.hit, f"{point} was not reached"
        assert config.read_text() in (first, written), point
        if point.action == KILL:
            assert done.returncode == -signal.SIGKILL
        elif done.returncode != 0:
            assert os.strerror(getattr(errno, point.action)) in done.stderr and str(tmp_path) in done.stderr, f"{point}: {done.stderr}"
        again = run("configure", "--cdi.enabled", "--runtime-path", "/opt/penstock/penstock-runtime")
        assert again.returncode == 0 and config.read_text() == written, f"{point}: {again.stderr}"
        back = run("unconfigure")
        assert back.returncode == 0 and config.read_text() == first, f"{point}: {back.stderr}"
        assert not list((memory / "engines").glob("*.json")), point
    with capsys.disabled():
        print(f"\nconfigure: {len(points)} points, {len(tried)} tried")
