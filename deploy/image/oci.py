#!/usr/bin/env python3
"""Writes OCI image archives, without a registry or an engine. Independent of their contents.

usage: oci.py NAME OUT.tar [--entrypoint "CMD ..."] DST=SRC ...

SRC is a host file or folder, DIR for an empty directory, or ->TARGET for a symbolic link. Import the archive with
`ctr -n k8s.io images import OUT.tar` or `podman load -i OUT.tar`. Equal contents give equal archives: entries are sorted, owned by root
and dated SOURCE_DATE_EPOCH (else 1970)."""
import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import tarfile
import time
from pathlib import Path

OCI = "application/vnd.oci.image."
PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def encode(value) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


class Layer:
    """Files of a layer under construction; parent directories are added as needed. `why` appears in the image's history."""

    def __init__(self, why: str = ""):
        self.why = why
        self._entries: dict[str, tuple[tarfile.TarInfo, bytes | None]] = {}

    def directory(self, path: str, mode: int = 0o755):
        path = path.strip("/")
        if path and path not in self._entries:
            self.directory(os.path.dirname(path))
            self._put(path, tarfile.DIRTYPE, mode)

    def link(self, path: str, target: str):
        self._put(self._at(path), tarfile.SYMTYPE, 0o777).linkname = target

    def text(self, path: str, data: bytes | str, mode: int = 0o644):
        data = data.encode() if isinstance(data, str) else data
        self._put(self._at(path), tarfile.REGTYPE, mode, data).size = len(data)

    def add(self, path: str, source: str | Path):
        """Adds the entry for SRC of the command line."""
        words = str(source)
        if words == "DIR":
            self.directory(path, 0o1777)
        elif words.startswith("->"):
            self.link(path, words[2:])
        elif Path(source).is_dir():
            self.tree(path, Path(source))
        else:
            self.text(path, Path(source).read_bytes(), Path(source).stat().st_mode & 0o7777)

    def tree(self, path: str, source: Path):
        for item in sorted(source.rglob("*")):
            at = f"{path}/{item.relative_to(source)}"
            if item.is_symlink():
                self.link(at, os.readlink(item))
            elif item.is_dir():
                self.directory(at, item.stat().st_mode & 0o7777)
            else:
                self.add(at, item)

    def finish(self) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for _, (entry, data) in sorted(self._entries.items()):
                tar.addfile(entry, io.BytesIO(data) if data is not None else None)
        return buffer.getvalue()

    def _at(self, path: str) -> str:
        path = path.strip("/")
        self.directory(os.path.dirname(path))
        return path

    def _put(self, path: str, kind: bytes, mode: int, data: bytes | None = None) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.mtime = kind, mode, epoch()
        self._entries[path] = (entry, data)
        return entry


class Image:
    """Layers with their metadata. `labels` go into the configuration and, as annotations, into the manifest."""

    def __init__(self, name: str, entrypoint: list[str], layers: list[Layer], labels: dict[str, str] | None = None):
        self.name, self.sizes = name, []
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))
        self._blobs: list[bytes] = []
        described, identities = [], []
        for layer in layers:
            tar = layer.finish()
            packed = gzip.compress(tar, 9, mtime=0)
            self.sizes.append((layer.why, len(tar), len(packed)))
            identities.append(digest(tar))
            described.append(self._keep("layer.v1.tar+gzip", packed))
        config = self._keep("config.v1+json", encode({
            "architecture": architecture(), "os": "linux", "created": created,
            "config": {"Entrypoint": entrypoint, "Env": [PATH], "WorkingDir": "/", "Labels": labels or {}},
            "history": [{"created": created, "created_by": layer.why} for layer in layers],
            "rootfs": {"type": "layers", "diff_ids": identities}}))
        manifest = self._keep("manifest.v1+json", encode({
            "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": described, "annotations": labels or {}}))
        self.digest = manifest["digest"]
        tag = name.rpartition("/")[2].partition(":")[2] or "latest"
        self._index = encode({
            "schemaVersion": 2, "mediaType": OCI + "index.v1+json",
            "manifests": [manifest | {"platform": {"architecture": architecture(), "os": "linux"},
                                      "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}}]})

    def write(self, out: str | Path):
        members = {"oci-layout": encode({"imageLayoutVersion": "1.0.0"}), "index.json": self._index}
        members |= {"blobs/sha256/" + digest(blob)[7:]: blob for blob in self._blobs}
        with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as tar:
            for path, data in members.items():
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode, entry.mtime = len(data), 0o644, epoch()
                tar.addfile(entry, io.BytesIO(data))

    def _keep(self, kind: str, blob: bytes) -> dict:
        self._blobs.append(blob)
        return {"mediaType": OCI + kind, "size": len(blob), "digest": digest(blob)}


def write(name: str, out: str | Path, files: dict[str, str | Path], entrypoint: str = ""):
    """An image of one layer."""
    layer = Layer("files")
    for path, source in files.items():
        layer.add(path, source)
    Image(name, entrypoint.split(), [layer]).write(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("name")
    parser.add_argument("out")
    parser.add_argument("--entrypoint", default="")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_intermixed_args()
    write(arguments.name, arguments.out, dict(file.split("=", 1) for file in arguments.files), arguments.entrypoint)
