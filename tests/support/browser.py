"""A headless Chromium for a test, driven through chromedriver's HTTP interface (W3C WebDriver and the DevTools protocol). Contains no assertions about
the programs under test."""
import base64
import contextlib
import json
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from node import PATIENCE, wait_until

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-features=Translate,OptimizationHints", "--force-device-scale-factor=1"]


class BrowserError(RuntimeError):
    """chromedriver's answer to a command that failed."""


class Tab:
    """One window of the browser."""

    def __init__(self, browser: "Browser", handle: str):
        self.browser, self.handle = browser, handle

    def _use(self):
        if self.browser.current != self.handle:
            self.browser.call("POST", "/window", handle=self.handle)
            self.browser.current = self.handle

    def call(self, method: str, path: str, **body):
        self._use()
        return self.browser.call(method, path, **body)

    def open(self, url: str):
        self.call("POST", "/url", url=url)

    def js(self, script: str, *arguments):
        """The value of `return ...`; a promise is awaited."""
        return self.call("POST", "/execute/sync", script=script, args=list(arguments))

    def cdp(self, command: str, **parameters):
        return self.call("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def text(self, selector: str = "body") -> str:
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def press(self, key: str):
        """A key of the keyboard, as in KeyboardEvent.key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.cdp("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **(text if kind == "keyDown" else {}))

    def show(self, width: int, height: int, dark: bool = False, phone: bool = False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, to: Path, whole: bool = True):
        """A screenshot, of the whole page or of what is visible."""
        answer = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        to.write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        self.call("DELETE", "/window")
        self.browser.current = ""
        self.browser.first._use()  # a session whose window is closed takes no command


class Browser:
    """Chromium with a profile of its own, which loads nothing but what the test opens."""

    def __init__(self, home: Path):
        self.profile = tempfile.mkdtemp(prefix="chromium-", dir=home)
        self.log = open(home / "chromedriver.log", "w+")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.session = ""
        port = wait_until(lambda: re.search(r"started successfully on port (\d+)", Path(self.log.name).read_text()), "chromedriver").group(1)
        self.at = f"http://127.0.0.1:{port}"
        options = {"args": [*ARGUMENTS, f"--user-data-dir={self.profile}"], "binary": "/usr/bin/chromium"}
        made = self.call("POST", "/session", capabilities={"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": PATIENCE * 1000, "pageLoad": PATIENCE * 1000}}})
        self.session = f"/session/{made['sessionId']}"
        self.current = self.call("GET", "/window")
        self.first = Tab(self, self.current)

    def call(self, method: str, path: str, **body):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.at + self.session + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise BrowserError(f"{method} {path}: {value['error']}: {value['message'][:2000]}") from None

    def tab(self) -> Tab:
        return Tab(self, self.call("POST", "/window/new", type="tab")["handle"])

    def problems(self) -> list[str]:
        """What the console reported as errors since the last call: scripts that failed, what a policy blocked."""
        return [entry["message"] for entry in self.call("POST", "/se/log", type="browser") if entry["level"] == "SEVERE"]

    def traffic(self) -> list[dict]:
        """The events of the DevTools' domain Network since the last call, of all tabs."""
        messages = (json.loads(entry["message"])["message"] for entry in self.call("POST", "/se/log", type="performance"))
        return [message for message in messages if message["method"].startswith("Network.")]

    def end(self):
        with contextlib.suppress(Exception):
            self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait(PATIENCE)
        self.log.close()
