"""Which rooms and which dear suites a change touches, by the tables of docs/architecture.md. No
name of a room or suite stands here."""
import re
from pathlib import Path

DOCUMENT = "docs/architecture.md"


def _rows(text: str, begin: str) -> list[list[list[str]]]:
    """Cells of a table's rows, each as what stands in backquotes."""
    table = text.split(begin)[1].split("<!-- end -->")[0]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
            for line in table.splitlines() if line.startswith("| `")]


def matches(pattern: str, path: str) -> str | None:
    """The part of the path that a pattern names, if it begins with it; `*` is one name, or the rest
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
        """Labels of all dear suites."""
        return {label for _, labels in self._dear for label in labels}

    @property
    def patterns(self) -> list[str]:
        return [path for path, _ in self._dear]

    def room(self, path: str) -> str | None:
        return next((found for room in self._rooms if (found := matches(room, path))), None)

    def chosen(self, changed: list[str]) -> set[str]:
        """Labels of the dear suites that these changed paths concern. The first row that fits a
        path counts; a path that no row knows concerns all."""
        labels = set()
        for path in changed:
            row = next((labels for one, labels in self._dear if matches(one, path)), self.labels)
            labels |= set(row)
        return labels
