"""The image that tests start containers from: a shell and the C library of this machine, as small as Debian's is large, and nothing of a
driver. Says nothing about what should be in a container; the tests do."""
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
    """The dynamic linker's path, as programs of this machine name it."""
    headers = subprocess.run(["readelf", "--program-headers", "--wide", "/bin/sh"], check=True, capture_output=True, text=True).stdout
    return re.search(r"interpreter: (\S+)\]", headers)[1]


def files(busybox: Path) -> dict[str, object]:
    """What lies in it, by path: laid out like Debian 12, whose /lib is /usr/lib, without an /etc/ld.so.cache, as in many small images."""
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
