"""Which modules and which expensive suites a change affects, by the tables of
docs/architecture.md. This file names no module or suite itself."""
import re
from pathlib import Path

DOCUMENT = "docs/architecture.md"


def _rows(text: str, begin: str) -> list[list[list[str]]]:
    """The cells of a table's rows, each as a list of its words in backquotes."""
    table = text.split(begin)[1].split("<!-- end -->")[0]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
            for line in table.splitlines() if line.startswith("| `")]


def matches(pattern: str, path: str) -> str | None:
    """The beginning of the path that matches a pattern, or None; `*` matches one name, or the rest
    of one."""
    found = re.match(re.escape(pattern).replace(r"\*", "[^/]+") + "(?=/|$)", path)
    return found.group() if found else None


class Areas:
    def __init__(self, text: str):
        self._rooms = [room for row in _rows(text, "<!-- include table -->") for room in row[0]]
        self._dear = [(path, row[1]) for row in _rows(text, "<!-- area table -->")
                      for path in row[0]]

    @classmethod
    def of(cls, source: Path) -> "Areas":
        return cls((source / DOCUMENT).read_text())

    @property
    def labels(self) -> set[str]:
        """The labels of all expensive suites."""
        return {label for _, labels in self._dear for label in labels}

    @property
    def patterns(self) -> list[str]:
        return [path for path, _ in self._dear]

    def room(self, path: str) -> str | None:
        return next((found for room in self._rooms if (found := matches(room, path))), None)

    def chosen(self, changed: list[str]) -> set[str]:
        """The labels of the expensive suites that these changed paths affect. The first row that
        matches a path counts; a path without a row affects all."""
        labels = set()
        for path in changed:
            row = next((labels for one, labels in self._dear if matches(one, path)), self.labels)
            labels |= set(row)
        return labels
