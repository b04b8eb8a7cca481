"""AMD's accelerators beside NVIDIA's GPUs, with the product's own programs: found in the files of KFD, DRM and PCI, labelled, advertised, measured, withdrawn, and
handed to containers with exactly their files. On a machine without AMD's driver no process runs for it."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from amd import RENDER, VIDEO, Amd
from monitored import Kubelet, OtherPlugin, Refused
from node import Node, wait_until


@pytest.fixture
def node(make_node) -> Node:
    """Eight GPUs of NVIDIA, not yet with an agent."""
    node = make_node(config="labels: {featuresFile: HOME/features}\n")
    node.config.write_text(node.config.read_text().replace("HOME", str(node.home)))
    node.listen = f"unix:{node.home}/page.sock"
    return node


def devices(node: Node) -> dict[str, dict]:
    return {device["id"]: device for device in node.report()["devices"] if device["vendor"] == "amd"}


def labels(node: Node) -> dict[str, str]:
    file = node.home / "features"
    lines = file.read_text().splitlines() if file.exists() else []
    return dict(line.split("=", 1) for line in lines if "amd.com/" in line)


def metrics(node: Node) -> str:
    return subprocess.run(["curl", "-sS", "--unix-socket", node.home / "page.sock", "http://node/metrics"], check=True, capture_output=True, text=True).stdout


def children(node: Node) -> list[str]:
    """The command lines of the agent's processes."""
    found = []
    for task in Path(f"/proc/{node.agent.pid}/task").iterdir():
        pids = []
        with contextlib.suppress(OSError):  # A thread may have ended meanwhile; its children then belong to another one.
            pids = (task / "children").read_text().split()
        for pid in pids:
            with contextlib.suppress(OSError):  # It may have ended meanwhile.
                found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
    return found


HEALTH = Path("/var/lib/amd-metrics-exporter/amdgpu_device_metrics_exporter_grpc.socket")


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """Of a protobuf message that has only texts and messages, none longer than 16383 bytes."""
    found = []
    while message:
        length, start = message[1], 2
        if length > 127:
            length, start = length & 127 | message[2] << 7, 3
        found.append((message[0] >> 3, message[start:start + length]))
        message = message[start + length:]
    return found


def asked_by_a_device_plugin() -> dict[str, dict[int, str]]:
    """What AMD's device plugin gets from AMD's exporter: by PCI address, the fields of GPUState by number. Empty without an answer."""
    ran = subprocess.run(["curl", "-sS", "--max-time", "20", "--http2-prior-knowledge", "--unix-socket", HEALTH, "-H", "content-type: application/grpc", "-H", "te: trailers",
                          "--data-binary", "@-", "http://localhost/metricssvc.MetricsService/List"], input=bytes(5), capture_output=True)
    states = [dict((number, text.decode()) for number, text in fields(state)) for _, state in fields(ran.stdout[5:])]
    return {state[5]: state for state in states}


def test_amds_device_plugin_learns_the_health_of_gpus_where_it_asks_amds_exporter(node, request):
    amd = Amd(node.root)
    kubelet = Kubelet(node.home, request.config.getoption("--programs").resolve())
    try:
        node.kubelet = kubelet.dir
        node.start_agent(devices=16)
        assert not HEALTH.exists(), "nothing is made where no such exporter or plugin was"
        HEALTH.parent.mkdir()
        states = wait_until(lambda: len(now := asked_by_a_device_plugin()) == 8 and now, "an answer", seen=node.log)
        assert {state[3] for state in states.values()} == {"healthy"} and HEALTH.stat().st_mode & 0o777 == 0o600
        kubelet.healthy(8, "amd.com/gpu")
        kubelet.start("ml", "training", 1, "amd.com/gpu")
        text = "pod : training, namespace : ml, container: main"
        wait_until(lambda: [state[4] for state in asked_by_a_device_plugin().values() if 4 in state] == [text], "the pod", seen=asked_by_a_device_plugin)
        amd.errors(2, "umc", uncorrectable=1)
        wait_until(lambda: [at for at, state in asked_by_a_device_plugin().items() if state[3] == "unhealthy"] == [amd.address(2)], "the GPU with an error",
                   seen=asked_by_a_device_plugin)
        node.end_agent()
        assert not HEALTH.exists()
    finally:
        kubelet.stop()
        node.kill_agent()
        amd.close()
        shutil.rmtree(HEALTH.parent, ignore_errors=True)


