"""Reads the tables of docs/reference/differences.md, which list the known differences from NVIDIA's programs."""
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/reference/differences.md"


def table(title: str) -> dict[str, list[str]]:
    """The table below a title: the first column without backquotes -> the other columns."""
    part = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")][2:]
    found = {row[0].replace("`", ""): row[1:] for row in rows}
    assert len(found) == len(rows) and all(row[-1] for row in rows), f"{title}: a row is duplicate, or has no reason"
    return found
