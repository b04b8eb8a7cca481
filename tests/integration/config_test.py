"""Configuration files as their authors use them: checked before they are applied, planned, and reloaded by a running agent. On simulated
machines; needs no root and no network but the loopback."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, wait_until  # noqa: E402

SHARING = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
NOT_YET = "flags: {deviceDiscoveryStrategy: vfio}\n"


class Home:
    """The folders and the configuration file of one agent on a simulated machine, and calls of the program on them."""

    def __init__(self, folder: Path, programs: Path):
        self.config = folder / "config.yaml"
        self.programs = programs
        self.base = [str(programs / "penstock"), "--run-dir", str(folder / "run"), "--state-dir", str(folder / "state"),
                     "--kubelet-dir", str(folder / "none"), "--listen", f"unix:{folder}/pages"]
        self.pages = folder / "pages"

    def penstock(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([*self.base, *words], capture_output=True, text=True, input=text, timeout=PATIENCE)

    def up(self, text: str, machine: str = "mixed") -> None:
        self.write(text)
        up = self.penstock("up", "--detach", "--simulate", machine, "--config", str(self.config))
        assert up.returncode == 0, up.stderr

    def write(self, text: str) -> None:
        """Replaces the file atomically, as editors and kubelets do."""
        beside = self.config.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.config)

    def configuration(self) -> dict:
        return json.loads(self.penstock("status", "-o", "json").stdout)["configuration"]

    def metrics(self) -> str:
        done = subprocess.run(["curl", "-s", "--unix-socket", str(self.pages), "http://x/metrics"], capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout

    def plan(self, text: str) -> dict:
        answer = self.penstock("plan", "-", "-o", "json", text=text)
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)


@pytest.fixture
def programs(request):
    return request.config.getoption("--programs").resolve()


@pytest.fixture
def home(programs):
    with tempfile.TemporaryDirectory(prefix="penstock-cfg-") as folder:  # short, because socket paths have a length limit
        home = Home(Path(folder), programs)
        yield home
        home.penstock("down")


def check(programs: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(programs / "penstock"), "config", "check", *words], capture_output=True, text=True, timeout=PATIENCE)


def test_a_check_tells_what_each_key_of_a_config_map_would_offer_and_leaves_nothing_behind(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    manifest = tmp_path / "map.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gpu}\ndata:\n"
                        f"  shared: |\n    version: v1\n    {SHARING}  plain: |\n    version: v1\n")
    done = check(programs, str(manifest), "--against", "dgx-a100", "-o", "json")
    assert done.returncode == 0, done.stderr
    shared, plain = json.loads(done.stdout)
    for one, replicas in ((shared, 4), (plain, 1)):
        assert one["notYet"] == []
        offers = [(offer["allocator"], offer["resource"], len(offer["slots"])) for offer in one["resources"]]
        assert offers == [("kubelet", "nvidia.com/gpu", 8 * replicas)]
        assert one["labels"]["nvidia.com/gpu.count"] == "8" and one["labels"]["nvidia.com/gpu.replicas"] == str(replicas)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_check_shows_as_text_what_would_be_offered_and_what_is_not_there(programs, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("version: v1\n" + SHARING.replace("replicas: 4", "replicas: 4, devices: [1, 7], rename: gpu.small"))
    done = check(programs, str(config), "--against", "mixed")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"{config}: OK (device plugin v1)" and lines[3] == '  remark: sharing.rules[0]: no device on this node matches "7"'
    assert all("NVIDIA's plugin ignores it" in line for line in lines[1:3])  # rename, devices
    assert "  label nvidia.com/gpu.replicas.GeForce-RTX-3090=4" in lines
    whole, shared = (line for line in lines if line.startswith("  allocator "))
    assert re.fullmatch(r'  allocator kubelet offers 2 nvidia\.com/gpu: GPU-\S+, GPU-\S+', whole)
    assert re.fullmatch(r'  allocator kubelet offers 4 nvidia\.com/gpu\.small: GPU-\S+ in 4 shares \(time-slicing\)', shared)
    config.write_text("version: v1\n" + NOT_YET)
    done = check(programs, str(config))
    assert done.stdout.splitlines()[1].startswith("  not supported yet: flags.deviceDiscoveryStrategy: "), done.stdout


@pytest.mark.parametrize("text", ["", "---\n\n  # replicas: 4\n"])
def test_a_check_of_a_file_without_settings_says_that_it_has_none(programs, tmp_path, text):
    config = tmp_path / "empty.yaml"
    config.write_text(text)
    done = check(programs, str(config))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == ["  remark: contains no settings: the defaults are used"]


def test_a_configuration_of_0_1_0_is_read_with_a_remark(programs, tmp_path):
    config = tmp_path / "node.yaml"
    config.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\ndoors: {assign: [{devices: [0], door: none}]}\n")
    done = check(programs, str(config), "--against", "mixed", "-o", "json")
    assert done.returncode == 0, done.stderr
    checked, = json.loads(done.stdout)
    assert checked["remarks"] == ["doors: deprecated; use allocators, and in its rules allocator instead of door (line 3)"]
    assert sum(len(resource["slots"]) for resource in checked["resources"]) == 2  # of three


def test_a_check_says_what_is_wrong_with_line_and_column_of_the_manifest(programs, tmp_path):
    manifest = tmp_path / "map.yaml"
    manifest.write_text("kind: ConfigMap\ndata:\n  a: |\n    version: v1\n    flag: {}\n  b: |\n    version: v1\n")
    done = check(programs, str(manifest))
    assert done.returncode == 1
    assert f'{manifest}:5:5: unknown key "flag"; did you mean "flags"?' in done.stderr
    assert "key b: OK (device plugin v1)" in done.stdout


def test_a_charts_values_are_no_configuration_and_what_they_hold_is_checked(programs, tmp_path):
    """The structure of NVIDIA's default values.yaml, of one with configurations, and of dcgm-exporter's."""
    values = tmp_path / "values.yaml"
    values.write_text("legacyDaemonsetAPI: null\nmigStrategy: null\nconfig: {map: {}, name: \"\", default: \"\"}\nresources: {}\n"
                      "image: {repository: nvcr.io/nvidia/k8s-device-plugin, tag: \"\"}\ngfd: {enabled: false}\nnfd: {master: {}}\n")
    done = check(programs, str(values))
    assert done.returncode == 0 and done.stdout.splitlines()[0] == f"{values}: OK (values of NVIDIA's device plugin chart)", done.stdout + done.stderr
    values.write_text(f"gfd: {{enabled: true}}\nresources: {{}}\nconfig:\n  map:\n    good: |\n      version: v1\n      {SHARING}"
                      "    bad: |-\n      version: v1\n      flag: {}\n")
    done = check(programs, str(values), "--against", "dgx-a100", "-o", "json")
    assert done.returncode == 1, done.stderr
    chart, good, bad = json.loads(done.stdout)
    assert chart["kind"] == "values of NVIDIA's device plugin chart" and chart["ok"] and "resources" not in chart
    assert good["name"] == f"{values}: config.map.good" and len(good["resources"][0]["slots"]) == 32
    assert bad["problems"] == [f'{values}:10:7: unknown key "flag"; did you mean "flags"?']
    values.write_text("image: {repository: nvcr.io/nvidia/k8s/dcgm-exporter}\narguments: []\nresources: {}\nserviceMonitor: {enabled: true}\n"
                      "config:\n  enabled: true\n  data: |\n    version: 1\n    collection: {interval: 30s}\n"
                      "customMetrics: |\n  DCGM_FI_DEV_GPU_TEMP, gauge, hot\n")
    kinds = [one["kind"] for one in json.loads(check(programs, str(values), "-o", "json").stdout)]
    assert kinds == ["values of dcgm-exporter's chart", "dcgm-exporter", "dcgm-exporter counters"]
    values.write_text("image: {repository: registry.example/penstock}\npenstock: {telemetry: {counters: \"DCGM_X, gauge, x\\n\"}}\n")
    done = check(programs, str(values))
    assert done.returncode == 1 and 'there is no field "DCGM_X"' in done.stderr and "OK (values of Penstock's chart)" in done.stdout


def test_a_check_of_layouts_says_what_each_makes_of_a_machine(programs, tmp_path):
    manifest = tmp_path / "map.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: layouts}\ndata:\n  config.yaml: |\n    version: v1\n    mig-configs:\n"
                        "      seven: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n"
                        "      eight: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 8}}]\n")
    plain = check(programs, str(manifest))
    assert plain.returncode == 0 and "key config.yaml: OK (mig-parted)\n  layouts: seven, eight\n" in plain.stdout, plain.stdout
    done = check(programs, str(manifest), "--against", "dgx-a100")
    assert "  layout seven: GPU 0, 1, 2, 3, 4, 5, 6, 7: 7 of 1g.5gb\n" in done.stdout
    assert "8 of 1g.5gb: impossible\n    there can be at most 7 of 1g.5gb at once, not 8\n" in done.stdout
    [document] = json.loads(check(programs, str(manifest), "--against", "dgx-a100", "-o", "json").stdout)
    assert [(one["name"], one["possible"]) for one in document["layouts"]] == [("seven", True), ("eight", False)]
    manifest.write_text(manifest.read_text().replace("mig-enabled", "mig-enable", 1))
    wrong = check(programs, str(manifest))
    assert wrong.returncode == 1 and 'map.yaml:8:' in wrong.stderr and 'did you mean "mig-enabled"' in wrong.stderr, wrong.stderr


def test_a_check_against_a_machine_that_is_none_says_which_there_are(programs, tmp_path):
    (tmp_path / "c.yaml").write_text("version: v1\n")
    done = check(programs, str(tmp_path / "c.yaml"), "--against", "no-such-machine")
    assert done.returncode == 1 and "dgx-a100" in done.stderr


def test_a_plan_shows_keys_labels_and_resources_and_changes_nothing(home):
    home.up("version: v1\n")
    before = home.configuration()
    assert home.plan("version: v1\n")["changes"] == []
    ours = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n"
    plan = home.plan(ours + "labels: {timestamp: false}\nallocators: {assign: [{devices: ['*T4*'], allocator: none}]}\n")
    assert {(one["key"], one["effect"]) for one in plan["changes"]} == {("labels.timestamp", "now"), ("allocators.assign", "now")}
    assert [(one["resource"], one["before"], one["after"], one["effect"]) for one in plan["resources"]] == [("nvidia.com/gpu", 3, 2, "now")]
    assert [(one["key"], one["after"]) for one in plan["labels"]] == [("nvidia.com/gfd.timestamp", None)]
    bad = home.penstock("plan", "-", text="version: v2\n")
    assert bad.returncode == 1 and 'standard input:1:10: version: is "v2"' in bad.stderr
    assert "Nothing would change." in home.penstock("plan").stdout
    assert home.configuration() == before


def test_a_plan_counts_the_shares_that_a_configuration_asks_for(home):
    home.up("version: v1\n")
    plan = home.plan("version: v1\n" + SHARING)
    assert [(one["key"], one["effect"]) for one in plan["changes"]] == [("sharing.rules", "now")]
    assert [(one["resource"], one["before"], one["after"], one["effect"]) for one in plan["resources"]] == [("nvidia.com/gpu", 3, 12, "now")]
    plan = home.plan("version: v1\n" + SHARING.replace("replicas: 4", "replicas: 4, devices: [1], rename: gpu.small"))
    assert {(one["resource"], one["before"], one["after"]) for one in plan["resources"]} == {("nvidia.com/gpu", 3, 2), ("nvidia.com/gpu.small", 0, 4)}


def test_a_plan_explains_which_devices_a_request_would_get(home):
    home.up("version: v1\n", machine="dgx-2")
    plan = json.loads(home.penstock("plan", "--explain", "-o", "json").stdout)
    index = {device["id"]: device["index"] for device in plan["devices"]}
    chosen = {choice["size"]: choice for choice in plan["choices"]}
    assert sorted(chosen) == list(range(1, 17))
    assert sorted(index[one] for one in chosen[4]["devices"]) == [0, 1, 2, 3]
    assert [(kind["link"], len(kind["pairs"])) for kind in chosen[4]["links"]] == [("6 fabric links, several PCIe switches", 6)]
    assert all(choice["exact"] for choice in chosen.values())
    subprocess.run([home.programs / "penstock-sim", "--root", home.config.parent / "run/sim", "fault", "2", "lost"], check=True, stdout=subprocess.DEVNULL)
    wait_until(lambda: "15 of 16 are free" in home.penstock("plan", "--explain").stdout, "the lost GPU to be known")
    table = home.penstock("plan", "--explain").stdout
    assert "A request for nvidia.com/gpu now (allocator local):" in table
    assert "15 of 16 are free; GPU 2: " in table
    assert [line.split()[:2] for line in table.splitlines() if line.startswith("4  ")][-1] == ["4", "4,5,6,7"], "the pairs of GPU 2 are broken already"
    assert "choices" not in json.loads(home.penstock("plan", "-o", "json").stdout)


def test_a_plan_names_who_holds_what_is_touched(home):
    home.up("version: v1\n", machine="t4-x1")
    holder = subprocess.Popen([*home.base, "run", "--", "sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: json.loads(home.penstock("ps", "-o", "json").stdout)["holders"], "the program to hold a device")
        plan = home.plan("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nallocators: {assign: [{allocator: none}]}\n")
        assert re.fullmatch(r"r-\S+ of \w+", plan["resources"][0]["holders"][0])
    finally:
        holder.kill()
        holder.wait()


def test_a_new_file_is_in_force_without_a_restart_and_a_bad_one_changes_nothing(home):
    home.up("version: v1\n")
    pid = json.loads(home.penstock("status", "-o", "json").stdout)["agentPid"]
    home.write("version: v1\n" + NOT_YET)
    wait_until(lambda: home.configuration()["notYet"], "the new file to be in force")
    since = home.configuration()["since"]

    home.write("version: v1\nsharing: {timeSlicing: 4}\n")
    wait_until(lambda: home.configuration()["problem"], "the bad file to be refused")
    refused = home.configuration()
    assert f"{home.config}:2:24: sharing.timeSlicing: is an integer (4) where a map is expected" in refused["problem"]
    assert refused["notYet"] and refused["since"] == since
    assert 'penstock_config_reloads_total{result="refused"} 1' in home.metrics()
    assert "penstock_config_last_reload_successful 0" in home.metrics()
    planned = home.penstock("plan")
    assert planned.returncode == 1 and "timeSlicing" in planned.stderr

    # Keys that NVIDIA's plugin ignores are ignored, with a remark.
    home.write("version: v1\nsharing: {timeSlicin: {}}\n")
    wait_until(lambda: not home.configuration()["problem"], "the file to be in force")
    assert 'remark: sharing.timeSlicin: is unknown and ignored; did you mean "timeSlicing"? (line 2)' in home.penstock("status").stdout
    assert "penstock_config_remarks 1" in home.metrics()

    home.write("version: v1\n")
    wait_until(lambda: "remarks" not in home.configuration(), "the file without remarks to be in force")
    wait_until(lambda: not home.configuration()["problem"], "the good file to be in force")
    assert home.configuration()["notYet"] == []
    assert "penstock_config_last_reload_successful 1" in home.metrics()
    assert json.loads(home.penstock("status", "-o", "json").stdout)["agentPid"] == pid


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_flags_of_nvidias_device_plugin_have_one_dash_or_two(programs, tmp_path, dashes):
    """With one dash, `-mig-strategy` was parsed as dcgm-exporter's -m with the value "ig-strategy=nine"."""
    command = [programs / "penstock-agent", f"{dashes}mig-strategy=nine", "--state-dir", tmp_path / "state", "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and '--mig-strategy: "nine" is none of none, single, mixed' in done.stderr