@pytest.mark.parametrize("vendors", [["amd"], []], ids=["amd", "none"])
def test_without_hardware_and_driver_of_nvidia_no_process_runs_for_it(make_node, vendors):
    """Neither one that stays, nor one that ends at once: each start of a worker is noted. Without any GPU the driver that is expected is named."""
    node = make_node(machine="empty")
    amd = Amd(node.root) if vendors else None
    worker, starts = node.home / "noting-worker", node.home / "starts"
    worker.write_text(f"#!/bin/sh\necho $1 >> {starts}\nexec {node.programs}/penstock-worker \"$@\"\n")
    worker.chmod(0o755)
    node.options = ["--worker", worker]
    node.start_agent(devices=8 * len(vendors))

    def started() -> set[str]:
        return {*starts.read_text().split()} if starts.exists() else set()

    def reasons() -> dict[str, str]:
        return {one["vendor"]: one["reason"] for one in (node.report() or {"vendors": []})["vendors"]}
    wait_until(lambda: sorted(reasons()) == (vendors or ["nvidia"]), "the first look", seen=reasons)
    assert started() == {*vendors}
    assert bool([one for one in children(node) if "penstock-worker amd" in one]) == bool(vendors)
    assert vendors or "install the NVIDIA driver" in reasons()["nvidia"]
    (node.root / "sys/bus/pci/drivers/vgem").mkdir(parents=True)  # something changes below a watched folder
    # A later change that is seen: by then the agent has looked at this one, too.
    if vendors:
        amd.errors(2, "umc", uncorrectable=1)
        wait_until(lambda: devices(node)[amd.id(2)]["health"]["state"] == "unhealthy", "an error of AMD's to be seen", seen=lambda: devices(node))
    else:
        Amd(node.root)
        wait_until(lambda: len(devices(node)) == 8, "AMD's GPUs to be seen", seen=node.log)
    assert started() == {"amd"}
    assert not [one for one in children(node) if "penstock-worker nvidia" in one]


def test_without_the_driver_no_process_runs_for_it(node):
    node.start_agent()
    wait_until(lambda: any("penstock-worker nvidia" in one for one in children(node)), "NVIDIA's worker", seen=lambda: children(node))
    assert not [one for one in children(node) if "penstock-worker amd" in one]
    assert [vendor["vendor"] for vendor in node.report()["vendors"]] == ["nvidia"]
    Amd(node.root)
    wait_until(lambda: len(devices(node)) == 8, "the GPUs of the driver that came")
    assert [one for one in children(node) if "penstock-worker amd" in one]


def test_gpus_of_two_vendors_stand_side_by_side(node):
    amd = Amd(node.root)
    node.start_agent(devices=16)
    found = devices(node)
    assert set(found) == {amd.id(gpu) for gpu in range(8)}
    assert {(one["model"], one["memoryBytes"], one["resource"]) for one in found.values()} == {("AMD Instinct MI300X OAM", 192 << 30, "amd.com/gpu")}
    expected = {"amd.com/gpu.device-id": "74a1", "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G", "amd.com/gpu.cu-count": "304",
                "amd.com/gpu.simd-count": "1216", "amd.com/gpu.family": "AI", "amd.com/gpu.compute-memory-partition": "spx_nps1",
                "beta.amd.com/gpu.cu-count": "304", "beta.amd.com/gpu.cu-count.304": "8"}
    wait_until(lambda: expected.items() <= labels(node).items(), "its labels", seen=lambda: labels(node))
    shown = wait_until(lambda: (page := metrics(node)) if f'accelerator_temperature_celsius{{device="{amd.id(3)}"' in (page := metrics(node)) else None, "samples")
    line = next(line for line in shown.splitlines() if line.startswith(f'accelerator_temperature_celsius{{device="{amd.id(3)}"'))
    assert line.split()[-1] == "47"
    specs = wait_until(lambda: [spec for file in node.cdi_dir.glob("*.json") if (spec := json.loads(file.read_text()))["kind"] == "amd.com/gpu"
                                and amd.id(3) in json.dumps(spec)], "the specification for containers")
    nodes = {device["name"]: sorted(one["path"] for one in device["containerEdits"]["deviceNodes"]) for spec in specs for device in spec["devices"]}
    assert nodes["3"] == nodes[amd.id(3)] and {"/dev/dri/card24", "/dev/dri/renderD152"} <= set(nodes["3"]), nodes
    assert "/dev/kfd" in json.dumps(specs)
    assert node.penstock("status").stdout.count("Instinct MI300X OAM") == 8


