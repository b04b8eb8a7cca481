"""The Debian packages and the tarball: what is in them, and installing, upgrading, removing and
purging them in a bare Debian 12 without systemd or a network, with an agent on a simulated machine."""
import gzip
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from debian import Debian, unpack

SOURCE = Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/compat"))

import cgroups  # noqa: E402
import frozen  # noqa: E402
from node import wait_until  # noqa: E402

LARGEST = 12 << 20  # bytes, of all packages together
NAMES = {"penstock", "penstock-agent", "penstock-tools", "penstock-container-toolkit", "penstock-mig-parted"}
CONFIG = "etc/penstock/node.yaml"
STATE, RUN = "var/lib/penstock", "run/penstock"


# --- the packages ------------------------------------------------------------------------------
def cpack(programs: Path, into: Path, *options) -> list[Path]:
    """Packages of the build that these programs are of."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1750000000"}
    done = subprocess.run(["cpack", "--config", programs.parent / "CPackConfig.cmake", "-B", into,
                           *options], capture_output=True, text=True, env=environment, cwd=into)
    assert done.returncode == 0, done.stdout + done.stderr
    return [*into.glob("*.deb"), *into.glob("*.tar.gz")]


@pytest.fixture(scope="session")
def programs(request) -> Path:
    return Path(request.config.getoption("--programs")).resolve()


@pytest.fixture(scope="session")
def made(programs, tmp_path_factory) -> list[Path]:
    return cpack(programs, tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def debs(made) -> dict[str, Path]:
    """The Debian packages by their names."""
    debs = {file.name.split("_")[0]: file for file in made if file.suffix == ".deb"}
    assert debs.keys() == NAMES
    return debs


@pytest.fixture(scope="session")
def tarball(made) -> Path:
    archive, = (file for file in made if file.name.endswith(".tar.gz"))
    return archive


def members(deb: Path) -> dict[str, tarfile.TarInfo]:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as unpacked:
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive:
            return {one.name.removeprefix("./").rstrip("/"): one for one in archive}


def test_all_packages_together_are_small(debs):
    sizes = {name: file.stat().st_size for name, file in debs.items()}
    print(sizes, sum(sizes.values()))
    assert sum(sizes.values()) < LARGEST


def test_files_belong_to_root_and_only_root_can_change_them(debs):
    wrong = []
    for name, deb in debs.items():
        for path, one in members(deb).items():
            wanted = {0o777} if one.issym() else {0o755} if one.isdir() else {0o644, 0o755}
            if one.uid or one.gid or one.mode not in wanted:
                wrong.append(f"{name}: {path} {one.mode:o} {one.uid}:{one.gid}")
    assert wrong == []


def test_each_package_has_its_licences_changes_and_checksums(debs, tmp_path):
    seen = {}
    for name, deb in debs.items():
        files = {path: one for path, one in members(deb).items() if not one.isdir()}
        for path in files:
            assert path not in seen, f"{path} is in {name} and in {seen[path]}"
            seen[path] = name
        assert {f"usr/share/doc/{name}/{file}" for file in ("copyright", "changelog.gz")} <= files.keys()
        control = tmp_path / name
        subprocess.run(["dpkg-deb", "-R", deb, control], check=True)
        assert gzip.decompress((control / f"usr/share/doc/{name}/changelog.gz").read_bytes()) == (SOURCE / "CHANGELOG.md").read_bytes()
        sums = dict(reversed(line.split(maxsplit=1)) for line in
                    (control / "DEBIAN/md5sums").read_text().splitlines())
        for path, one in files.items():
            if one.isreg():
                assert sums[path] == hashlib.md5((control / path).read_bytes()).hexdigest(), path
                assert str(SOURCE).encode() not in (control / path).read_bytes(), path
    licences = (tmp_path / "penstock-agent/usr/share/doc/penstock-agent/copyright").read_text()
    for library in (SOURCE / "deploy/linked.txt").read_text().split():
        assert f"\n{library}, linked into the programs\n" in licences


def test_programs_and_texts_are_where_debian_looks_for_them(debs, programs):
    files = {name: set(members(deb)) for name, deb in debs.items()}
    assert {"usr/bin/penstock-agent", "usr/bin/penstock-worker", CONFIG,
            "lib/systemd/system/penstock-agent.service"} <= {
        path.removeprefix("usr/") if path.startswith("usr/lib/systemd") else path
        for path in files["penstock-agent"]}
    assert {"usr/bin/penstock", "usr/bin/penstock-probe", "usr/bin/kubectl-penstock",
            "usr/bin/kubectl_complete-penstock",
            "usr/share/bash-completion/completions/penstock",
            "usr/share/zsh/vendor-completions/_penstock",
            "usr/share/fish/vendor_completions.d/penstock.fish"} <= files["penstock-tools"]
    assert {"usr/bin/penstock-hook",
            "usr/bin/penstock-runtime"} <= files["penstock-container-toolkit"]
    assert {"usr/share/man/man1/penstock.1.gz",
            "usr/share/man/man1/penstock-cdi-generate.1.gz"} <= files["penstock-tools"]
    assert "usr/share/man/man8/penstock-agent.8.gz" in files["penstock-agent"]
    assert members(debs["penstock-mig-parted"])["usr/bin/nvidia-mig-parted"].linkname == "penstock"
    assert {"usr/share/bash-completion/completions/nvidia-mig-parted", "usr/share/zsh/vendor-completions/_nvidia-mig-parted",
            "usr/share/fish/vendor_completions.d/nvidia-mig-parted.fish"} <= files["penstock-mig-parted"]


def test_man_pages_are_well_formed(programs, tmp_path):
    subprocess.run([programs / "penstock", "help", "--man", tmp_path], check=True)
    pages = sorted(tmp_path.iterdir())
    assert len(pages) > 30
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "error", *pages], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    shown = subprocess.run(["mandoc", "-T", "utf8", tmp_path / "penstock-status.1"], capture_output=True, text=True, check=True)
    assert "penstock status [OPTIONS]" in shown.stdout and "--check" in shown.stdout


def test_the_image_has_the_programs_and_libraries_of_the_packages(debs):
    """deploy/image/build takes them from a build's folder, where install rules do not apply. The operator runs in a
    cluster only, so that no package has it."""
    sys.path.append(str(SOURCE / "deploy/image"))
    loader = importlib.machinery.SourceFileLoader("image_build", str(SOURCE / "deploy/image/build"))
    image = importlib.util.module_from_spec(importlib.util.spec_from_loader("image_build", loader))
    loader.exec_module(image)
    files = [path for deb in debs.values() for path, one in members(deb).items() if one.isreg()]
    for folder, wanted in (("usr/bin", set(image.PROGRAMS) - {"penstock-operator"}), ("usr/lib/penstock", set(image.OWN))):
        assert {Path(path).name for path in files if str(Path(path).parent) == folder} == wanted


def test_the_same_build_makes_the_same_packages(programs, debs, tmp_path):
    again = {file.name: file for file in cpack(programs, tmp_path, "-G", "DEB")}
    for deb in debs.values():
        assert again[deb.name].read_bytes() == deb.read_bytes(), deb.name


def changed(deb: Path, folder: Path, version: str, config: str = "") -> Path:
    """The package under another version; the agent's with another configuration."""
    tree = folder / version / deb.name
    tree.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    ours = re.search(r"^Version: (.+)$", control.read_text(), re.M)[1]
    control.write_text(control.read_text().replace(ours, version))
    if config and (tree / CONFIG).exists():
        (tree / CONFIG).write_text(config)
    made = folder / version / f"new-{deb.name}"
    subprocess.run(["dpkg-deb", "--build", "-Z", "gzip", "-z1", tree, made], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return made


@pytest.fixture(scope="session")
def older(debs, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("older")
    return {name: changed(deb, folder, "0.0.9", "# of 0.0.9\napiVersion: penstock.io/v1alpha1\n"
                          "kind: NodeConfig\n") for name, deb in debs.items()}


# --- installing them ---------------------------------------------------------------------------
@pytest.fixture(scope="session")
def tree(tmp_path_factory) -> Path:
    return unpack(tmp_path_factory.mktemp("debian"))


@pytest.fixture
def debian(tree, tmp_path):
    debian = Debian(tree, tmp_path / "debian")
    yield debian
    debian.end()


class Agent:
    """The installed agent on a simulated machine. The simulator comes from the tarball."""

    SIM, PENSTOCK = "/opt/penstock/bin/penstock-sim", "/opt/penstock/bin/penstock"

    def __init__(self, debian: Debian, tarball: Path):
        self.debian, self.program = debian, None
        debian.path("opt/penstock").mkdir()
        subprocess.run(["tar", "-xzf", tarball, "-C", debian.path("opt/penstock"),
                        "--strip-components=1"], check=True)

    def start(self, machine: str = "dgx-a100"):
        if not self.debian.path("machine").exists():
            self.debian.run(self.SIM, "--root", "/machine", "start", machine)
        self.program = self.debian.start(
            "env", "CONFIG_FILE=/etc/penstock/node.yaml", "/usr/bin/penstock-agent",
            "--driver-root", "/machine",
            "--dev-root", "/machine", "--sysfs-root", "/machine/sys", "--kubelet-dir", "/none",
            "--cdi-root", "/run/cdi", "--listen", "off")
        wait_until(lambda: self.usable() or self.program.poll() is not None, "usable devices",
                   seen=self.debian.log)
        assert self.program.poll() is None, self.debian.log()

    def report(self) -> dict:
        done = self.debian.run(self.PENSTOCK, "status", "-o", "json", check=False, quiet=True)
        return json.loads(done.stdout) if done.returncode == 0 else {"devices": []}

    def usable(self) -> list:
        return [one for one in self.report()["devices"] if one["health"]["state"] == "healthy"]

    def stop(self):
        self.program.terminate()
        assert self.program.wait(60) == 0, self.debian.log()

    def holders(self) -> list:
        return json.loads(self.debian.run(self.PENSTOCK, "ps", "-o", "json",
                                          quiet=True).stdout)["holders"]

    def hold(self) -> subprocess.Popen:
        run = self.debian.start("penstock", "run", "--gpus", "1", "--", "sleep", "100000")
        wait_until(lambda: self.holders(), "a GPU to be held", seen=self.debian.log)
        return run


@pytest.fixture
def agent(debian, tarball):
    agent = Agent(debian, tarball)
    yield agent
    for process in debian.started:
        process.kill()
        process.wait()
    for top in cgroups.mounts():
        for group in [*top.rglob("penstock"), *top.rglob("penstock.*")]:
            for one in cgroups.below(group):
                wait_until(lambda one=one: not (one / "cgroup.procs").exists()
                           or not (one / "cgroup.procs").read_text(), "a group to be empty")
                one.rmdir()
    debian.run(agent.SIM, "--root", "/machine", "stop", check=False)


def group_of(pid: int) -> Path:
    """The version 2 control group of a process."""
    at = next(top for top in cgroups.mounts() if (top / "cgroup.controllers").exists())
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return at / next(line for line in lines if line.startswith("0::")).removeprefix("0::/")


def version(debian: Debian) -> str:
    return debian.run("penstock", "--version").stdout.split()[1]


def test_they_are_installed_without_a_network_and_the_agent_serves(debian, debs, agent):
    debian.install(*debs.values())
    assert version(debian) == re.search(r"penstock VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    wants = debian.path("etc/systemd/system/multi-user.target.wants/penstock-agent.service")
    assert wants.is_symlink(), "the agent starts with the machine"
    debian.run("penstock", "config", "check", f"/{CONFIG}")
    agent.start()
    wait_until(lambda: len(agent.usable()) == 8, "all GPUs to be healthy", seen=debian.log)
    words = "COMP_WORDS=(penstock sta); COMP_CWORD=1; _penstock penstock sta; echo ${COMPREPLY[@]}"
    done = debian.run("bash", "-c", f". /usr/share/bash-completion/completions/penstock; {words}")
    assert "status" in done.stdout.split()
    agent.stop()


def test_purging_them_leaves_nothing(debian, debs, agent):
    before = debian.files()
    debian.install(*debs.values())
    agent.start()
    agent.hold().kill()
    agent.stop()
    assert (debian.path(STATE) / "ledger.json").exists() and list(debian.path("run/cdi").iterdir())
    debian.run("apt-get", "-y", "remove", *NAMES)
    assert (debian.path(STATE) / "ledger.json").exists(), "removal keeps the state"
    assert debian.path(CONFIG).exists() and not debian.path("usr/bin/penstock-agent").exists()
    said = debian.run("dpkg", "--purge", "penstock-agent").stdout
    assert "penstock-agent:" not in said
    left = debian.files()
    assert {path: left.get(path) for path in left.keys() ^ before.keys()
            if not path.startswith("machine")} == {}
    assert before == {path: left[path] for path in before}
    assert not debian.path(RUN).exists() and not list(debian.path("run/cdi").iterdir())


def test_state_of_0_1_0_is_taken_over(debian, debs, agent):
    """As after a reboot: tests/compat has the runs that go on."""
    version = frozen.HERE / "0.1.0"
    for file in (version / "state").rglob("*.json*"):
        target = debian.path(STATE) / file.relative_to(version / "state")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_text(re.sub(r"@[A-Z_]+@", "1", file.read_text()))
    debian.install(*debs.values())
    agent.start(*debian.put(frozen.MACHINE))
    facts = json.loads((version / "facts.json").read_text())
    usage = debian.run("penstock", "usage", "-o", "json", "--by", "label:experiment").stdout
    before, now = ({row["by"]["label:experiment"] for row in one["usage"]["rows"]}
                   for one in (facts, json.loads(usage)))
    assert before and before <= now
    moved, = (one for one in agent.report()["devices"] if one["index"] == facts["moved"])
    print(moved)
    assert "damaged" not in debian.log()
    agent.stop()


def test_a_program_keeps_its_gpu_through_an_upgrade_and_the_restart_of_the_agent(
        debian, debs, older, agent):
    debian.install(*older.values())
    agent.start()
    run = agent.hold()
    group, held = group_of(run.pid), agent.holders()
    debian.install(*debs.values())
    assert run.poll() is None and group_of(run.pid) == group
    agent.stop()
    agent.start()
    assert run.poll() is None and group_of(run.pid) == group
    assert [one["device"] for one in agent.holders()] == [one["device"] for one in held]
    run.kill()
    wait_until(lambda: not agent.holders(), "the GPU to be released")
    agent.stop()


def test_an_upgrade_keeps_a_configuration_edited_by_hand(debian, debs, older):
    debian.install(*older.values())
    mine = debian.path(CONFIG).read_text() + "health: {poll: 7s}\n"
    debian.path(CONFIG).write_text(mine)
    debian.run("dpkg", "--force-confold", "-i", *debian.put(*debs.values()))
    assert debian.path(CONFIG).read_text() == mine
    new = debian.path(CONFIG + ".dpkg-dist")
    assert new.read_text() == (SOURCE / "deploy/packages/node.yaml").read_text()
    debian.run("dpkg", "--purge", *NAMES)
    assert not debian.path("etc/penstock").exists()


def test_an_upgrade_replaces_a_configuration_that_nobody_edited(debian, debs, older):
    debian.install(*older.values())
    debian.install(*debs.values())
    assert debian.path(CONFIG).read_text() == (SOURCE / "deploy/packages/node.yaml").read_text()


def test_an_agent_that_the_administrator_disabled_stays_disabled(debian, debs, older):
    wants = debian.path("etc/systemd/system/multi-user.target.wants/penstock-agent.service")
    debian.install(*older.values())
    wants.unlink()
    debian.install(*debs.values())
    assert not wants.is_symlink()


def test_an_interrupted_installation_is_completed_later(debian, debs):
    debian.run("dpkg", "--unpack", *debian.put(*debs.values()))
    debian.run("dpkg", "--configure", "-a")
    assert version(debian)
    states = debian.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}\n", *NAMES).stdout.split()
    assert states == ["ii"] * len(NAMES)


def test_the_agent_without_the_rest_starts_and_a_workstation_needs_no_agent(debian, debs, agent):
    debian.install(debs["penstock-agent"])
    assert debian.run("penstock-agent", "--version").returncode == 0
    refused = debian.run("apt-get", "-y", "--no-remove", "purge", "penstock-tools", check=False)
    assert "penstock-agent" not in [line.strip(" *") for line in refused.stdout.splitlines()]
    control = subprocess.run(["dpkg-deb", "-f", debs["penstock-tools"], "Depends"],
                             capture_output=True, text=True).stdout
    assert re.search(r"libcurl4 \| penstock-agent", control)


# --- purging what is in use, and what others put there -------------------------------------------
def test_a_purge_names_the_programs_that_hold_gpus_and_leaves_them_alone(debian, debs, agent):
    debian.install(*debs.values())
    agent.start()
    run = agent.hold()
    group = group_of(run.pid)
    agent.stop()
    said = debian.run("dpkg", "--purge", *NAMES).stdout
    assert re.search(rf"keep them until they end:.*\b{run.pid}\b", said)
    assert run.poll() is None and group_of(run.pid) == group and group.exists()
    assert not debian.path(STATE).exists()


def test_a_purge_beside_a_running_agent_keeps_its_files_and_says_so(debian, debs, agent):
    debian.install(*debs.values())
    agent.start()
    (debian.path(STATE) / "note").touch()
    said = debian.run("dpkg", "--purge", *NAMES).stdout
    assert "an agent is running" in said
    assert agent.program.poll() is None and (debian.path(STATE) / "note").exists()
    assert (debian.path(RUN) / "penstock.sock").exists()
    agent.stop()


def others_files(debian: Debian) -> Path:
    folder = debian.path("home/alice/data")
    folder.mkdir(parents=True)
    (folder / "results").write_text("of a year")
    return folder


def test_a_purge_follows_no_link_that_a_user_put_into_the_state(debian, debs):
    data = others_files(debian)
    debian.install(*debs.values())
    state, run = debian.path(STATE), debian.path(RUN)
    for folder in (state, run):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        (folder / "link").symlink_to("/home/alice/data")
        (folder / "-rf ..").write_text("")
        (folder / "a\nb").symlink_to("/home/alice/data/results")
        (folder / "usage").mkdir()
        (folder / "usage" / "up").symlink_to("/home/alice")
    (run / "agent.lock").symlink_to("/home/alice/made-by-root")
    (state / "engines").symlink_to("/home/alice/data")
    (data / "journal.json").write_text("{}")
    os.mkfifo(run / "fifo")
    debian.run("dpkg", "--purge", *NAMES)
    assert (data / "results").read_text() == "of a year" and (data / "journal.json").exists()
    assert not debian.path("home/alice/made-by-root").exists()
    assert not run.exists()


def test_a_purge_of_a_state_folder_that_is_a_link_removes_the_link_alone(debian, debs):
    data = others_files(debian)
    (data / "engines").mkdir()
    (data / "engines" / "docker.json").write_text("{}")
    debian.install(*debs.values())
    shutil.rmtree(debian.path(STATE), ignore_errors=True)
    debian.path(STATE).symlink_to("/home/alice/data")
    said = debian.run("dpkg", "--purge", *NAMES).stdout
    assert "/home/alice/data" in said and (data / "results").exists()
    assert not debian.path(STATE).is_symlink()


def test_a_purge_does_not_enter_a_file_system_that_is_mounted_in_the_state(debian, debs):
    debian.install(*debs.values())
    mounted = debian.path(STATE) / "mounted"
    mounted.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", mounted], check=True)
    (mounted / "results").touch()
    said = debian.run("dpkg", "--purge", *NAMES).stdout
    assert (mounted / "results").exists() and f"could not remove all of /{STATE}" in said


def test_files_of_others_beside_ours_survive_a_purge(debian, debs):
    debian.install(*debs.values())
    kept = {"etc/penstock/web.yaml": "tls", "run/cdi/nvidia.yaml": "nvidia-ctk's",
            "run/cdi/k8s.device-plugin.nvidia.com-gpu.json":
            '{"containerEdits": {"hooks": [{"path": "/usr/bin/nvidia-cdi-hook"}]}}'}
    for path, text in kept.items():
        debian.path(path).parent.mkdir(exist_ok=True)
        debian.path(path).write_text(text)
    debian.run("dpkg", "--purge", *NAMES)
    assert {path: debian.path(path).read_text() for path in kept} == kept


def test_removal_names_engines_that_still_use_the_runtime_and_keeps_their_journal(debian, debs):
    debian.install(*debs.values())
    debian.path("etc/docker").mkdir()
    configured = debian.run("penstock", "runtime", "configure", "--runtime", "docker",
                            "--config-source", "file", "--restart-mode", "none")
    text = debian.path("etc/docker/daemon.json").read_text()
    assert "/usr/bin/penstock-runtime" in text, configured.stdout
    said = debian.run("dpkg", "--purge", *NAMES).stdout
    assert "/etc/docker/daemon.json" in said and "penstock runtime unconfigure" in said
    assert debian.path("etc/docker/daemon.json").read_text() == text
    assert list(debian.path(STATE).iterdir()) == [debian.path(STATE) / "engines"]
    debian.install(*debs.values())
    debian.run("penstock", "runtime", "unconfigure", "--runtime", "docker", "--config-source", "file",
               "--restart-mode", "none")
    assert not debian.path("etc/docker/daemon.json").exists()
    debian.run("dpkg", "--purge", *NAMES)
    assert not debian.path(STATE).exists()


# --- the tarball ---------------------------------------------------------------------------------
def test_the_tarball_has_one_folder_and_works_below_opt(debian, tarball, agent):
    with tarfile.open(tarball) as archive:
        names = archive.getnames()
    assert len({name.split("/")[0] for name in names}) == 1
    assert {path.split("/")[1] for path in names if "/" in path} == {"bin", "etc", "lib", "share"}
    bin_folder = "/opt/penstock/bin"
    up = ["--simulate", "dgx-a100", "--run-dir", "/tmp/run", "--state-dir", "/tmp/state"]
    debian.run(f"{bin_folder}/penstock", "up", "--detach", *up, "--listen", "off")
    said = debian.run(f"{bin_folder}/penstock", "status", "--run-dir", "/tmp/run", "-o", "json")
    assert len(json.loads(said.stdout)["devices"]) == 8
    debian.run(f"{bin_folder}/penstock", "down", "--run-dir", "/tmp/run")


def test_the_unit_of_the_packages_starts_the_installed_agent(debs, tmp_path):
    subprocess.run(["dpkg-deb", "-x", debs["penstock-agent"], tmp_path], check=True)
    unit, = tmp_path.rglob("penstock-agent.service")
    assert "\nExecStart=/usr/bin/penstock-agent\n" in unit.read_text()
    assert f"\nEnvironment=CONFIG_FILE=/{CONFIG}\n" in unit.read_text()
    assert stat.S_IMODE(unit.stat().st_mode) == 0o644
