"""AMD's GPUs change their compute modes again and again while pods hold some of them, start and end, and while agents are killed: what is held keeps its mode, GPUs that a
profile does not name serve on, and the kubelet ends with what the tree of files says. Needs root, as amd_modes_test.py."""
import json
import os
import random
import re
import time

import pytest

from amd import profile
from amd_switching import AGAIN, CHANGED, WISH, Switching
from monitored import Refused
from node import wait_until

ROUNDS = 1000 if os.environ.get("PENSTOCK_CHECK_ALL") == "1" else 60
PARTS = {"SPX": 1, "DPX": 2, "QPX": 4, "CPX": 8}
RESOURCES = {mode: f"amd.com/{mode.lower()}_nps1" for mode in PARTS}
GPUS = range(8)
pytestmark = pytest.mark.timeout(1200)


class Loaded:
    """Eight GPUs, of which a pod holds a partition and another one a whole GPU throughout, in a tree as later than Linux 6.12: only a process on a GPU is in its way.
    The pods have no processes, so that the driver refuses nothing, and what is held is protected by the agent alone."""

    def __init__(self, node: Switching, seed: int):
        self.node, self.kubelet, self.chance = node, node.kubelet, random.Random(seed)
        self.profiles = {"first": {1: "CPX"}} | {f"p{number}": self.random_profile() for number in range(40)}
        node.write(**{name: self.dcm(wanted) for name, wanted in self.profiles.items()})
        self.name = ""  # of the profile that was asked for last
        self.pods: dict[str, tuple[int, str]] = {}  # those that run: their GPU, and the mode that it has to keep
        self.ids: dict[str, str] = {}  # their devices
        self.since: dict[str, int] = {}  # how many modes had been written when they started
        self.tried = self.refused = 0
        self.always: set[str] = set()  # devices that were in each list since `watch`
        self.ever: set[str] | None = None  # those that were in each list since the two pods have theirs
        self.apply("first")
        self.settle()
        self.start("part", "CPX")
        self.start("whole", "SPX")
        self.await_holders()
        self.throughout = {gpu for gpu, _ in self.pods.values()}
        self.ever = set().union(*self.listed().values())

    def random_profile(self) -> dict[int, str]:
        """The modes of some GPUs, seldom of all."""
        named = GPUS if self.chance.random() < 0.1 else sorted(self.chance.sample(GPUS, self.chance.randint(1, 3)))
        return {gpu: self.chance.choice(list(PARTS)) for gpu in named}

    @staticmethod
    def dcm(wanted: dict[int, str]) -> dict:
        return profile(*((wanted[gpu], 1) for gpu in sorted(wanted)), skipped=tuple(gpu for gpu in GPUS if gpu not in wanted))

    def another(self) -> str:
        return self.chance.choice([name for name in self.profiles if name not in ("first", self.name)])

    def apply(self, name: str):
        self.name = name
        self.node.wish(name)

    def round(self, name: str) -> bool:
        """Applies a profile while pods start and end. Returns whether it applies to all GPUs that it names."""
        before = [self.mode(gpu) for gpu in GPUS]
        # The profile before it stands: a GPU that a pod has kept from it is divided if the pod ends before the agent sees the label.
        waiting = self.blocked().keys() - self.throughout
        self.watch()
        self.apply(name)
        self.load(self.profiles[name])
        applies = self.settle()
        self.check_always(before, waiting)
        return applies

    # What the machine and the kubelet have.

    def mode(self, gpu: int) -> str:
        """As the tree says."""
        return (self.node.amd.sys / self.node.amd.folder(gpu) / "current_compute_partition").read_text().strip()

    def ids_of(self, gpu: int, mode: str) -> set[str]:
        whole = self.node.amd.id(gpu)
        return {whole} if mode == "SPX" else {f"{whole}-{part}" for part in range(PARTS[mode])}

    def in_tree(self) -> dict[str, set[str]]:
        modes = {gpu: self.mode(gpu) for gpu in GPUS}
        return {mode: set().union(*(self.ids_of(gpu, mode) for gpu in GPUS if modes[gpu] == mode)) for mode in PARTS}

    def steady(self) -> dict[str, set[str]]:
        """The devices by mode that were in each list since the last call."""
        steady = {mode: {*self.kubelet.steady(resource)} for mode, resource in RESOURCES.items()}
        together = set().union(*steady.values())
        self.always &= together
        self.ever = self.ever and self.ever & together
        return steady

    def listed(self) -> dict[str, set[str]]:
        self.steady()
        return self.steady()

    def watch(self):
        self.always = set().union(*self.listed().values())

    # Pods.

    def start(self, pod: str, mode: str):
        [device] = self.kubelet.start("ml", pod, 1, RESOURCES[mode])
        gpu = next(gpu for gpu in GPUS if device.startswith(self.node.amd.id(gpu)))
        self.pods[pod], self.ids[pod], self.since[pod] = (gpu, mode), device, len(self.node.amd.written)

    def held(self) -> set[tuple[str, str]]:
        return {(one["pod"], one["device"]) for one in self.node.node.holders()}

    def await_holders(self):
        wait_until(lambda: self.held() == {*self.ids.items()}, "the agent to know the pods and no others", CHANGED, seen=lambda: (self.held(), self.ids))

    def end(self, pod: str):
        """A pod that the kubelet has never listed to the agent would be one that is about to start."""
        wait_until(lambda: (pod, self.ids[pod]) in self.held(), "the agent to know the pod", CHANGED, seen=self.held)
        self.kubelet.end("ml", pod)
        for known in (self.pods, self.ids, self.since):
            del known[pod]

    def start_any(self, changing: dict[int, str]):
        """Starts a pod on the device that the kubelet chooses, also where that is about to change. One of the same resource stays, so that the kubelet need not wait."""
        listed, taken = self.listed(), {*self.ids.values()}
        possible = [mode for mode in PARTS if any(listed[mode] & self.ids_of(gpu, mode) - taken for gpu in GPUS if gpu not in changing)]
        if not possible:
            return
        self.tried += 1
        try:
            self.start(f"pod-{self.tried}", self.chance.choice(possible))
        except Refused as refusal:  # the device was withdrawn, or gone, when the kubelet chose it
            assert re.search(r"cannot be used now: .*being divided|is no longer a device of amd.com/|is not \(or no longer\) offered as amd.com/", str(refusal)), refusal
            self.refused += 1

    def load(self, changing: dict[int, str]):
        for _ in range(self.chance.randint(0, 2)):
            time.sleep(self.chance.random() / 10)
            others = [pod for pod in self.pods if pod not in ("part", "whole")]
            if others and self.chance.random() < len(others) / 5:
                self.end(self.chance.choice(others))
            else:
                self.start_any(changing)

    # Invariants.

    def blocked(self) -> dict[int, list[str]]:
        """GPUs that are not as the profile says, and the pods that hold them."""
        wanted = self.profiles[self.name]
        return {gpu: [pod for pod, (its, _) in self.pods.items() if its == gpu] for gpu, mode in wanted.items() if self.mode(gpu) != mode}

    @staticmethod
    def reasons(layout: dict) -> dict[int, str]:
        """Of "0, 2: held by pod ml/a; 3: …"."""
        parts = re.split(r"(?:^|; )(\d+(?:, \d+)*): ", layout.get("reason", ""))[1:]
        return {int(gpu): reason for gpus, reason in zip(parts[::2], parts[1::2]) for gpu in gpus.split(", ")}

    def refusal(self) -> dict[int, str]:
        """The reasons once each GPU that is not as the profile says has one."""
        def reasons() -> dict[int, str] | None:
            layout = self.node.layout()
            found = self.reasons(layout)
            return found if layout.get("name") == self.name and found.keys() == self.blocked().keys() else None
        return wait_until(reasons, "a reason of each GPU", CHANGED, seen=self.node.layout)

    def is_explained(self) -> bool:
        """Whether the profile applies but for GPUs that pods hold, and each of these is named with its holders."""
        layout, blocked = self.node.layout(), self.blocked()
        reasons = self.reasons(layout)
        named = all(pods and all(re.search(rf"held by .*pod ml/{pod}\b", reasons.get(gpu, "")) for pod in pods) for gpu, pods in blocked.items())
        return layout.get("name") == self.name and layout["state"] == ("failed" if blocked else "success") and named and reasons.keys() == blocked.keys()

    def check_always(self, before: list[str], but: set[int] = frozenset()):
        """GPUs that the profile does not name, and those that are held throughout, were in each list."""
        assert {self.ids["part"], self.ids["whole"]} <= self.ever, "what is held throughout was in each list ever sent"
        for gpu in GPUS:
            if gpu not in but and (gpu not in self.profiles[self.name] or gpu in self.throughout):
                assert self.ids_of(gpu, before[gpu]) <= self.always, f"GPU {gpu} was not in each list while {self.profiles[self.name]} was applied"

    def settle(self) -> bool:
        """Waits for that, and until the kubelet has what is in the tree. Returns whether the profile applies."""
        wait_until(self.is_explained, "the profile to apply but for what is held, with the reasons", CHANGED,
                   seen=lambda: (self.node.layout(), self.profiles[self.name], self.blocked(), self.pods, self.node.node.log()[-3000:]))
        wait_until(lambda: self.listed() == self.in_tree(), "the kubelet to have what is in the tree", CHANGED, seen=lambda: (self.listed(), self.in_tree()))
        for pod, (gpu, mode) in self.pods.items():
            assert self.mode(gpu) == mode, f"the GPU of {pod} is divided otherwise"
            written = [mode for one, mode in self.node.amd.written[self.since[pod]:] if one == gpu]
            assert written == [], f"{pod} holds GPU {gpu}, whose mode was written"
        self.await_holders()
        return not self.blocked()