def test_groups_of_device_files_are_in_specifications_only_where_that_is_asked_for(node):
    """Podman before 5 reads no specification that has them. Without a kubelet there is only the one for users."""
    Amd(node.root, model="mi210", first=16)
    node.start_agent(devices=16)

    def found() -> set[tuple]:
        specs = [json.loads(file.read_text()) for file in node.cdi_dir.glob("*amd.com*.json")]
        return {(spec["kind"], spec["cdiVersion"], *device["containerEdits"].get("additionalGids", ())) for spec in specs for device in spec["devices"]}

    wait_until(lambda: found() == {("amd.com/gpu", "0.5.0")}, "a specification without groups", seen=found)
    node.config.write_text(f"{node.config.read_text()}cdi: {{additionalGids: on}}\n")
    wait_until(lambda: found() == {("amd.com/gpu", "0.7.0", VIDEO, RENDER)}, "a specification with groups", seen=found)


def cdi_files(node) -> dict[str, set[str]]:
    """What users' specification gives of AMD's devices, by their names."""
    specs = [spec for file in node.cdi_dir.glob("*.json") if (spec := json.loads(file.read_text()))["kind"] == "amd.com/gpu"]
    return {device["name"]: {one["path"] for one in device["containerEdits"]["deviceNodes"]} for spec in specs for device in spec["devices"]}


def test_issues_420_and_382_partitions_are_offered_in_the_place_of_their_gpu(node):
    amd = Amd(node.root, mode="CPX", board=True)
    node.start_agent(devices=8 + 8 + 63)
    found = devices(node)
    assert found[amd.id(0)]["parts"] == 8 and found[amd.id(7)]["parts"] == 7, "the BMC's card has the minor of the last one"
    missing = "it has 7 of the 8 partitions of the mode CPX; missing: 7, because all 64 minors of DRM are taken, by cards that are not of this driver, too: card0"
    wait_until(lambda: missing in node.penstock("status").stdout, "the partition that is missing to be named", seen=lambda: node.penstock("status").stdout)
    assert [one["id"] for one in devices(node).values() if one["warning"]] == [amd.id(7)]
    assert found[f"{amd.id(0)}-3"]["resource"] == "amd.com/gpu" and found[f"{amd.id(0)}-3"]["memoryBytes"] == 24 << 30
    files = wait_until(lambda: cdi_files(node) if len(cdi_files(node)) == 8 + 63 + 63 + 1 else None, "the specification for users", seen=lambda: cdi_files(node).keys())
    parts = [files[f"{amd.id(0)}-{part}"] for part in range(8)]
    # The numbers count what programs see, as with amd-ctk; the id of a GPU means all of it, as in AMD_VISIBLE_DEVICES.
    assert [files[str(part)] for part in range(8)] == parts and files["8"] == files[f"{amd.id(1)}-0"]
    assert files[amd.id(0)] == set.union(*parts) and len(files[amd.id(0)]) == 16 and len(files[amd.id(7)]) == 14
    assert files["all"] == set.union(*(files[amd.id(gpu)] for gpu in range(8)))
    assert "omitted from the CDI specification" not in node.penstock("status").stdout
    amd.switch("SPX")
    wait_until(lambda: len(devices(node)) == 8, "the whole GPUs")
    wait_until(lambda: not any(one.get("parts") or one["warning"] for one in devices(node).values()), "the GPUs to be whole")
    wait_until(lambda: labels(node).get("amd.com/gpu.compute-memory-partition") == "spx_nps1", "the label to follow", seen=lambda: labels(node))


