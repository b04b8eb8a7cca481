"""Measures the page at / with a headless Chromium: bytes, time to the first paint, and the agent's processor time while three tabs show it. Needs the packages
chromium and chromium-driver. And the answer with the state of a node with 5,000 shares."""
import gzip
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bed import Bed, now
from figures import ROOT, Bench
from footprint import memory, precise, ticks
from share import CUT, SLOTS

sys.path.insert(0, str(ROOT / "tests/support"))
READERS = 3
PAINTS = "return Object.fromEntries([...performance.getEntriesByType('paint'), ...performance.getEntriesByName('penstock-drawn')].map((one) => [one.name, one.startTime]))"


def spent(pids: dict) -> float:
    """Processor seconds of the processes."""
    return sum(exact if (exact := precise(pid)) is not None else ticks(pid) for pid in pids.values())


def rest(pids: dict, seconds: float) -> float:
    """Processor time of the processes from now on, in percent of a core."""
    begin, before = now(), spent(pids)
    time.sleep(seconds)
    return (spent(pids) - before) / ((now() - begin) / 1e9) * 100


def address(bed: Bed) -> str:
    return re.search(r"at=(\S+)", bed.log.wait(lambda line: " pages at=" in line, what="the pages")[1]).group(1)


def many_shares(bench: Bench, programs, smoke: bool):
    held, turns = (20, 1) if smoke else (500, 20)  # more than the containers of one kubelet
    with Bed(programs, "dgx-2", config=CUT) as bed:
        begin = bed.start_agent("--listen", "127.0.0.1:0")
        bed.kubelet.wait_listed(SLOTS, begin)
        bed.kubelet.calls("allocate", 1, held, 0)
        request = urllib.request.Request(address(bed) + "/ui/state", headers={"Accept-Encoding": "gzip"})
        times, spent_ms = [], []
        for _ in range(turns):
            time.sleep(3.2)  # the state is made again every three seconds
            before, begin = spent({"agent": bed.agent.pid}), now()
            with urllib.request.urlopen(request) as answer:
                body = answer.read()
            times.append((now() - begin) / 1e6)
            spent_ms.append((spent({"agent": bed.agent.pid}) - before) * 1e3)
        bench.add(f"the state of {SLOTS} shares, {held} of them held: time to the answer", "ms", times)
        bench.add("processor time of the agent", "ms", spent_ms, detail=True)
        bench.add("size, compressed", "kB", len(body) / 1000, detail=True)
        bench.add("size", "kB", len(gzip.decompress(body)) / 1000, detail=True)


def asked(tab) -> int:
    """How many documents the page has requested since it was opened."""
    return tab.js("return performance.getEntriesByType('resource').filter(({name}) => /\\/ui\\/[a-z]+$/.test(name)).length")


def measure(programs, smoke: bool) -> Bench:
    from browser import Browser  # needs packages that other benchmarks do not need
    bench = Bench("page", "The page at /, of 8 GPUs")
    seconds, loads = (1, 2) if smoke else (120, 20)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-page-") as home, Bed(programs, kubelet=False) as bed:
        bed.start_agent("--listen", "127.0.0.1:0")
        at = address(bed)
        bed.logged("ready")
        for device in range(8):
            bed.sim("set", device, "utilization=80", "power=300")
        time.sleep(seconds / 2)
        pids = bed.processes()
        alone, before = rest(pids, seconds), memory(pids["agent"])["Pss"]
        browser = Browser(Path(home))
        try:
            tab = browser.first
            tab.show(1280, 900)
            tab.cdp("Network.enable")
            paints, bytes_ = [], []
            for turn in range(loads + 1):  # the first one starts parts of the browser
                tab.cdp("Network.setCacheDisabled", cacheDisabled=True)
                browser.traffic()
                tab.open(at + "/")
                while len(entries := tab.js(PAINTS)) < 3 or not tab.js("return document.querySelectorAll('svg.chart').length === 24"):
                    time.sleep(0.02)
                loaded = [one["params"]["encodedDataLength"] for one in browser.traffic() if one["method"] == "Network.loadingFinished"]
                if turn > 0:
                    paints.append(entries)
                    bytes_.append(sum(loaded) / 1000)
            bench.add("transferred until the devices are shown", "kB", bytes_, goal=100)
            bench.add("first paint", "ms", [one["first-paint"] for one in paints], goal=200, judged="median")
            bench.add("devices shown", "ms", [one["penstock-drawn"] for one in paints])
            tabs = [tab, *(browser.tab() for _ in range(READERS - 1))]
            for one in tabs[1:]:
                one.open(at + "/")
            for one in tabs:  # as if each were in a window of its own
                one.js("Object.defineProperty(document, 'hidden', {get: () => false}); document.dispatchEvent(new Event('visibilitychange'))")
            before_asked = sum(asked(one) for one in tabs)
            looked, while_looking = rest(pids, seconds), memory(pids["agent"])["Pss"]
            rate = (sum(asked(one) for one in tabs) - before_asked) / seconds
        finally:
            browser.end()
        bench.add("agent and worker, no reader", "% of a core", alone)
        bench.add(f"with {READERS} open pages", "% of a core", looked)
        bench.add("their requests", "1/s", rate, detail=True)
        bench.add("difference", "% of a core", max(0.0, looked - alone), goal=0.1)
        bench.add("agent: PSS, no reader", "KiB", before)
        bench.add(f"agent: PSS with {READERS} open pages", "KiB", while_looking)
    many_shares(bench, programs, smoke)
    bench.note(f"{loads} loads without the browser's cache; processor time over {seconds} s, as the scheduler counts it, at a collection each ten seconds.")
    return bench
