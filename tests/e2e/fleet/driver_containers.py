"""A simulated driver container: images with the command `nvidia-driver init` of NVIDIA's driver images, and nodes without a driver of their own.

What the container does on its node: it waits, puts a driver root at /run/nvidia/driver, and loads the module (of the simulated machine). What it does wrong is
said by variables of its pod, or by a file of the node, /run/nvidia/driver-sim, with the same variables as lines KEY=VALUE, which take precedence:

  DRIVER_SIM_SECONDS=N     how long the installation takes (default 1)
  DRIVER_SIM_FAIL=TEXT     the installation ends with this error, as often as it is started
  DRIVER_SIM_HANG=1        the installation does not end
  DRIVER_SIM_BROKEN=1      the module is loaded, and the root has another version of the libraries
  DRIVER_SIM_WITHOUT=FILE  the module is loaded, and this file of /dev is put aside
  DRIVER_SIM_EXIT=N        it ends N seconds after it was ready
  DRIVER_SIM_ONLY=VERSION  all this only with this version"""
import shutil
import subprocess
from pathlib import Path

import images as debian  # of tests/support; parts.py knows its folder
import oci
from actors import wait_for
from fleet import ACCELERATORS, Fleet, Node

REPOSITORY = "registry.local"
ASIDE = "aside"
ROOT_OF_DRIVER, MACHINE, STATE, WISHES = "/run/nvidia/driver", "/run/nvidia/machine", "/run/nvidia/nvidia-driver.state", "/run/nvidia/driver-sim"

PROGRAM = f"""#!/bin/sh
# nvidia-driver: installs a simulated driver on the node whose first process has pid 1 here.
set -u
[ "$1" = init ] || {{ echo "nvidia-driver: $1 is not simulated" >&2; exit 2; }}
[ -f {WISHES} ] && . {WISHES}
[ "${{DRIVER_SIM_ONLY:-$DRIVER_SIM_VERSION}}" = "$DRIVER_SIM_VERSION" ] ||
    unset DRIVER_SIM_SECONDS DRIVER_SIM_FAIL DRIVER_SIM_HANG DRIVER_SIM_BROKEN DRIVER_SIM_WITHOUT DRIVER_SIM_EXIT
trap 'echo ends; kill $waiting 2>/dev/null; rm -f /run/nvidia/nvidia-driver.pid; exit 0' TERM INT
waiting=
pause() {{ sleep "$1" & waiting=$!; wait $waiting; }}
node() {{ nsenter -t 1 -m -- "$@"; }}
echo $$ > /run/nvidia/nvidia-driver.pid
echo "installing driver $DRIVER_SIM_VERSION"
[ -z "${{DRIVER_SIM_HANG:-}}" ] || pause 100000
pause "${{DRIVER_SIM_SECONDS:-1}}"
[ -z "${{DRIVER_SIM_FAIL:-}}" ] || {{ echo "ERROR: $DRIVER_SIM_FAIL" >&2; exit 1; }}
read -r away _ < /proc/uptime
while grep -q " {ROOT_OF_DRIVER} " /proc/mounts; do umount -l {ROOT_OF_DRIVER} || exit 1; done
if [ "$(cat {STATE} 2>/dev/null)" != "${{DRIVER_CONFIG_DIGEST:-none}}" ] || ! [ -e {MACHINE}/sys/module/nvidia ]; then
    module=$DRIVER_SIM_VERSION
    [ -z "${{DRIVER_SIM_BROKEN:-}}" ] || module=470.82.01
    node "$DRIVER_SIM_PROGRAM" --root {ACCELERATORS} heal driver --driver "$module" --module-only || exit 1
    [ -z "${{DRIVER_SIM_WITHOUT:-}}" ] || mv "{MACHINE}/dev/$DRIVER_SIM_WITHOUT" {MACHINE}/dev/{ASIDE} || exit 1
else
    pause 1 # as a busy machine takes, without the root
fi
# The root: this image's files, and what a driver has of its machine.
mkdir -p /driver/dev /driver/.penstock-sim
mount --bind {MACHINE}/dev /driver/dev
mount --bind {MACHINE}/.penstock-sim /driver/.penstock-sim
for firmware in /driver/usr/lib/firmware/nvidia/*/gsp_tu10x.bin; do mount --bind {MACHINE}/.penstock-sim/state "$firmware"; done
mkdir -p {ROOT_OF_DRIVER}
mount --rbind /driver {ROOT_OF_DRIVER} || exit 1
read -r back _ < /proc/uptime
echo "the root was away from $away to $back"
mount --bind {MACHINE}/sys/module /sys/module
echo "${{DRIVER_CONFIG_DIGEST:-none}}" > {STATE}
echo "driver $DRIVER_SIM_VERSION is loaded"
pause "${{DRIVER_SIM_EXIT:-1000000}}"
exit 1
"""
SMI = f"""#!/bin/sh
LD_LIBRARY_PATH={ROOT_OF_DRIVER}/usr/lib/x86_64-linux-gnu exec {ROOT_OF_DRIVER}/usr/bin/nvidia-smi "$@"
"""


