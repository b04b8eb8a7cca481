#!/usr/bin/env python3
"""Writes a single-layer OCI image archive, with no registry and no engine.

usage: image.py NAME OUT.tar [--entrypoint "CMD ..."] DST=SRC ...

SRC is a host file, DIR for an empty directory, or ->TARGET for a symbolic link. Import the archive with
`ctr -n k8s.io images import OUT.tar` or `podman load -i OUT.tar`."""
import argparse
import hashlib
import io
import json
import os
import tarfile

OCI = "application/vnd.oci.image."


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def encode(value) -> bytes:
    return json.dumps(value).encode()


class Layer:
    """A tar of files under construction; parent directories are added as they are needed."""

    def __init__(self):
        self.buffer, self.made = io.BytesIO(), set()
        self.tar = tarfile.open(fileobj=self.buffer, mode="w")

    def directory(self, path: str, mode: int = 0o755):
        if path and path not in self.made:
            self.directory(os.path.dirname(path))
            self.made.add(path)
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            self.tar.addfile(entry)

    def add(self, path: str, source: str):
        path, source = path.lstrip("/"), str(source)
        if source == "DIR":
            self.directory(path, 0o1777)
            return
        self.directory(os.path.dirname(path))
        entry = tarfile.TarInfo(path)
        if source.startswith("->"):
            entry.type, entry.linkname = tarfile.SYMTYPE, source[2:]
            self.tar.addfile(entry)
            return
        with open(source, "rb") as stream:
            data = stream.read()
        entry.size, entry.mode = len(data), 0o755
        self.tar.addfile(entry, io.BytesIO(data))

    def finish(self) -> bytes:
        self.tar.close()
        return self.buffer.getvalue()


def write(name: str, out: str, files: dict[str, str], entrypoint: str = ""):
    layer = Layer()
    for path, source in files.items():
        layer.add(path, source)
    rootfs = layer.finish()
    config = encode({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": entrypoint.split(), "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [digest(rootfs)]}})
    manifest = encode({
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
        "config": {"mediaType": OCI + "config.v1+json", "size": len(config), "digest": digest(config)},
        "layers": [{"mediaType": OCI + "layer.v1.tar", "size": len(rootfs), "digest": digest(rootfs)}]})
    index = encode({
        "schemaVersion": 2, "mediaType": OCI + "index.v1+json",
        "manifests": [{"mediaType": OCI + "manifest.v1+json", "size": len(manifest), "digest": digest(manifest),
                       "platform": {"architecture": "amd64", "os": "linux"},
                       "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.split(":")[-1]}}]})
    members = {"oci-layout": encode({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    members |= {"blobs/sha256/" + digest(blob)[7:]: blob for blob in (config, manifest, rootfs)}
    with tarfile.open(out, "w") as tar:
        for path, data in members.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("name")
    parser.add_argument("out")
    parser.add_argument("--entrypoint", default="")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_intermixed_args()
    write(arguments.name, arguments.out, dict(file.split("=", 1) for file in arguments.files), arguments.entrypoint)
