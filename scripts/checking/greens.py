"""Records which suites passed on which inputs, so that a check can skip those whose inputs did not
change."""
import time
from dataclasses import dataclass

import tree
from areas import Areas
from cache import Cache
from inputs import digest
from suites import Suite

KEYS = 20_000  # entries kept
# Ingredients that follow from files of the checkout. If another ingredient changed, the tables of
# areas do not apply.
FILES = {"files", "program", "programs of the build", "tests"}


@dataclass
class Decision:
    suite: Suite
    run: bool
    why: str
    ingredients: dict[str, str] | None = None


class Greens:
    """Cache keys of passed suites. `areas`: decide which expensive suites run; without them, each
    suite whose inputs changed runs. `manifest`: the checkout's current files; `series`: the build,
    or the stage of --all, in which suites passed."""

    def __init__(self, cache: Cache, areas: Areas | None, manifest: dict[str, str], commit: str,
                 series: str):
        self.cache, self.manifest, self.commit, self.series = cache, manifest, commit, series
        self._areas, self._dear = areas, areas.labels if areas else set()

    def decide(self, suite: Suite, ingredients: dict[str, str] | None) -> Decision:
        if ingredients is None:
            return Decision(suite, True, "what it needs is not built")
        if entry := self._read(self._green(suite, ingredients)):
            why = f"unchanged since it passed on {entry['commit']} at {entry['time']}"
            return Decision(suite, False, why, ingredients)
        last = self._read(f"last/{self.series}/{suite.name}")
        if last is None:
            return Decision(suite, True, "not known to have passed here", ingredients)
        before = self._dictionary(last, "ingredients")
        differing = sorted(name for name in before.keys() | ingredients.keys()
                           if before.get(name) != ingredients.get(name))
        dear = suite.labels & self._dear
        manifest = self._dictionary(last, "manifest")
        if dear and manifest and set(differing) <= FILES:
            changed = tree.changed(manifest, self.manifest)
            if changed and not dear & self._areas.chosen(changed):
                why = ("no path of its area changed since it passed on "
                       f"{last['commit']} at {last['time']}")
                return Decision(suite, False, why, ingredients)
        changes = ", ".join(differing) or "nothing that is known"
        return Decision(suite, True, f"changed since it passed: {changes}", ingredients)

    def note(self, suite: Suite, ingredients: dict[str, str]):
        """Records that this suite passed on these inputs."""
        entry = {"suite": suite.name, "commit": self.commit,
                 "time": time.strftime("%Y-%m-%d %H:%M", time.localtime())}
        self.cache.write(self._green(suite, ingredients), entry)
        last = dict(entry, ingredients=ingredients)
        if suite.labels & self._dear:
            last["manifest"] = self.manifest
        self.cache.write(f"last/{self.series}/{suite.name}", last)

    def prune(self):
        self.cache.prune("green", KEYS)

    def _green(self, suite: Suite, ingredients: dict[str, str]) -> str:
        return "green/" + digest(self.series, suite.name, ingredients)

    @staticmethod
    def _dictionary(entry: dict, name: str) -> dict:
        return entry[name] if isinstance(entry.get(name), dict) else {}

    def _read(self, name: str) -> dict | None:
        entry = self.cache.read(name)
        return entry if entry and {"commit", "time"} <= entry.keys() else None


def changed_since_green(cache: Cache, manifest: dict[str, str]) -> tuple[str, list[str]] | None:
    """Commit of the last check that passed completely, and the paths that changed since; None if
    none is recorded."""
    last = cache.read("last-green")
    if not last or not isinstance(last.get("manifest"), dict):
        return None
    return str(last.get("commit")), tree.changed(last["manifest"], manifest)
