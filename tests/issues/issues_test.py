"""Lists of what users reported, each line with the tests that play it or the reason why none does: gpu_operator.tsv about NVIDIA's GPU Operator (issues of
NVIDIA/gpu-operator unless another repository is named), rocm.tsv about AMD's plugin, operator and exporter (of ROCm/…; `knownissues` and `knownlimitations` are pages of
their documentation). Checks that these tests exist, and that no line is missing. Run: issues_test.py ROOT"""
import re
import sys
from pathlib import Path

# What each list has to answer, by the first issue of a line.
EXPECTED = {
    "gpu_operator.tsv": """#707 #475 #233 #378 #508 #2685 #2781 #1114 #135 #349 #594 #982 #188 #831 #2509 #2549 #688 #2255 #782 #1469 #2288 #328 #323 #1368 #1661 #593
        #208 #904 #772 #668 #485 #944 #91 #910 #2382 #602 #2009 #1065 #2868 #661 #111 #667 PR2843 #365""".split(),
    "rocm.tsv": """k8s-device-plugin#184 k8s-device-plugin#167 k8s-device-plugin#157 k8s-device-plugin#54 k8s-device-plugin#59 k8s-device-plugin#93
        k8s-device-plugin-PR195 gpu-operator#420 gpu-operator#110 gpu-operator#66 knownlimitations device-metrics-exporter#565 device-metrics-exporter#171
        k8s-device-plugin#202 knownissues""".split(),
}


def exists(root: Path, test: str) -> bool:
    """`test`: "FILE::FUNCTION" of Python, or "FILE::SUITE.NAME" of GoogleTest."""
    file, _, name = test.partition("::")
    if not (root / file).is_file():
        return False
    suite, dot, case = name.partition(".")
    pattern = rf"^TEST(_F|_P)?\(\s*{suite},\s*{case}\)" if dot else rf"^def {name}\("
    return re.search(pattern, (root / file).read_text(), re.MULTILINE) is not None


def problems_of(cells: list[str], root: Path, seen: set[str]) -> list[str]:
    issues, _, tests, reason = cells
    found = [f"there is no test {test}" for test in tests.split() if test != "-" and not exists(root, test)]
    if (tests == "-") == (reason == "-"):
        found.append("either tests or a reason, and \"-\" for the other")
    found += [f"{issue} is listed twice" for issue in issues.split() if issue in seen]
    seen.update(issues.split())
    return found


def problems(root: Path, name: str) -> list[str]:
    found, seen = [], set()
    head, *rows = (Path(__file__).parent / name).read_text().splitlines()
    width = len(head.split("\t"))
    for number, row in enumerate(rows, 2):
        cells = row.split("\t")
        wrong = problems_of(cells, root, seen) if len(cells) == width else [f"{len(cells)} cells, expected {width}"]
        found += [f"{name}:{number}: {one}" for one in wrong]
    return found + [f"{name}: there is no line of {issue}" for issue in EXPECTED[name] if issue not in seen]


if __name__ == "__main__":
    wrong = [one for name in EXPECTED for one in problems(Path(sys.argv[1]), name)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
