#!/usr/bin/env python3
"""Runs a command on Debian's kernel in a machine that QEMU emulates, without KVM: for what the kernel of the machine that runs the tests cannot do, as
load modules.

usage: emulated.py [--memory MIB] [--keep DIR] [--writable DIR]... COMMAND...

The command runs as root in the current folder. It sees the files of this machine through a layer in memory: what it writes is lost, except in writable
folders. Its standard output and standard error come out as one stream, and its exit status is that of this program. It has nothing else of this machine:
its own processes, /dev, /run, /sys and /tmp, control groups of version 2, no network but the loopback interface. The kept folder, the checkout, the cache and
the current folder keep their paths even if they are below /tmp. `modprobe` loads the MODULES and what they need; there are no devices and no firmware files.
Everything takes about ten times as long as without emulation; the machine itself starts in about ten seconds.

If the machine fails, as when its kernel crashes, the exit status is 125, and the end of its console is printed. Needs root, since the command reads the
files as root.

emulated.py --fetch downloads the kernel into the cache, if it is missing, and prints its folder."""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e/cluster")]

import parts  # noqa: E402

KERNEL = {"bookworm": ["linux-image-amd64"]}
# What the machine itself needs: its folders of this machine, and a layer above them.
OWN_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]
# What tests load: a driver of accelerators that makes /dev/kfd even if there are none, a graphics card without hardware, and a library for drivers of graphics
# cards, which uses one of the modules that amdgpu uses.
MODULES = ["amdgpu", "vgem", "drm_vram_helper"]
BUSYBOX = Path("/bin/busybox")
ORDERS = Path("/run/orders")  # in the machine
FAILED = 125
CONSOLE_LINES = 80
INIT = """#!/bin/sh
# The first program of the machine: shows the command the files of the host, runs it, notes its status and switches the machine off.
fail() { echo "emulated: $*"; poweroff -f; }
/bin/busybox mkdir -p /proc /sys /dev
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules); do insmod "/$module" || fail "module $module"; done
share() { mkdir -p "$2"; mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$3" "$1" "$2" || fail "share $1"; }
share host /host ro,cache=loose
share orders /orders cache=none
mkdir /memory /root /layer
mount -t tmpfs -o mode=755 memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /root || fail "the layer in memory"
mount --bind /root /layer
for kind in proc sys dev; do mount --move /$kind /root/$kind; done
cd /root
for folder in run tmp dev/shm; do mkdir -p $folder; mount -t tmpfs -o mode=1777 none $folder; done
chmod 755 run
mkdir -p dev/pts
mount -t devpts devpts dev/pts
mount -t cgroup2 cgroup2 sys/fs/cgroup
ip link set lo up
# Folders below /tmp or /run of the host.
while read -r folder; do mkdir -p "/root$folder"; mount --bind "/layer$folder" "/root$folder" || fail "folder $folder"; done </orders/shown
mkdir -p lib/modules
mount --bind "/host$(cat /orders/kernel)/lib/modules" lib/modules || fail "the modules"
number=0
while read -r folder; do
    share "writable$number" "/root$folder" cache=none
    number=$((number + 1))
done </orders/writable
mkdir run/orders run/modules
mount --move /orders run/orders
cp /bin/busybox run/modules
for program in insmod lsmod modprobe rmmod; do ln -s busybox run/modules/$program; done
stty -F dev/ttyS1 raw -echo
# The layer becomes the root as in any machine: not a chroot, in which there are no user namespaces.
mount --move . /
exec chroot . /run/modules/busybox sh /run/orders/main
"""

MAIN = """export PATH=/run/modules:/bin
mkfifo /run/output
# The command's output is no terminal.
busybox cat /run/output >/dev/ttyS1 &
shown=$!
sh /run/orders/command </dev/null >/run/output 2>&1
echo $? >/run/orders/status
# Processes that the command left may have its output open.
for process in /proc/[0-9]*; do
    process=${process#/proc/}
    [ "$process" = 1 ] || [ "$process" = $shown ] || kill -9 "$process"
done 2>/dev/null
wait $shown
sync
exec /run/modules/busybox poweroff -f
"""


def inside() -> bool:
    """Whether this process runs in the machine."""
    return (ORDERS / "kernel").exists()


def kernel() -> Path:
    """The folder of `vmlinuz` and `lib/modules`. Debian's updates replace the version, not the folder."""
    target = parts.cache() / "bench" / f"emulated-{parts.key(KERNEL, OWN_MODULES, MODULES)}"
    with parts.building(target) as scratch:
        if scratch:
            with tempfile.TemporaryDirectory(dir=scratch.parent) as fetched:
                _unpack(Path(fetched), scratch)
    return target


def _unpack(fetched: Path, into: Path):
    parts.unpack_packages(KERNEL, fetched)
    # A package that contains nothing depends on the kernel of today.
    (package,) = KERNEL["bookworm"]
    control = (fetched / "DEBIAN" / package / "control").read_text()
    image = re.search(r"^Depends: (linux-image-[^ ,]+)", control, re.M).group(1)
    parts.unpack_packages({"bookworm": [image]}, fetched)
    shutil.copy2(next(fetched.glob("boot/vmlinuz-*")), into / "vmlinuz")
    folder = next(fetched.glob("lib/modules/*"))
    files = {file.stem.replace("-", "_"): file for file in folder.rglob("*.ko")}
    builtin = {Path(line).stem.replace("-", "_") for line in (folder / "modules.builtin").read_text().split()}
    below = into / "lib/modules" / folder.name
    below.mkdir(parents=True)
    lines = []
    for name in in_order([*OWN_MODULES, *MODULES], files, builtin):
        shutil.copy2(files[name], below)
        # The last one of a line is loaded first.
        needed = [files[one].name for one in reversed(in_order([name], files, builtin)[:-1])]
        lines.append(f"{files[name].name}: {' '.join(needed)}\n")
    (below / "modules.dep").write_text("".join(lines))
    (into / "own").write_text("".join(f"{files[name].name}\n" for name in in_order(OWN_MODULES, files, builtin)))


