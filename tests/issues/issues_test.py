"""gpu_operator.tsv lists what users reported about NVIDIA's GPU Operator (issues of NVIDIA/gpu-operator unless another repository is named), each with the tests
that play it or the reason why none does. Checks that these tests exist. Run: issues_test.py ROOT"""
import re
import sys
from pathlib import Path


def exists(root: Path, test: str) -> bool:
    """`test`: "FILE::FUNCTION" of Python, or "FILE::SUITE.NAME" of GoogleTest."""
    file, _, name = test.partition("::")
    if not (root / file).is_file():
        return False
    suite, dot, case = name.partition(".")
    pattern = rf"^TEST(_F|_P)?\(\s*{suite},\s*{case}\)" if dot else rf"^def {name}\("
    return re.search(pattern, (root / file).read_text(), re.MULTILINE) is not None


def problems(root: Path) -> list[str]:
    found, seen = [], set()
    head, *rows = (Path(__file__).parent / "gpu_operator.tsv").read_text().splitlines()
    width = len(head.split("\t"))
    for number, row in enumerate(rows, 2):
        cells = row.split("\t")
        if len(cells) != width:
            found.append(f"line {number}: {len(cells)} cells, expected {width}")
            continue
        issues, _, tests, reason = cells
        if (tests == "-") == (reason == "-"):
            found.append(f"line {number}: either tests or a reason, and \"-\" for the other")
        found += [f"line {number}: there is no test {test}" for test in tests.split() if test != "-" and not exists(root, test)]
        found += [f"line {number}: {issue} is listed twice" for issue in issues.split() if issue in seen]
        seen.update(issues.split())
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