@pytest.mark.parametrize("mode, partitions, resource, strategy", [("SPX", 8, "amd.com/gpu", ""), ("CPX", 64, "amd.com/gpu", ""),
                                                                  ("SPX", 8, "amd.com/spx_nps1", "mixed"), ("CPX", 64, "amd.com/cpx_nps1", "mixed")])
def test_a_pod_gets_exactly_the_files_of_its_devices(node, request, mode, partitions, resource, strategy):
    amd = Amd(node.root, mode=mode)
    if strategy:
        node.config.write_text(f"{node.config.read_text()}parts: {{strategy: {strategy}}}\n")
    kubelet = Kubelet(node.home, request.config.getoption("--programs").resolve())
    try:
        node.kubelet = kubelet.dir
        node.start_agent(devices=8 + 8 + (partitions if mode != "SPX" else 0))
        kubelet.healthy(partitions, resource)
        held = kubelet.start("ml", "training", 2, resource)
        given = " ".join(urllib.parse.unquote(one) for one in kubelet.given())
        minors = [amd.minors[gpu][part] - 128 for gpu in range(8) for part in range(8)
                  if (amd.id(gpu) if mode == "SPX" else f"{amd.id(gpu)}-{part}") in {one.split("::")[0] for one in held} and (part == 0 or mode != "SPX")]
        assert len(minors) == 2, held
        expected = {"/dev/kfd", *(f"/dev/dri/card{minor}" for minor in minors), *(f"/dev/dri/renderD{128 + minor}" for minor in minors)}
        assert set(re.findall(r"/dev/(?:kfd|dri/\w+)", given)) == expected
        assert "VISIBLE" not in given
    finally:
        kubelet.stop()


@pytest.fixture
def kubelet(node, request):
    kubelet = Kubelet(node.home, request.config.getoption("--programs").resolve())
    node.kubelet = kubelet.dir
    yield kubelet
    kubelet.stop()


def test_issue_202_a_gpu_with_a_process_that_is_left_over_is_not_handed_out(node, kubelet):
    """One that runs in no container, and one that has ended and is not collected."""
    amd = Amd(node.root, model="mi210")
    node.start_agent(devices=16)
    kubelet.healthy(8, "amd.com/gpu")
    runs, ended = subprocess.Popen(["sleep", "1000"]), subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        for process, gpu in ((runs, 3), (ended, 5)):
            amd.process(process.pid, gpus=(gpu,))
        found = {(amd.id(3), runs.pid), (amd.id(5), ended.pid)}

        def outside() -> set[tuple]:
            return {(one["device"], pid) for one in node.holders() if one["state"] == "outside" for pid in one["pids"]}
        wait_until(lambda: outside() == found, "the processes to be found", seen=node.holders)
        kubelet.healthy(6, "amd.com/gpu")
        rows = [line for line in node.penstock("status").stdout.splitlines() if "outside" in line]
        assert len(rows) == 2 and all("Instinct MI210" in row for row in rows), node.penstock("status").stdout
        for gpu in (3, 5):
            with pytest.raises(Refused, match="in use by a process of root to which it is not allocated"):
                kubelet.take("ml", "next", "amd.com/gpu", [amd.id(gpu)])
        assert {amd.id(3), amd.id(5)}.isdisjoint(kubelet.start("ml", "others", 6, "amd.com/gpu"))
        for process in (runs, ended):
            amd.ends(process.pid)
        wait_until(lambda: not outside(), "the GPUs to be free", seen=node.holders)
        kubelet.healthy(8, "amd.com/gpu")
        kubelet.take("ml", "next", "amd.com/gpu", [amd.id(3)])
    finally:
        runs.kill()
        runs.wait()
        ended.wait()