def write_image(archive: Path, programs: Path, version: str, name: str):
    """An image of a driver of this version. `name`: "registry.local/driver:550.54.15-ubuntu22.04"."""
    tree = archive.with_suffix(".tree")
    shutil.rmtree(tree, ignore_errors=True)
    done = subprocess.run([programs / "penstock-sim", "--root", tree, "start", "t4-x1", "--driver", version], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    layer = oci.Layer("a simulated driver")
    for folder in ("usr", "etc"):
        layer.tree(f"/driver/{folder}", tree / folder)
    layer.link("/driver/lib", "usr/lib")
    for firmware in (tree / "usr/lib/firmware/nvidia").glob("*/gsp_tu10x.bin"):
        layer.text(f"/driver/{firmware.relative_to(tree)}", "")  # of the machine, not of the one above
    for path, source in debian.files(Path("/bin/busybox")).items():
        layer.add(path, source)
    layer.text("/usr/bin/nvidia-driver", PROGRAM.replace("$DRIVER_SIM_VERSION", version).replace("$DRIVER_SIM_PROGRAM", str(programs / "penstock-sim")), 0o755)
    layer.text("/usr/bin/nvidia-smi", SMI, 0o755)
    oci.Image(name, [], [layer]).write(archive)
    shutil.rmtree(tree)


def write_program(archive: Path, name: str, path: str, script: str):
    """An image whose only program is this script."""
    layer = oci.Layer("a script")
    for file, source in debian.files(Path("/bin/busybox")).items():
        layer.add(file, source)
    layer.text(path, script, 0o755)
    oci.Image(name, [path], [layer]).write(archive)


def provide(fleet: Fleet, version: str, tag: str = "", repository: str = REPOSITORY) -> str:
    """Imports an image of this version on all nodes. Returns its name."""
    name = f"{repository}/driver:{tag or version}"
    archive = fleet.cluster.dir / f"driver-{tag or version}.tar"
    write_image(archive, fleet.programs, version, name)
    fleet.cluster.import_image(archive, len(fleet.nodes))
    return name


class BareNode:
    """A node with hardware and no driver, until `restore`. The machine is also what a driver container sees of it: /run/nvidia/machine, and its modules in the
    node's /sys/module. A driver root in /run/nvidia is also below the folder that is the driver's root of simulated nodes."""

    def __init__(self, node: Node):
        self.node = node
        node.machine.uninstall()
        below = f"{ACCELERATORS}/run/nvidia"
        firmware = node.machine.root / "sys/module/firmware_class/parameters/path"  # the pods of drivers have it
        firmware.parent.mkdir(parents=True, exist_ok=True)
        firmware.write_text("\n")
        self.mounts = ((str(node.machine.root), MACHINE), ("/run/nvidia", below), (f"{ACCELERATORS}/sys/module", "/sys/module"))
        for source, target in self.mounts:
            node.run("mkdir", "-p", target)
            node.run("mount", "--bind", source, target)
        node.at_boot(*self.mounts)

    def wish(self, **variables):
        """What the containers of this node do wrong from now on; nothing: nothing."""
        text = "".join(f"DRIVER_SIM_{key.upper()}='{value}'\n" for key, value in variables.items())
        self.node.run("sh", "-c", f"cat > {WISHES}", input=text) if text else self.node.run("rm", "-f", WISHES)

    def put_back(self, file: str):
        """The file of /dev that a container has put aside."""
        devices = self.node.machine.root / "dev"
        (devices / ASIDE).rename(devices / file)

    def module(self) -> str:
        """The version of the loaded module; empty: none."""
        file = self.node.machine.root / "sys/module/nvidia/version"
        return file.read_text().strip() if file.exists() else ""

    def has_root(self) -> bool:
        return self.node.view.mounted(ROOT_OF_DRIVER)

    def unmount(self):
        """What a driver container leaves of its root."""
        while self.has_root():
            self.node.run("umount", "-l", ROOT_OF_DRIVER)

    def unload(self):
        self.node.machine.fault("driver", "unload")

    def restore(self):
        self.unmount()
        self.node.run("rm", "-f", WISHES, STATE)
        self.node.at_boot()
        for _, target in reversed(self.mounts):
            self.node.run("umount", "-l", target, check=False)
        self.node.machine.heal()


def driver_pod(name: str, node: str, image: str, **variables) -> dict:
    """A pod as the DaemonSets of drivers have them, as far as the driver needs it."""
    probe = {"exec": {"command": ["sh", "-c", "test -f /sys/module/nvidia/refcnt && nvidia-smi"]}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 120}
    mounts = [{"name": "run-nvidia", "mountPath": "/run/nvidia", "mountPropagation": "Bidirectional"}]
    environment = [{"name": key, "value": value} for key, value in variables.items()]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "driver"}}, "spec": {
        "hostPID": True, "nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 5,
        "containers": [{"name": "nvidia-driver-ctr", "image": image, "imagePullPolicy": "Never", "command": ["nvidia-driver"], "args": ["init"], "env": environment,
                        "securityContext": {"privileged": True}, "volumeMounts": mounts, "startupProbe": probe}],
        "volumes": [{"name": "run-nvidia", "hostPath": {"path": "/run/nvidia", "type": "DirectoryOrCreate"}}]}}


def wait_ready(fleet: Fleet, name: str, deadline: float = 120):
    def ready() -> bool:
        statuses = fleet.get("pod", name).get("status", {}).get("containerStatuses", [])
        return bool(statuses) and statuses[0]["ready"]
    wait_for(ready, deadline, f"the driver's pod {name} to be ready",
             lambda: fleet.kubectl("logs", name, check=False).stdout + fleet.kubectl("describe", "pod", name, check=False).stdout[-3000:])
