"""The container image of the tests: a shell and the C library of this machine, laid out like Debian, without a driver.
Contains no assertions about containers."""
import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "deploy/image"))

import oci  # noqa: E402

NAME = "registry.local/debian:1"
MULTIARCH = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
LIBRARIES = f"/usr/lib/{MULTIARCH}"
FOLDERS = f"/usr/local/lib/{MULTIARCH}\n/lib/{MULTIARCH}\n{LIBRARIES}\n"


def loader() -> str:
    """The path of the dynamic linker in this machine's programs."""
    headers = subprocess.run(["readelf", "--program-headers", "--wide", "/bin/sh"], check=True, capture_output=True, text=True).stdout
    return re.search(r"interpreter: (\S+)\]", headers)[1]


def files(busybox: Path) -> dict[str, object]:
    """The image's files by path: laid out like Debian 12, where /lib is /usr/lib; without /etc/ld.so.cache, like many small images."""
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = {f"/usr/bin/{Path(applet).name}": "->busybox" for applet in applets if applet not in ("busybox", "ldconfig")}
    merged = {f"/{folder}": f"->usr/{folder}" for folder in ("bin", "sbin", "lib", "lib64")}
    libraries = {f"{LIBRARIES}/{name}": f"{LIBRARIES}/{name}" for name in ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")}
    return links | merged | libraries | {
        "/usr/bin/busybox": busybox, "/usr/sbin/ldconfig": "/usr/sbin/ldconfig", "/tmp": "DIR",
        f"/usr{loader()}": f"/usr{loader()}"}


def write(archive: Path, busybox: Path = Path("/bin/busybox")):
    """Writes the image as an OCI archive."""
    layer = oci.Layer("a shell and a C library")
    for path, source in files(busybox).items():
        layer.add(path, source)
    layer.text("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    layer.text(f"/etc/ld.so.conf.d/{MULTIARCH}.conf", FOLDERS)
    layer.text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    oci.Image(NAME, [], [layer]).write(archive)
