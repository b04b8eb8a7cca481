"""The functions that the agent needs at rest lie together in its program (src/app/agent/functions.order, docs/adr/0074): each of them elsewhere would keep 64 KiB
of other code in memory. Starts nothing."""
import subprocess
from pathlib import Path

ORDER = Path(__file__).parents[2] / "src/app/agent/functions.order"
SECTION = ".text.order"


def test_most_of_the_recorded_functions_are_in_the_program_and_together(request):
    agent = Path(request.config.getoption("--programs")) / "penstock-agent"
    named = {line for line in ORDER.read_text().splitlines() if not line.startswith("#") and ":" not in line}
    read = [line.split() for line in subprocess.run(["readelf", "-SsW", agent], check=True, capture_output=True, text=True).stdout.replace("[ ", "[").splitlines()]
    number = next((words[0].strip("[]") for words in read if words[1:2] == [SECTION]), None)
    assert number is not None, f"{agent} has no section {SECTION}"
    together = {words[7] for words in read if len(words) == 8 and words[3] == "FUNC" and words[6] == number}
    # A change renames some; what has another name is only not placed.
    missing = sorted(named - together)
    assert len(missing) < len(named) / 4, f"{len(missing)} of {len(named)} functions have other names by now, such as {missing[:5]}: run bench/order"
