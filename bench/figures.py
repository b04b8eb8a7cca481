"""Figures with their spread, formatted for users and for programs. Measures nothing."""
import math
import os
import platform
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Figure:
    """One measured quantity, with one or many values. A goal is an upper bound for the statistic that `judged` names."""
    name: str
    unit: str
    values: list
    goal: float | None = None
    judged: str = "max"
    detail: bool = False  # a part of the figure above it

    def spread(self) -> dict:
        ordered = sorted(self.values)
        n = len(ordered)
        found = {"n": n, "min": ordered[0], "median": ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2}
        if n >= 100:  # of fewer values it would be the maximum
            found["p99"] = ordered[min(n - 1, math.ceil(n * 0.99) - 1)]
        found["max"] = ordered[-1]
        return found

    def met(self) -> bool | None:
        return None if self.goal is None else self.spread()[self.judged] < self.goal

    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return f"{self.judged} < {short(self.goal)} {self.unit}: {'met' if self.met() else 'MISSED'}"

    def to_json(self) -> dict:
        return {"name": self.name, "unit": self.unit, **self.spread(), "goal": self.goal, "judged": self.judged, "met": self.met()}


@dataclass
class Bench:
    """The results of one benchmark."""
    name: str
    title: str
    figures: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def add(self, name: str, unit: str, values, **options):
        self.figures.append(Figure(name, unit, list(values) if isinstance(values, (list, tuple)) else [values], **options))

    def note(self, text: str):
        self.notes.append(text)

    def lines(self) -> list:
        """A markdown table that is also readable as plain text."""
        rows = [["", "unit", "n", "min", "median", "p99", "max", "goal"]]
        for figure in self.figures:
            spread = figure.spread()
            cells = [short(spread[key]) if key in spread else "" for key in ("min", "median", "p99", "max")]
            if spread["n"] == 1:
                cells = ["", cells[1], "", ""]
            rows.append([("· " if figure.detail else "") + figure.name, figure.unit, str(spread["n"]), *cells, figure.verdict()])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        text = ["| " + " | ".join(cell.ljust(width) if i in (0, 1, 7) else cell.rjust(width)
                                  for i, (cell, width) in enumerate(zip(row, widths))) + " |" for row in rows]
        rule = "|" + "|".join("-" * (width + 2) if i in (0, 1, 7) else "-" * (width + 1) + ":" for i, width in enumerate(widths)) + "|"
        return [text[0], rule, *text[1:], *([""] + [f"- {note}" for note in self.notes] if self.notes else [])]

    def to_json(self) -> dict:
        return {"bench": self.name, "title": self.title, "figures": [figure.to_json() for figure in self.figures], "notes": self.notes}


def short(value: float) -> str:
    """Three significant digits, or all digits of an integer."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ratio(values, baseline) -> float:
    """The ratio of two medians."""
    return Figure("", "", list(values)).spread()["median"] / Figure("", "", list(baseline)).spread()["median"]


def commit() -> str:
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}, load {os.getloadavg()[0]:.2f}"
