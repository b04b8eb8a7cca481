#!/usr/bin/env python3
"""Builds image and chart of released versions, once, from the commits in this repository's history
with the build files of that time, and keeps them in the cache. Prints the folders.

Needs what scripts/setup installs, and the history. 0.1.0 takes 20 minutes on one processor."""
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "cluster")]

import parts  # noqa: E402

ROOT = HERE.parents[1]
COMMITS = {"0.1.0": "449bd013a69cd497ebacdfd9db9509f90e1735cf"}
PROGRAMS = ["penstock", "penstock-agent", "penstock-worker", "penstock-hook", "penstock-runtime",
            "penstock-probe"]


class NoHistory(RuntimeError):
    """This checkout does not have the commit."""


@dataclass
class Release:
    version: str
    folder: Path

    @property
    def image(self) -> Path:
        """An archive with localhost/penstock:VERSION."""
        return self.folder / "image.tar"

    @property
    def chart(self) -> Path:
        return self.folder / "chart"


def release(version: str, repository: Path = ROOT) -> Release:
    """Builds the version if the cache does not have it."""
    commit = COMMITS[version]
    target = parts.cache() / "bench" / f"released-{version}-{commit[:12]}"
    with parts.building(target, "tests/e2e/released.py, or scripts/check --all") as scratch:
        if scratch:
            _build(version, commit, repository, scratch)
    return Release(version, target)


def _build(version: str, commit: str, repository: Path, into: Path):
    source, git = into / "source", ["git", "-C", repository]
    asked = subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], text=True,
                           capture_output=True)
    if asked.returncode:
        raise NoHistory(f"{repository} does not have the commit of Penstock {version}, "
                        f"{commit[:12]}: in a shallow clone, `git fetch --unshallow` gets it; a "
                        f"copy without .git cannot build it ({' '.join(asked.stderr.split())})")
    source.mkdir()
    parts.run(*git, "archive", "--output", into / "source.tar", commit)
    parts.run("tar", "-x", "-f", into / "source.tar", "-C", source)
    parts.run("cmake", "--preset", "release", cwd=source, stdout=sys.stderr)
    programs = source / "build/release/bin"
    parts.run("cmake", "--build", programs.parent, "--target", *PROGRAMS, stdout=sys.stderr)
    parts.run(source / "deploy/image/build", into / "image.tar", "--programs", programs,
              "--name", f"localhost/penstock:{version}", "--revision", commit, stdout=sys.stderr)
    shutil.copytree(source / "deploy/helm/penstock", into / "chart")  # follows links out of the tree
    shutil.rmtree(source)
    (into / "source.tar").unlink()


if __name__ == "__main__":
    os.environ.pop("PENSTOCK_OFFLINE", None)
    try:
        for name in COMMITS:
            print(release(name).folder)
    except (NoHistory, subprocess.CalledProcessError) as error:
        sys.exit(f"released.py: {error}")
