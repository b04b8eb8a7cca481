#!/usr/bin/env python3
"""Makes a folder with the libraries and headers of Debian 12 for arm64 that Penstock is built with, in the
cache, once; prints it. Installs nothing: the packages are unpacked beside each other."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e/cluster"))

import parts  # noqa: E402

ARCHITECTURE, SUITE = "arm64", "bookworm"
# What scripts/setup installs to build with, for the other architecture.
PACKAGES = ["libbenchmark-dev", "libc6-dev", "libcli11-dev", "libcrypt-dev", "libcurl4-openssl-dev", "libfmt-dev", "libgmock-dev", "libgrpc++-dev",
            "libgrpc-dev", "libgtest-dev", "libprotobuf-dev", "libspdlog-dev", "libssl-dev", "libstdc++-12-dev", "libtomlplusplus-dev",
            "libyaml-cpp-dev", "nlohmann-json3-dev", "zlib1g-dev"]
MERGED = ("bin", "lib", "sbin")


def fetch(into: Path) -> list[Path]:
    """Downloads the packages and what they depend on, with lists and settings that are not the machine's."""
    for folder in ("lists/partial", "archives/partial", "empty.d"):
        (into / folder).mkdir(parents=True)
    (into / "sources.list").write_text(
        f"deb [arch={ARCHITECTURE} signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {parts.mirror()} {SUITE} main\n")
    (into / "status").write_text("")
    settings = {"APT::Architecture": ARCHITECTURE, "APT::Architectures": ARCHITECTURE, "Dir::State::Lists": into / "lists",
                "Dir::Cache": into, "Dir::Etc::sourcelist": into / "sources.list", "Dir::Etc::sourceparts": into / "empty.d",
                "Dir::Etc::preferencesparts": into / "empty.d", "Dir::State::status": into / "status", "APT::Sandbox::User": "root",
                "Acquire::Retries": 5, "APT::Update::Error-Mode": "any"}
    command = ["apt-get", "-qq", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    parts.run(*command, "update", stdout=sys.stderr)
    parts.run(*command, "install", "--yes", "--download-only", "--no-install-recommends", *PACKAGES, stdout=sys.stderr)
    return sorted((into / "archives").glob("*.deb"))


def relative_links(root: Path):
    """Absolute links lead into the folder, not into this machine."""
    for folder, folders, files in os.walk(root):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
                path.unlink()
                path.symlink_to(os.path.relpath(root / target.lstrip("/"), path.parent))


def sysroot() -> Path:
    target = parts.cache() / "bench" / f"sysroot-{ARCHITECTURE}-{parts.key(PACKAGES, SUITE, Path(__file__))}"
    with parts.building(target) as scratch:
        if scratch:
            for folder in MERGED:
                (scratch / "usr" / folder).mkdir(parents=True)
                (scratch / folder).symlink_to(f"usr/{folder}")
            apt = scratch / "apt"
            for package in fetch(apt):
                parts.run("dpkg-deb", "--fsys-tarfile", package, stdout=(tar := open(apt / "tar", "wb")))
                tar.close()
                parts.run("tar", "-C", scratch, "--keep-directory-symlink", "-xf", apt / "tar")
            subprocess.run(["rm", "-rf", apt], check=True)
            relative_links(scratch)
    return target


if __name__ == "__main__":
    print(sysroot())