def needed_by(file: Path) -> list[str]:
    """The names of the modules that a module says it needs."""
    said = re.search(rb"\0depends=([^\0]*)\0", file.read_bytes())
    return [name.replace("-", "_") for name in said.group(1).decode().split(",") if name] if said else []


def in_order(names: list[str], files: dict[str, Path], builtin: set[str]) -> list[str]:
    """These modules, each behind those that it needs; without those that are part of the kernel."""
    found: dict[str, None] = {}

    def add(name: str):
        if name in builtin or name in found:
            return
        for needed in needed_by(files[name]):
            add(needed)
        found[name] = None
    for name in names:
        add(name)
    return list(found)


def make_initrd(folder: Path, target: Path):
    with tempfile.TemporaryDirectory(prefix="initrd-") as root:
        root = Path(root)
        (root / "bin").mkdir()
        for program in ("busybox", "sh"):
            shutil.copy2(BUSYBOX, root / "bin" / program)
        shutil.copy2(folder / "own", root / "modules")
        for name in (folder / "own").read_text().split():
            shutil.copy2(next(folder.glob(f"lib/modules/*/{name}")), root)
        (root / "init").write_text(INIT)
        (root / "init").chmod(0o755)
        listed = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
        with open(target, "wb") as archive:
            subprocess.run([BUSYBOX, "cpio", "-o", "-H", "newc"], cwd=root, input=listed.encode(), stdout=archive, stderr=subprocess.DEVNULL, check=True)


def shown_folders(kept: list[Path]) -> list[Path]:
    """Folders that the command needs and that the machine's own /tmp or /run would hide."""
    wanted = {parts.cache(), HERE.parents[1], Path(sys.prefix), Path.cwd(), *kept}
    return sorted(path for path in wanted if path.resolve().parts[1:2] in (("tmp",), ("run",)))


def give_orders(orders: Path, folder: Path, command: list[str], kept: list[Path], writable: list[Path]):
    """The environment of the command is that of this program; programs for modules are found before those of this machine, which need files of depmod."""
    variables = {name: value for name, value in os.environ.items() if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in ("TMPDIR", "TEST_TMPDIR")}
    variables["PATH"] = f"/run/modules:{variables.get('PATH', os.defpath)}"
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    (orders / "command").write_text("".join(lines) + f"cd {shlex.quote(str(Path.cwd()))}\nexec {shlex.join(command)}\n")
    (orders / "main").write_text(MAIN)
    (orders / "kernel").write_text(str(folder))
    for name, folders in {"shown": shown_folders(kept), "writable": writable}.items():
        (orders / name).write_text("".join(f"{one}\n" for one in folders))


def run(command: list[str], memory: int, kept: list[Path], writable: list[Path]) -> int:
    folder = kernel()
    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:
        print("emulated.py: qemu-system-x86_64 is missing; scripts/setup installs it", file=sys.stderr)
        return FAILED
    with tempfile.TemporaryDirectory(prefix="emulated-") as orders:
        orders, console, initrd = Path(orders), Path(orders, "console"), Path(orders, "initrd")
        give_orders(orders, folder, command, kept, writable)
        make_initrd(folder, initrd)
        shares = {"host": "/", "orders": orders, **{f"writable{number}": one for number, one in enumerate(writable)}}
        machine = [qemu, "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(memory), "-smp", str(min(os.cpu_count(), 4)),
                   "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", f"file:{console}", "-serial", "stdio",
                   "-kernel", folder / "vmlinuz", "-initrd", initrd,
                   "-append", "console=ttyS0 panic=-1 oops=panic mitigations=off random.trust_cpu=on"]
        for tag, path in shares.items():
            options = "security_model=none,multidevs=remap" + (",readonly=on" if tag == "host" else "")
            machine += ["-virtfs", f"local,path={path},mount_tag={tag},{options}"]
        ended = subprocess.run([str(word) for word in machine], stdin=subprocess.DEVNULL).returncode
        status = orders / "status"
        if status.exists():
            return int(status.read_text())
        said = console.read_text(errors="replace").splitlines()[-CONSOLE_LINES:] if console.exists() else []
        print(f"emulated.py: the machine ended without a result (QEMU: {ended}); the end of its console:", *said, sep="\n", file=sys.stderr)
        return FAILED


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--memory", type=int, default=1024)
    for option in ("--keep", "--writable"):
        parser.add_argument(option, type=lambda path: Path(path).resolve(), action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.fetch:
        print(kernel())
        return 0
    if not given.command:
        parser.error("no command")
    for folder in given.writable:
        folder.mkdir(parents=True, exist_ok=True)
    return run(given.command, given.memory, given.keep, given.writable)


if __name__ == "__main__":
    sys.exit(main())