@pytest.mark.timeout(1200 if ROUNDS < 1000 else 7000)
def test_pods_on_other_gpus_and_on_partitions_notice_nothing_of_random_modes(switching):
    """1,000 profiles with PENSTOCK_CHECK_ALL=1. Other pods start and end meanwhile, also on the GPUs that change."""
    loaded = Loaded(switching(any_process=False, strategy="mixed"), 18)
    written = len(loaded.node.amd.written)
    applied = sum(loaded.round(loaded.another()) for _ in range(ROUNDS))
    assert ROUNDS / 20 < applied < ROUNDS * 19 / 20, "some apply and others do not"
    assert len(loaded.node.amd.written) - written > ROUNDS / 2, "GPUs were divided"
    assert loaded.tried - loaded.refused > ROUNDS / 10, "pods started"


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_that_is_killed_at_any_moment_of_a_change_leaves_the_next_one_to_finish(switching, seed):
    """The label stays, or is gone when the next agent starts: then what was recorded before the kill counts."""
    loaded = Loaded(switching(any_process=False, strategy="mixed"), seed)
    node = loaded.node.node
    for _ in range(6):
        former, name = loaded.name, loaded.another()
        loaded.apply(name)
        loaded.load(loaded.profiles[name])
        time.sleep(loaded.chance.random() * 0.5)
        node.kill_agent()
        stays = loaded.chance.random() < 0.5
        if not stays:
            loaded.node.put()
        node.launch_agent()
        if not stays:
            loaded.name = wait_until(lambda: loaded.node.layout().get("name"), "the next agent to have a profile", CHANGED)
            assert loaded.name in (former, name)
        loaded.settle()
        wait_until(lambda: json.loads((node.state_dir / "changes.json").read_text())["changes"] == [], "the journal to be empty", CHANGED)
    assert "damaged" not in node.log()


def test_up_to_linux_6_12_a_process_anywhere_keeps_all_gpus_as_they_are_until_it_ends(switching):
    loaded = Loaded(switching(strategy="mixed"), 7)
    amd = loaded.node.amd
    for number in range(3):
        name = next(name for name in iter(loaded.another, None)
                    if any(loaded.mode(gpu) != mode for gpu, mode in loaded.profiles[name].items() if gpu not in loaded.throughout))
        before = [loaded.mode(gpu) for gpu in GPUS]
        amd.process(os.getpid())
        loaded.watch()
        loaded.apply(name)
        for gpu, reason in loaded.refusal().items():
            assert ("held by pod ml/" if gpu in loaded.throughout else "a process on other GPUs") in reason, reason
        assert [loaded.mode(gpu) for gpu in GPUS] == before
        amd.ends(os.getpid())
        loaded.node.put(**{WISH: name, AGAIN: str(number)})
        loaded.settle()
        loaded.check_always(before)
