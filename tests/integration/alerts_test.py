"""The alerting rules: Prometheus loads them, each fires when it should and only then, and each links to a page that says what to do."""
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy/alerts"
FILES = sorted(ALERTS.glob("*.rules.yaml"))
CASES = sorted((ALERTS / "tests").glob("*.yaml"))
RULES = [rule for file in FILES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
ONES = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDS = {rule["record"] for rule in RULES if "record" in rule}
PAGE = (ROOT / "docs/alerts.md").read_text()


def promtool(*words) -> str:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cases(file: Path) -> list[dict]:
    return yaml.safe_load(file.read_text())["tests"]


def alert_cases() -> list[dict]:
    return [asked for file in CASES for case in cases(file) for asked in case.get("alert_rule_test", [])]


def test_prometheus_reads_the_rules():
    promtool("check", "rules", *FILES)


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_alerts_fire_when_they_should(file):
    promtool("test", "rules", file)


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    fires = {case["alertname"] for case in alert_cases() if case["exp_alerts"]}
    rests = {case["alertname"] for case in alert_cases() if not case["exp_alerts"]}
    assert (fires, rests) == (set(ONES), set(ONES))


def test_each_recording_rule_has_a_case():
    assert {asked["expr"] for file in CASES for case in cases(file) for asked in case.get("promql_expr_test", [])} == RECORDS


def test_a_case_that_expects_another_answer_fails(tmp_path):
    wrong = yaml.safe_load((ALERTS / "tests/accelerators.yaml").read_text())
    wrong["rule_files"] = [str(file) for file in FILES]
    wrong["tests"] = wrong["tests"][:1]
    wrong["tests"][0]["alert_rule_test"][0]["exp_alerts"] = []
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    with pytest.raises(AssertionError, match="AcceleratorGone"):
        promtool("test", "rules", tmp_path / "wrong.yaml")


@pytest.mark.parametrize("name", ONES)
def test_an_alert_says_how_bad_it_is_and_where_to_read_on(name):
    rule = ONES[name]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"https://penstock.io/docs/alerts.md#{name.lower()}"


@pytest.mark.parametrize("name", ONES)
def test_the_page_says_of_an_alert_what_it_means_what_to_check_and_what_to_do(name):
    section = re.search(rf"^## {name}\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S)
    assert section, f"docs/alerts.md has nothing about {name}"
    for word in ("Means", "Check", "Do"):
        assert f"**{word}**" in section.group(1), f"{name} lacks {word}"


def test_the_page_has_no_alert_that_there_is_not():
    assert set(re.findall(r"^## (\w+)$", PAGE, re.M)) == set(ONES)


def families() -> set[str]:
    """The metrics that the agent can expose, from the catalogue that the program is built from, and those of the operator's page."""
    agents = re.findall(r'^    \{"(\w+)"', (ROOT / "src/api/metrics_families.cc").read_text(), re.M)
    operators = re.findall(r'"(penstock_operator_\w+)"', (ROOT / "src/app/operator/metrics_page.cc").read_text())
    return {*agents, *operators}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_asks_for_what_there_is(rule):
    known = families() | RECORDS | {"up", "scrape_duration_seconds"}
    words = re.findall(r"\b((?:accelerator|penstock|instance|namespace|scrape)[a-z0-9_]*(?::\w+)*|up)\b(?=[\s\[{)]|$)", rule["expr"])
    asked = set(words) - {"instance", "namespace"}  # labels
    assert asked and asked <= known, asked - known


def test_links_of_the_page_lead_somewhere():
    for file, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", PAGE):
        target = (ROOT / "docs" / file) if file else ROOT / "docs/alerts.md"
        assert target.exists(), target
        anchors = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", target.read_text(), re.M)}
        assert not anchor or anchor in anchors, f"{file}#{anchor}"


def blocks(word: str) -> list[str]:
    """The examples in docs/monitoring.md that begin with this text."""
    return re.findall(rf"```yaml\n({word}:.*?)```", (ROOT / "docs/monitoring.md").read_text(), re.S)


def test_prometheus_reads_the_documented_configurations(tmp_path):
    collectors = [yaml.safe_dump(yaml.safe_load(block)["receivers"]["prometheus"]["config"]) for block in blocks("receivers")]
    texts = [*blocks("scrape_configs"), *blocks("rule_files"), *collectors]
    assert len(texts) == 4
    (tmp_path / "penstock.rules.yaml").write_text((ALERTS / "penstock.rules.yaml").read_text())
    for n, text in enumerate(texts):
        text = re.sub(r"^    kubernetes_sd_configs:\n(?:      .*\n)+", "", text, flags=re.M)  # Debian builds Prometheus without it
        (tmp_path / f"{n}.yml").write_text(text)
        promtool("check", "config", tmp_path / f"{n}.yml")