def test_shares_of_a_gpu_are_offered_and_isolate_nothing(node, kubelet):
    amd = Amd(node.root, model="mi210")
    node.config.write_text(f"{node.config.read_text()}sharing: {{rules: [{{resource: amd.com/gpu, strategy: time-slicing, replicas: 4}}]}}\n")
    node.start_agent(devices=16)
    kubelet.healthy(8 * 4, "amd.com/gpu")
    kubelet.healthy(8)
    [share] = kubelet.start("ml", "train", 1, "amd.com/gpu")
    device = devices(node)[share.split("::")[0]]
    given = " ".join(urllib.parse.unquote(one) for one in kubelet.given())
    assert len(re.findall(r"/dev/(?:kfd|dri/\w+)", given)) >= 3
    assert (device["sharing"], device["shares"], device["isolation"]) == ("time-slicing", 4, "none")
    assert {one["isolation"] for one in node.report()["devices"] if one["vendor"] == "nvidia"} == {"hardware"}
    rows = [line for line in node.penstock("status").stdout.splitlines() if "Instinct MI210" in line]
    assert len(rows) == 8 and all(re.search(r"\bnone\b", row) for row in rows), rows


def waits_for(node: Node) -> str:
    """Why the kubelet's allocator does not serve all of its resources. It is open meanwhile, for the other vendor's."""
    return next((one.get("reason", "") for one in (node.report() or {"allocators": []})["allocators"] if one["name"] == "kubelet"), "")


@pytest.mark.parametrize("resource, socket, strategy", [("amd.com/gpu", "amd.com_gpu", "single"), ("amd.com/spx_nps1", "amd.com_spx_nps1", "mixed")])
def test_amds_own_plugin_is_named_and_waited_for(node, kubelet, request, resource, socket, strategy):
    """Beside a plugin of something else, so that its socket's name, which has no suffix, has to say which one it is."""
    Amd(node.root)
    programs = request.config.getoption("--programs").resolve()
    node.config.write_text(f"{node.config.read_text()}parts: {{strategy: {strategy}}}\n")
    rdma = OtherPlugin(kubelet, programs, "rdma.sock", "rdma/hca", 1)
    theirs = OtherPlugin(kubelet, programs, socket, resource, 8)
    kubelet.healthy(8, resource)
    node.start_agent(devices=16)
    wait_until(lambda: "already served" in waits_for(node), "the agent to wait", seen=lambda: waits_for(node))
    assert f"{resource} is already served by {socket} (pretended-plugi, pid {theirs.process.pid});" in waits_for(node)
    kubelet.healthy(8, "nvidia.com/gpu")  # of the other vendor nothing waits
    assert all(one.startswith("theirs-") for one in kubelet.told(resource))
    theirs.leave()
    wait_until(lambda: not waits_for(node), "the agent to serve", seen=lambda: waits_for(node))
    kubelet.healthy(8, resource)
    assert not any(one.startswith("theirs-") for one in kubelet.start("ml", "training", 8, resource))
    rdma.leave()


def test_a_user_who_takes_the_name_of_amds_socket_keeps_nothing_from_being_served(node, kubelet, request):
    """Where the folder can be written by all, by an error of its administrator."""
    Amd(node.root)
    programs = request.config.getoption("--programs").resolve()
    (kubelet.dir / "device-plugins").chmod(0o777)
    squatter = OtherPlugin(kubelet, programs, "amd.com_gpu", user=65534, group=65534, extra_groups=[])
    theirs = OtherPlugin(kubelet, programs, "plugin.sock", "amd.com/gpu", 8)
    kubelet.healthy(8, "amd.com/gpu")
    node.start_agent(devices=16)
    wait_until(lambda: "already served" in waits_for(node), "the agent to wait", seen=lambda: waits_for(node))
    assert f"amd.com_gpu (pretended-plugi, pid {squatter.process.pid}) or plugin.sock (pretended-plugi, pid {theirs.process.pid})" in waits_for(node)
    theirs.leave()
    wait_until(lambda: not waits_for(node), "the agent to serve although the name is taken", seen=lambda: waits_for(node))
    kubelet.healthy(8, "amd.com/gpu")
    squatter.leave()


