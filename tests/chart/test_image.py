"""The image archive: what it contains, what it does not contain, and that equal inputs give an equal digest. Uses packages from the cache."""
import gzip
import importlib.machinery
import importlib.util
import io
import json
import subprocess
import sys
import tarfile

import pytest

from conftest import ROOT

BUILD = ROOT / "deploy/image/build"
PROGRAMS = {f"usr/bin/penstock{name}" for name in ("", "-agent", "-worker", "-operator", "-hook", "-runtime", "-probe", "-vectoradd")}


def build(programs, out) -> str:
    done = subprocess.run([BUILD, out, "--programs", programs, "--offline"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return done.stdout.rpartition("@")[2].strip()


def load_maker():
    """deploy/image/build as a module."""
    sys.path.insert(0, str(BUILD.parent))
    loader = importlib.machinery.SourceFileLoader("image_build", str(BUILD))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("image_build", loader))
    loader.exec_module(module)
    return module


class Archive:
    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = self.blob(self.index["manifests"][0])
        self.config = self.blob(self.manifest["config"])
        self.entries = {}
        for layer in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(self.raw(layer)))) as tar:
                self.entries |= {member.name: member for member in tar}

    def raw(self, descriptor) -> bytes:
        return self.files["blobs/" + descriptor["digest"].replace(":", "/")]

    def blob(self, descriptor):
        return json.loads(self.raw(descriptor))


@pytest.fixture(scope="module")
def built(programs, tmp_path_factory):
    out = tmp_path_factory.mktemp("image") / "penstock.tar"
    return out, build(programs, out)


@pytest.fixture(scope="module")
def archive(built):
    return Archive(built[0])


def test_a_package_in_the_cache_counts_by_its_hash(tmp_path):
    maker = load_maker()
    package, file = maker.Package("no-such-package", "1.0", None), tmp_path / "no-such-package_1.0_amd64.deb"
    file.write_bytes(b"what apt fetched")
    with pytest.raises(SystemExit, match="the expected hash of"):
        maker.verify(file, package)
    maker.note_of(file).write_text(maker.sha256(file))
    maker.verify(file, package)
    file.write_bytes(b"what somebody put there")
    with pytest.raises(SystemExit, match="is not the expected package"):
        maker.verify(file, package)
    [package] = maker.newest_of_apt(["libssl3"])
    file = tmp_path / f"libssl3_{package.version}_amd64.deb"
    file.write_bytes(b"with a note of its own")
    maker.note_of(file).write_text(maker.sha256(file))
    with pytest.raises(SystemExit, match="is not the expected package"):  # apt's signed lists have the correct hash
        maker.verify(file, package)


def test_a_package_that_apt_does_not_know_is_named_and_takes_nothing_from_the_others():
    maker = load_maker()
    with pytest.raises(maker.Unavailable, match="apt does not know no-such-package "):
        maker.newest_of_apt(["libssl3", "no-such-package"])
    known = maker.of_apt(["no-such-package", "libssl3", "zlib1g=0.1", "ca-certificates"], maker.NEWEST)
    assert set(known) == {"libssl3", "ca-certificates"} and all(package.sha256 for package in known.values())


def test_equal_inputs_give_an_equal_digest(built, programs, tmp_path):
    assert build(programs, tmp_path / "again.tar") == built[1]
    assert (tmp_path / "again.tar").read_bytes() == built[0].read_bytes()


def test_it_holds_our_programs_and_no_simulated_hardware(archive):
    assert PROGRAMS <= set(archive.entries)
    links = {"usr/bin/kubectl-penstock", "usr/bin/nvidia-mig-parted"}
    assert {archive.entries[name].linkname for name in links} == {"penstock"}
    assert not [name for name in archive.entries if "sim" in name.split("/")[-1] or ("nvidia" in name and name not in links)]
    assert archive.config["config"]["Entrypoint"] == ["/usr/bin/penstock-agent"]


def test_the_library_that_the_agent_loads_by_name_is_there(archive):
    for own, theirs in (("libpenstock-net.so", "libcurl.so.4"), ("libpenstock-net.so", "libssl.so.3"), ("libcrypt.so.1", "libcrypt.so.1")):
        assert [name for name in archive.entries if name.endswith((f"/{own}", f"/{theirs}"))], own


def test_there_is_no_other_program_and_nothing_that_raises_rights(archive):
    programs = {name for name, entry in archive.entries.items() if entry.isfile() and entry.mode & 0o111
                and not name.startswith("usr/lib/")}
    assert programs == PROGRAMS
    assert not [name for name, entry in archive.entries.items() if entry.isfile() and entry.mode & 0o6000]
    assert {(entry.uid, entry.gid) for entry in archive.entries.values()} == {(0, 0)}


def test_a_scanner_finds_the_packages_and_their_copyright(archive):
    packages = {name.split("/")[-1] for name in archive.entries if name.startswith("var/lib/dpkg/status.d/")}
    assert {"libc6", "libstdc++6", "ca-certificates"} <= packages
    assert {"libgrpc-dev", "libssl-dev", "libcurl4-openssl-dev"} <= packages, "what is linked into the programs"
    assert "usr/share/doc/libc6/copyright" in archive.entries and "usr/share/doc/penstock/copyright" in archive.entries
    assert "etc/os-release" in archive.entries


def test_it_says_what_it_is(archive):
    labels = archive.config["config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == "penstock" and labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert archive.manifest["annotations"] == labels
    name = archive.index["manifests"][0]["annotations"]["io.containerd.image.name"]
    assert name == f"localhost/penstock:{labels['org.opencontainers.image.version']}"


def test_what_a_program_needs_and_no_package_has_is_said(programs, tmp_path):
    done = subprocess.run([BUILD, tmp_path / "x.tar", "--programs", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "has no penstock, penstock-agent, penstock-worker" in done.stderr
