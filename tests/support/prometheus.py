"""A real Prometheus for a test: its configuration, its process, its answers. Contains no assertions about the programs under test."""
import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from node import PATIENCE, wait_until


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


class Prometheus:
    """A Prometheus below `home`. `jobs` are scrape_configs, `rules` are rule files. `enter` is a prefix of its command line, and `fetch` sends
    requests to it if it runs in its own namespaces."""

    def __init__(self, home: Path, jobs: list[dict], rules: list[Path] = (), interval: str = "1s", enter: list = (), fetch=fetch,
                 listen: str = "127.0.0.1:0"):
        self.home, self.fetch, self.process = home, fetch, None
        self.log = home / "prometheus.log"
        (home / "data").mkdir(parents=True, exist_ok=True)
        (home / "prometheus.yml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [str(file) for file in rules], "scrape_configs": jobs}))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*enter, "prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
                 f"--web.listen-address={listen}"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.address = wait_until(self._address, "Prometheus to log its address", seen=lambda: self.log.read_text(errors="replace")[-3000:])
        wait_until(self.ready, "Prometheus to be ready")

    def _address(self) -> str:
        assert self.process.poll() is None, self.log.read_text(errors="replace")
        said = re.search(r'msg="Listening on" address=(\S+)', self.log.read_text(errors="replace"))
        return said.group(1).replace("[::]", "127.0.0.1") if said else ""

    def ready(self) -> bool:
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: from `fetch`
            return "Ready" in self.fetch(f"http://{self.address}/-/ready")

    def stop(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(PATIENCE)

    def ask(self, path: str, **parameters):
        """The `data` of an API response; a faulty query fails with Prometheus' message."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            answer = json.loads(self.fetch(url))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expr: str) -> list[dict]:
        """The current result: series with `metric` and `value`."""
        data = self.ask("query", query=expr)
        return data["result"] if data["resultType"] == "vector" else [{"metric": {}, "value": data["result"]}]

    def value(self, expr: str) -> float | None:
        """The value of a query with one series; None if it has none."""
        result = self.query(expr)
        assert len(result) < 2, result
        return float(result[0]["value"][1]) if result else None

    def series(self, *selectors: str, start: float, end: float) -> list[dict]:
        """The labels of all series with a sample in that time."""
        return self.ask("series", **{"match[]": selectors}, start=start, end=end)

    def firing(self, alert: str | None = None) -> list[dict]:
        """The labels of the firing alerts."""
        return [one["labels"] for one in self.ask("alerts")["alerts"]
                if one["state"] == "firing" and alert in (None, one["labels"]["alertname"])]

    def targets(self) -> list[dict]:
        return self.ask("targets", state="active")["activeTargets"]

    def wait_scraped(self, count: int, seconds: float = 60):
        """Waits until there are this many targets and all were scraped successfully."""
        def amiss() -> list | None:
            """The targets that are not up, with the reason; None while the number of targets is wrong."""
            targets = self.targets()
            down = [(target["scrapeUrl"], target["health"], target["lastError"]) for target in targets if target["health"] != "up"]
            return down if len(targets) == count else None
        wait_until(lambda: amiss() == [], f"{count} targets to be scraped", seconds, every=0.1, seen=amiss)