def test_an_uncorrectable_error_withdraws_a_gpu(node):
    amd = Amd(node.root, model="mi210")
    node.start_agent(devices=16)
    amd.errors(2, "umc", uncorrectable=1)
    wait_until(lambda: devices(node)[amd.id(2)]["health"]["state"] == "unhealthy", "the GPU to be withdrawn")
    broken = devices(node)[amd.id(2)]["health"]
    assert "1 uncorrectable errors in block umc" in broken["reason"]
    amd.errors(2, "umc", text="Query currently inaccessible\n")
    amd.errors(3, "umc", uncorrectable=2)
    wait_until(lambda: devices(node)[amd.id(3)]["health"]["state"] == "unhealthy", "a later reading")
    assert devices(node)[amd.id(2)]["health"]["state"] == "unhealthy", "what cannot be read is no recovery"


def test_a_program_gets_no_variable_of_another_vendor(node):
    """HIP obeys CUDA_VISIBLE_DEVICES, too, where HIP_VISIBLE_DEVICES is not set: with NVIDIA's ids in it, no AMD GPU is visible."""
    amd = Amd(node.root)
    node.start_agent(devices=16)

    def of(*ids: str) -> dict[str, str]:
        said = node.penstock("run", "--wait", "1m", "--device", ",".join(ids), "--", "env").stdout
        return {key: value for key, _, value in (line.partition("=") for line in said.splitlines()) if key.endswith("_VISIBLE_DEVICES")}

    assert of(amd.id(1)) == {}
    other = next(one["id"] for one in node.report()["devices"] if one["vendor"] == "nvidia")
    assert of(other) == {"CUDA_VISIBLE_DEVICES": other, "NVIDIA_VISIBLE_DEVICES": other}
    assert of(amd.id(4), amd.id(1), other) == {"CUDA_VISIBLE_DEVICES": other, "NVIDIA_VISIBLE_DEVICES": other, "HIP_VISIBLE_DEVICES": "0,1"}


def test_a_run_gets_gpus_of_one_vendor(node):
    amd = Amd(node.root)
    node.start_agent(devices=16)

    def of(*options: str) -> str:
        ran = node.penstock("run", "--wait", "1m", *options, "--", "env", check=False)
        assert ran.returncode == 0, ran.stderr
        return "nvidia" if "CUDA_VISIBLE_DEVICES=GPU-" in ran.stdout else "amd"

    assert of("--gpus", "8") == "amd" and of("--gpus", "8", "--vendor", "nvidia") == "nvidia"
    assert of("--gpus", "1", "--vendor", "nvidia") == "nvidia"
    refused = node.penstock("run", "--wait", "0", "--gpus", "9", "--", "true", check=False)
    assert refused.returncode == 125
    assert "8 GPUs of amd and 8 GPUs of nvidia" in refused.stderr and "those of one vendor" in refused.stderr
    typed = node.penstock("run", "--vendor", "amdd", "--", "true", check=False)
    assert typed.returncode == 2 and "is not one of nvidia, amd" in typed.stderr
    assert of("--device", "0,1", "--vendor", "nvidia") == "nvidia" and of("--device", "0,1", "--vendor", "amd") == "amd"
    ambiguous = node.penstock("run", "--device", "0", "--", "true", check=False)
    assert ambiguous.returncode == 125 and "a device 0 of amd and one of nvidia" in ambiguous.stderr, ambiguous.stderr


def test_known_limitations_a_driver_that_goes_takes_its_devices_along(node):
    amd = Amd(node.root)
    node.start_agent(devices=16)
    amd.unload()
    wait_until(lambda: not any(one["health"]["state"] == "healthy" for one in devices(node).values()), "the GPUs to go")
    wait_until(lambda: not [one for one in children(node) if "penstock-worker amd" in one], "the worker to end")

    def reason() -> str:
        return next(vendor["reason"] for vendor in node.report()["vendors"] if vendor["vendor"] == "amd")
    wait_until(lambda: "modprobe amdgpu" in reason(), "what to do, since its GPUs are still there", seen=reason)
    assert len(node.usable()) == 8
