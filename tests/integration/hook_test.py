"""penstock-hook in containers of runc, and under the published attacks on earlier hooks: each of those tests is named after the CVE.
Needs root."""
import ctypes
import json
import os
import re
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import cgroups  # noqa: E402
import images  # noqa: E402
from node import wait_until  # noqa: E402

LIBRARIES = images.LIBRARIES
SHELL = ("/bin/dash", "/bin/cat", "/bin/readlink", "/sbin/ldconfig", images.loader(), "/etc/ld.so.cache",
         *(f"/lib/{images.MULTIARCH}/{name}" for name in ("libc.so.6", "libm.so.6")))
DRIVER = "int driver_answer(void) { return 42; }\n"
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** names) {
  void* library = dlopen(names[1], RTLD_NOW);
  int (*answer)(void) = library ? (int (*)(void))dlsym(library, "driver_answer") : 0;
  printf("%d\\n", answer ? answer() : -count);
  return 0;
}
"""
# The library that the attack of CVE-2025-23266 preloads: it creates a file on the host as soon as it is loaded.
POISON = """
#include <fcntl.h>
__attribute__((constructor)) void leave_mark(void) { open(MARK, O_CREAT | O_WRONLY, 0600); }
"""
MOUNT_OPTIONS = ["ro", "nosuid", "nodev", "bind", "rprivate"]
RENAME_EXCHANGE, AT_FDCWD = 2, -100


COMPILED: dict[tuple, bytes] = {}  # cache of this test run, by source and options


def compile_c(target: Path, source: str, *options):
    target.parent.mkdir(parents=True, exist_ok=True)
    if (source, *options) not in COMPILED:
        subprocess.run(["cc", "-x", "c", "-", "-o", target, *options], input=source, text=True, check=True)
        COMPILED[source, *options] = target.read_bytes()
    target.write_bytes(COMPILED[source, *options])
    target.chmod(0o755)


def snapshot(folder: Path) -> dict:
    """All visible properties of a tree: names, types, modes, owners, times, contents."""
    seen = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else os.readlink(path) if stat.S_ISLNK(status.st_mode) else None
        seen[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_mtime_ns, content)
    return seen


class Image:
    """A container's root made of an image and mounts, and beside it host files that must not change."""

    def __init__(self, home: Path, programs: Path):
        self.home, self.root, self.outside, self.hook = home, home / "bundle/rootfs", home / "outside", programs / "penstock-hook"
        for folder in ("proc", "dev", "tmp", "etc/ld.so.conf.d", "usr/lib"):
            (self.root / folder).mkdir(parents=True)
        for file in SHELL:
            (self.root / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self.root / file[1:])
        (self.root / "bin/sh").symlink_to("dash")
        (self.root / "etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
        compile_c(home / "libfake.so.550.1", DRIVER, "-shared", "-fPIC", "-Wl,-soname,libfake.so.1")
        compile_c(self.root / "bin/ask", PROGRAM)
        (self.root / "drv").mkdir()
        (self.root / "usr/local/cuda/compat").mkdir(parents=True)
        (self.root / "usr/local/cuda/compat/libcuda.so.560.1").write_bytes((home / "libfake.so.550.1").read_bytes())
        shutil.copy(home / "libfake.so.550.1", self.root / "drv")
        (self.outside / "sub").mkdir(parents=True)
        (self.outside / "ld.so.cache").write_text("the host's")
        (self.outside / "sub/libfake.so.1").write_text("the host's")
        self.before = snapshot(self.outside)
        self.names = 0

    # Calls of the hook without a runtime.
    def state(self) -> str:
        return json.dumps({"ociVersion": "1.0.2", "id": "c", "status": "creating", "pid": 1, "bundle": str(self.root.parent), "root": str(self.root)})

    def run_hook(self, *words, state: str | None = None, program: Path | None = None, **options) -> subprocess.CompletedProcess:
        return subprocess.run([str(program or self.hook), *map(str, words)], input=self.state() if state is None else state, capture_output=True,
                              text=True, timeout=120, **options)

    def start(self, *words) -> subprocess.CompletedProcess:
        done = self.run_hook(*words)
        assert done.returncode == 0, done.stderr
        return done

    # With runc.
    def hook_entry(self, *words, path: Path | None = None, **more) -> dict:
        program = path or self.hook
        return {"path": str(program), "args": [program.name, *words], "env": ["NVIDIA_CTK_DEBUG=false"]} | more

    def run(self, script: str, hooks: list, mounts: list = (), check: bool = True, readonly: bool = False, environment: list = (), **linux) -> str:
        self.names += 1
        own = [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]
        name = f"{self.home.name}-{self.names}"
        (self.root.parent / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": readonly}, "mounts": [*own, *mounts], "hooks": {"createContainer": hooks},
            "process": {"cwd": "/", "args": ["sh", "-c", script], "env": ["PATH=/bin:/sbin", *environment], "user": {"uid": 0, "gid": 0}},
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")],
                      "cgroupsPath": f"/penstock-hook-{os.getpid()}/{name}"} | linux}))
        done = subprocess.run(["runc", "--root", self.home / "state", "run", "--bundle", self.root.parent, name], capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def driver_mount(self, target: str) -> dict:
        return {"destination": target, "type": "bind", "source": str(self.home / "libfake.so.550.1"), "options": MOUNT_OPTIONS}

    def cache(self, *where) -> str:
        """The image's ld.so.cache as ldconfig reads it."""
        return subprocess.run(["/sbin/ldconfig", "-p", "-C", self.root.joinpath(*where or ("etc/ld.so.cache",))], capture_output=True, text=True).stdout

    def assert_outside_untouched(self):
        assert snapshot(self.outside) == self.before

    def end(self):
        for state in (self.home / "state").glob("*"):
            subprocess.run(["runc", "--root", self.home / "state", "delete", "--force", state.name], check=False)
        cgroups.remove(f"penstock-hook-{os.getpid()}")
        shutil.rmtree(self.home)


@pytest.fixture
def image(request):
    if os.getuid() != 0:
        pytest.fail("containers need root")
    image = Image(Path(tempfile.mkdtemp(prefix="penstock-hook-")), request.config.getoption("--programs").resolve())
    yield image
    image.end()


@pytest.fixture
def attacked(image):
    """An image; asserts after its attack that the host is unchanged."""
    yield image
    image.assert_outside_untouched()


UPDATE = ("update-ldcache", "--folder", "/drv")
EVERY_HOOK = (UPDATE, ("create-symlinks", "--link", "libfake.so.1::/drv/libfake.so", "--link", "x::/usr/lib/deep/er/x"),
              ("create-soname-symlinks", "--folder", "/drv"), ("enable-cuda-compat", "--host-driver-version=550.1"),
              ("chmod", "--mode", "777", "--path", "/drv", "--path", "/etc/ld.so.cache", "--path", "/drv/libfake.so.1"),
              ("update-application-profile",), ("disable-device-node-modification",))


# With runc.

def test_programs_find_the_driver_by_its_soname(image):
    library = f"{LIBRARIES}/libfake.so.550.1"
    hooks = [image.hook_entry("create-symlinks", "--link", f"libfake.so.1::{LIBRARIES}/libfake.so"),
             image.hook_entry("update-ldcache", "--folder", LIBRARIES)]
    text = image.run("ldconfig -p | while read line; do case $line in libfake.so*) echo $line;; esac; done; ask libfake.so.1; ask libfake.so; "
                     f"readlink {LIBRARIES}/libfake.so {LIBRARIES}/libfake.so.1", hooks, [image.driver_mount(library)])
    flags = re.search(r"^\s+libc\.so\.6 \((libc6[^,)]*(?:,[^,)]+)?)", subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout, re.M)[1]
    assert text.splitlines() == [f"libfake.so.1 ({flags}) => {LIBRARIES}/libfake.so.1",
                                 f"libfake.so ({flags}) => {LIBRARIES}/libfake.so", "42", "42", "libfake.so.1", "libfake.so.550.1"]


def test_a_folder_that_the_image_does_not_search_is_found_and_stays_so_after_the_images_own_ldconfig(image):
    hooks = [image.hook_entry("update-ldcache", "--folder", "/opt/driver/lib")]
    mounts = [image.driver_mount("/opt/driver/lib/libfake.so.550.1")]
    assert image.run("ask libfake.so.1; ldconfig; ask libfake.so.1; ask libm.so.6", hooks, mounts).splitlines() == ["42", "42", "-2"]
    # The same root again, as with docker restart: the hook adds nothing a second time.
    assert image.run("ask libfake.so.1; cat /etc/ld.so.conf.d/*", hooks, mounts).splitlines()[0] == "42"
    assert [path.name for path in (image.root / "etc/ld.so.conf.d").iterdir()] == ["00-penstock-driver.conf"]


def test_the_compatibility_library_is_loaded_where_it_is_newer(image):
    compat = image.root / "usr/local/cuda/compat/libcuda.so.560.1"
    compile_c(compat, "int driver_answer(void) { return 560; }\n", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    compile_c(image.home / "libfake.so.550.1", "int driver_answer(void) { return 550; }\n", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    mounts = [image.driver_mount(f"{LIBRARIES}/libcuda.so.550.1")]
    update = image.hook_entry("update-ldcache", "--folder", LIBRARIES)
    assert image.run("ask libcuda.so.1", [image.hook_entry("enable-cuda-compat", "--host-driver-version=550.1"), update], mounts) == "560\n"
    assert image.run("ask libcuda.so.1", [image.hook_entry("enable-cuda-compat", "--host-driver-version=570.1"), update], mounts) == "550\n"


@pytest.mark.parametrize("name", ["nvidia-cdi-hook", "nvidia-ctk"])
def test_it_works_by_the_names_that_specifications_call(image, name):
    program = image.home / name
    program.symlink_to(image.hook)
    words = ("hook", *UPDATE) if name == "nvidia-ctk" else UPDATE
    assert image.run("ask libfake.so.1", [image.hook_entry(*words, path=program)]) == "42\n"


def test_a_read_only_container_starts_with_the_driver(image):
    assert image.run("ask libfake.so.1; (: >/etc/x) 2>/dev/null || echo read-only", [image.hook_entry(*UPDATE)], readonly=True) == "42\nread-only\n"


def test_a_read_only_etc_keeps_no_container_from_starting(image):
    (image.home / "etc").mkdir()
    mounts = [{"destination": "/etc", "type": "bind", "source": str(image.home / "etc"), "options": MOUNT_OPTIONS}]
    assert image.run("echo started", [image.hook_entry(*UPDATE)], mounts) == "started\n"
    done = image.run_hook(*UPDATE)
    assert (done.returncode, done.stderr) == (0, "")


def test_in_a_user_namespace_the_root_is_found_without_the_bundle(image):
    image.home.chmod(0o755)
    for path in [image.root, *image.root.rglob("*")]:
        os.chown(path, 100000, 100000, follow_symlinks=False)
    image.root.parent.chmod(0o711)
    identity = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    config = image.root.parent / "config.json"
    config.touch(0o600)
    config.chmod(0o600)
    kinds = [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "user")]
    text = image.run("ask libfake.so.1", [image.hook_entry(*UPDATE)], namespaces=kinds, uidMappings=identity, gidMappings=identity)
    assert text == "42\n"


def test_devices_get_their_links_in_the_containers_own_dev(image):
    link = "/dev/dri/by-path/pci-0000:38:00.0-card"
    assert image.run(f"readlink {link}", [image.hook_entry("create-symlinks", "--link", f"../card1::{link}")]) == "../card1\n"


def test_an_error_is_said_by_the_engine(image):
    text = image.run("echo started", [image.hook_entry("create-symlinks", "--link", "nonsense")], check=False)
    assert "is not a link; use TARGET::LINK" in text and "started" not in text


# Published attacks.

def test_cve_2024_0132_nothing_of_an_image_is_mounted_or_followed_out_of_it(attacked):
    """The image's CUDA libraries are links to files of the host."""
    shutil.rmtree(attacked.root / "usr/local/cuda")
    (attacked.root / "usr/local/cuda").symlink_to(attacked.outside)
    (attacked.root / "drv/libcuda.so.1").symlink_to("../../../outside/sub/libfake.so.1")
    for words in EVERY_HOOK:
        attacked.start(*words)
    assert "compat" not in "".join(path.name for path in (attacked.root / "etc/ld.so.conf.d").iterdir())


def test_cve_2024_0133_no_files_appear_on_the_host(attacked):
    """Folders of the image in which the hook creates files are links out of the root."""
    (attacked.root / "usr/lib/deep").symlink_to(attacked.outside)
    shutil.rmtree(attacked.root / "etc/ld.so.conf.d")
    (attacked.root / "etc/ld.so.conf.d").symlink_to("../../../outside")
    (attacked.root / "etc/nvidia").symlink_to("/proc/self/root" + str(attacked.outside))
    for words in EVERY_HOOK:
        attacked.run_hook(*words)


@pytest.mark.parametrize("target", ["{outside}", "../../../outside", "/proc/self/root{outside}", "/proc/1/root{outside}", "/proc/thread-self/cwd"])
def test_cve_2024_0134_links_are_made_inside(attacked, target):
    (attacked.root / "lib/evil").symlink_to(target.format(outside=attacked.outside))
    proc = {"destination": "/proc", "type": "proc", "source": "proc"}
    attacked.run("true", [attacked.hook_entry("create-symlinks", "--link", "x::/lib/evil/ld.so.cache", "--link", "x::/lib/evil/new/x",
                                              "--link", "x::/lib/evil/../../../../outside/y")], [proc], check=False)


@pytest.mark.parametrize("path", ["/sbin/ldconfig", "@/sbin/ldconfig", "@{root}/sbin/ldconfig", "../../sbin/ldconfig"])
def test_cve_2024_0135_0136_0137_no_ldconfig_is_executed(attacked, path):
    mark = attacked.home / "mark"
    for file in ("sbin/ldconfig", "sbin/ldconfig.real", "usr/sbin/ldconfig"):
        (attacked.root / file).parent.mkdir(parents=True, exist_ok=True)
        (attacked.root / file).unlink(missing_ok=True)
        (attacked.root / file).write_text(f"#!/bin/sh\n: >{mark}\n")
        (attacked.root / file).chmod(0o755)
    attacked.start(*UPDATE, "--ldconfig-path", path.format(root=attacked.root))
    assert "libfake.so.1" in attacked.cache()
    assert not mark.exists()


def test_cve_2025_23266_the_environment_of_an_image_loads_nothing(attacked):
    """LD_PRELOAD=/proc/self/cwd/poc.so has no effect on a hook that is started in the image's root."""
    mark = attacked.home / "mark"
    compile_c(attacked.root / "poc.so", POISON, "-shared", "-fPIC", f'-DMARK="{mark}"')
    poison = [f"{name}=/proc/self/cwd/poc.so" for name in ("LD_PRELOAD", "LD_AUDIT")] + ["LD_LIBRARY_PATH=/proc/self/cwd", "GCONV_PATH=/proc/self/cwd",
                                                                                         "GLIBC_TUNABLES=glibc.malloc.check=3", "MALLOC_TRACE=/etc/x"]
    attacked.run("true", [{"path": "/bin/true", "args": ["true"], "env": poison}])
    assert mark.exists(), "the attack must work on an ordinary program"
    mark.unlink()
    for words in EVERY_HOOK:
        attacked.run("true", [attacked.hook_entry(*words, env=poison)], environment=poison)
        hook = attacked.hook_entry(*words)
        del hook["env"]
        attacked.run("true", [hook], environment=poison)
    assert not mark.exists()


def test_cve_2025_23266_the_program_is_static(image):
    """The hook has no ELF interpreter (tests/packaging/hardening_test.py tests that it needs no libraries)."""
    content = image.hook.read_bytes()
    offset, = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    kinds = {struct.unpack_from("<I", content, offset + i * size)[0] for i in range(count)}
    assert 3 not in kinds and 1 in kinds  # PT_INTERP, PT_LOAD


def test_it_can_start_no_program_and_open_no_socket(image):
    """The hook's seccomp filter is active before it reads input, which limits an image that exploits the hook to the calls that hooks need."""
    process = subprocess.Popen([str(image.hook), *UPDATE], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:  # the hook waits for the container's state
        status = wait_until(lambda: (text := Path(f"/proc/{process.pid}/status").read_text()) and "Seccomp:\t2" in text and text, "the seccomp filter")
        assert "NoNewPrivs:\t1" in status
    finally:
        process.kill()
        process.communicate()


# Images that consume resources.

def bounded(image, *words, memory: int = 1 << 29) -> tuple[int, str, int]:
    """Calls the hook with limited address space; returns its status, output and largest resident set in bytes."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as state:
        state.write(image.state().encode())
        state.seek(0)
        process = subprocess.Popen([str(image.hook), *words], stdin=state, stdout=said, stderr=said,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read().decode(), usage.ru_maxrss << 10


def cache_of_hwcaps(names: int, sections: int) -> bytes:
    """An ld.so.cache without libraries whose sections all list the same unnamed glibc-hwcaps folders."""
    begin = 48 + 8 + 16 * sections
    header = struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", 0, 0, 2, 48)
    return header + struct.pack("<II", 0xeaa42174, sections) + struct.pack("<IIII", 1, 0, begin, 4 * names) * sections + struct.pack("<I", 47) * names


def test_a_small_list_of_libraries_costs_little(image):
    (image.root / "etc/ld.so.cache").write_bytes(cache_of_hwcaps(names=(15 << 20) // 4, sections=64))
    status, said, peak = bounded(image, *UPDATE)
    assert status == 0 and "more than 64 glibc-hwcaps folders" in said
    assert peak < 64 << 20
    assert "libfake.so.1" in image.cache()


def large_cache() -> bytes:
    """An ld.so.cache with the most libraries and the longest names that are allowed."""
    count, path = 65536, b"/" + b"x" * 200
    texts, begin = b"", 48 + 24 * count
    place = {}
    for name in (b"liba.so.1", path):
        place[name] = begin + len(texts)
        texts += name + b"\0"
    entry = struct.pack("<iIIIQ", 0x303, place[b"liba.so.1"], place[path], 0, 0)
    return struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", count, len(texts), 2, 0) + entry * count + texts


def test_where_memory_ends_the_container_starts_with_a_warning(image):
    (image.root / "etc/ld.so.cache").write_bytes(large_cache())
    status, said, peak = bounded(image, *UPDATE)
    assert (status, said) == (0, "") and peak < 160 << 20
    (image.root / "etc/ld.so.cache").write_bytes(large_cache())
    status, said, _ = bounded(image, *UPDATE, memory=24 << 20)
    assert status == 0 and "need more memory than the hook may use" in said


def make_fifo(path: Path, _):
    os.mkfifo(path)


def make_device(path: Path, _):
    os.mknod(path, 0o20666, os.makedev(1, 5))  # /dev/zero: endless to read


def make_huge(path: Path, _):
    with path.open("wb") as file:
        file.truncate(1 << 42)


def link_to(target: str):
    return lambda path, outside: path.symlink_to(target.format(outside=outside))


PLACES = ("etc", "etc/ld.so.cache", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/ld.so.conf.d/00-penstock-driver.conf",
          "etc/ld.so.conf.d/00-penstock-compat.conf", "drv", "drv/libfake.so.1", "drv/libfake.so.550.1")
THINGS = {"absolute link": link_to("{outside}/ld.so.cache"), "relative link": link_to("../../../../outside/ld.so.cache"),
          "link to a folder": link_to("{outside}"), "link to proc": link_to("/proc/self/root{outside}/ld.so.cache"), "circle": link_to("../etc/../etc"),
          "hard link": lambda path, outside: os.link(outside / "ld.so.cache", path), "fifo": make_fifo, "device": make_device, "huge": make_huge,
          "folder": lambda path, _: path.mkdir()}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("thing", THINGS)
def test_cve_2025_23267_whatever_stands_in_the_place_of_a_file(image, place, thing):
    """Links out of the root, hard links, FIFOs, devices and endless files at paths that update-ldcache reads and writes."""
    victim = image.root / place
    if victim.is_dir():
        shutil.rmtree(victim)
    victim.unlink(missing_ok=True)
    THINGS[thing](victim, image.outside)
    for words in EVERY_HOOK:
        done = image.run_hook(*words)
        assert done.returncode in (0, 1) and len(done.stderr.splitlines()) <= 4, done.stderr
    changed = {path for path, seen in snapshot(image.outside).items() if seen[5] != image.before.get(path, [None] * 6)[5]}
    assert not changed and snapshot(image.outside).keys() == image.before.keys()
    if thing != "hard link":  # its link count and mode change on the host
        image.assert_outside_untouched()


def test_cve_2025_23267_names_of_libraries_lead_nowhere(attacked):
    """The SONAME of an ELF file is a path out of the folder."""
    for soname in ("../../../../outside/ld.so.cache", "/etc/passwd", "..", "libnew\n.so", "x" * 300):
        compile_c(attacked.root / "drv/libfake.so.550.1", DRIVER, "-shared", "-fPIC", f"-Wl,-soname,{soname}")
        for words in EVERY_HOOK:
            attacked.run_hook(*words)
    assert not (attacked.root / "outside").exists()
    assert "passwd" not in {path.name for path in (attacked.root / "etc").iterdir()}


class Swapper:
    """Swaps a folder of the image with a link out of the root, and moves the folder, as fast as possible."""

    def __init__(self, image: Image, folder: str):
        self.libc, self.done, self.swaps = ctypes.CDLL(None, use_errno=True), threading.Event(), 0
        self.folder = image.root / folder
        self.links = []
        for i, target in enumerate((str(image.outside), "../" * (folder.count("/") + 2) + "outside", "/proc/self/root" + str(image.outside))):
            self.links.append(image.root / f"link{i}")
            self.links[-1].symlink_to(target)
        self.thread = threading.Thread(target=self.swap)

    def exchange(self, one: Path, other: Path):
        self.libc.renameat2(AT_FDCWD, str(one).encode(), AT_FDCWD, str(other).encode(), RENAME_EXCHANGE)

    def swap(self):
        while not self.done.is_set():
            for link in self.links:
                self.exchange(self.folder, link)
                self.exchange(self.folder, link)
            self.swaps += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def test_cve_2025_23359_a_folder_that_is_swapped_for_a_link_while_the_hook_runs(attacked):
    """500 runs while a thread swaps /etc with links to the host's folder."""
    with Swapper(attacked, "etc") as swapper:
        results = [attacked.run_hook(*(UPDATE if i % 2 else EVERY_HOOK[1])).returncode for i in range(500)]
    assert swapper.swaps > 100 and set(results) <= {0, 1} and 0 in results


@pytest.mark.parametrize("folder", ["drv", "etc/ld.so.conf.d", "usr/local/cuda"])
def test_cve_2026_24260_no_hook_uses_what_it_checked_before(attacked, folder):
    with Swapper(attacked, folder) as swapper:
        for i in range(150):
            assert attacked.run_hook(*EVERY_HOOK[i % len(EVERY_HOOK)]).returncode in (0, 1)
    assert swapper.swaps > 30


# Bad input.

@pytest.mark.parametrize("words, says", [
    (["--loud", "chmod"], "unknown flag --loud"), (["chmod", "--mod", "755"], "unknown flag --mod"), (["chmod", "--mode"], "flag --mode needs a value"),
    (["chmod", "--mode", "rwx", "--path", "/drv"], '"rwx" is not a mode'), (["chmod", "--path", "/drv"], '"" is not a mode'),
    (["create-symlinks", "--link", "a:b"], '"a:b" is not a link'), (["create-symlinks", "a::b"], 'unexpected argument "a::b"'),
    (["update-ldcache", "--folders", "/drv"], "unknown flag --folders"),
    (["enable-cuda-compat", "--host-driver-version=new"], '"new" is not a version')])
def test_a_wrong_flag_is_one_message(image, words, says):
    done = image.run_hook(*words)
    assert done.returncode == 1 and done.stdout == ""
    assert says in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("state, says", [
    ("", "no container state on standard input"), ("{", "syntax error"), ("null", "not a map"), ("{}", "names neither a root nor a bundle"),
    ('{"bundle":"/none"}', "/none/config.json"), ('{"root":"/"}', "own root directory"), ('{"root":"/none"}', "/none"), ("[" * 100000, "")])
def test_a_wrong_state_is_one_message(image, state, says):
    done = image.run_hook(*UPDATE, state=state)
    assert done.returncode == 1 and says in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["apply-cuda-memory-limits", "--gpu-id", "x"], [], ["hook"]])
def test_an_unknown_hook_is_a_warning(image, words):
    done = image.run_hook(*words)
    assert done.returncode == 0 and "warning: " in done.stderr


def test_a_root_that_is_a_link_and_a_state_in_a_file(image):
    (image.home / "link").symlink_to(image.root)
    state = image.home / "state.json"
    state.write_text(image.state().replace(str(image.root), str(image.home / "link")))
    assert image.run_hook(*UPDATE, "--container-spec", state, state="").returncode == 0
    assert "libfake.so.1" in image.cache()
