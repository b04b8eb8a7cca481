"""The bundle for the Operator Lifecycle Manager: it is what the chart makes, operator-framework's validators accept it, and it grants what the chart grants."""
import json
import subprocess
import sys

import pytest
import yaml

from conftest import OPERATOR_NAMESPACE, ROOT, deployment

sys.path.insert(0, str(ROOT / "tests/support"))

import downloads  # noqa: E402

BUNDLE = ROOT / "deploy/olm/bundle"
CSV = "manifests/penstock-gpu-operator.clusterserviceversion.yaml"
DIGEST = "registry.example/penstock@sha256:" + "0a" * 32


@pytest.fixture(scope="module")
def generate(operator, tmp_path_factory):
    """`generate(WORDS...)`: the folder with a new bundle."""
    def made(*words):
        folder = tmp_path_factory.mktemp("bundle")
        done = subprocess.run([sys.executable, ROOT / "deploy/olm/generate", *words, folder], env={"HELM": str(operator.helm), "PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder
    return made


def files_in(folder) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def csv_in(folder) -> dict:
    return yaml.safe_load((folder / CSV).read_text())


def install(csv: dict) -> dict:
    return csv["spec"]["install"]["spec"]


def test_the_bundle_in_the_tree_is_current(generate):
    """Otherwise: HELM=... scripts/python deploy/olm/generate"""
    assert files_in(BUNDLE) == files_in(generate())


def test_operator_frameworks_validators_find_no_error(generate):
    # Which of the warnings stay, and why: a NodeState is written by an agent, and the rules name RuntimeClasses of node.k8s.io/v1, which no release removed.
    known = ("provided API should have an example annotation", "Migrate the API(s) for runtimeclasses")
    for folder in (BUNDLE, generate("--image", DIGEST)):
        done = subprocess.run([downloads.olm_peer(), "validate", folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["kinds"] == {"ClusterServiceVersion": 1, "CustomResourceDefinition": 6, "Service": 1, "Role": 1, "RoleBinding": 1}
        assert not [one for one in said["found"] if one["level"] != "Warning" or not any(words in one["detail"] for words in known)], said["found"]


def test_the_validators_notice_a_bundle_that_is_wrong(generate):
    """The tests' own use of them is right: each of these is an error."""
    def spoil(change) -> list[dict]:
        folder = generate()
        csv = csv_in(folder)
        change(csv, folder)
        (folder / CSV).write_text(yaml.safe_dump(csv))
        done = subprocess.run([downloads.olm_peer(), "validate", folder], capture_output=True, text=True)
        return [{"level": "Error"}] if done.returncode else [one for one in json.loads(done.stdout)["found"] if one["level"] == "Error"]

    assert not spoil(lambda csv, folder: None)
    assert spoil(lambda csv, folder: (folder / "manifests/nvidia.com_nvidiadrivers.yaml").unlink())
    assert spoil(lambda csv, folder: csv["spec"]["customresourcedefinitions"]["owned"].pop())
    assert spoil(lambda csv, folder: csv["metadata"]["annotations"].update(capabilities="Everything"))
    assert spoil(lambda csv, folder: csv["spec"].pop("version"))


def test_its_crds_are_those_of_the_operator(operator):
    ours = {file.name: file.read_text() for file in (operator.path / "crds").glob("*.yaml")}
    assert {file.name: file.read_text() for file in (BUNDLE / "manifests").glob("*.yaml") if file.name in ours} == ours and ours
    owned = {one["name"] for one in csv_in(BUNDLE)["spec"]["customresourcedefinitions"]["owned"]}
    assert owned == {yaml.safe_load(text)["metadata"]["name"] for text in ours.values()}


def test_the_operator_leaves_the_definitions_to_olm(operator, programs):
    """Which owns and upgrades them: the operator neither applies them nor has the right."""
    [one] = install(csv_in(BUNDLE))["deployments"]
    assert "--no-crds" in one["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--no-crds" in subprocess.run([programs / "penstock-operator", "--help"], capture_output=True, text=True).stdout
    assert "customresourcedefinitions" not in str(install(csv_in(BUNDLE)))


def test_it_is_the_charts_deployment(operator):
    [one] = install(csv_in(BUNDLE))["deployments"]
    assert one["spec"]["template"] == deployment(operator.render(values={"operator.upgradeCRD": False}))


def test_each_account_may_do_what_the_chart_lets_it_do(operator):
    """And use the constraints of OpenShift by which its pods are admitted."""
    def flat(rules: list[dict]) -> set[tuple]:
        return {(group, resource, verb, tuple(rule.get("resourceNames", ()))) for rule in rules for group in rule["apiGroups"]
                for resource in rule["resources"] for verb in rule["verbs"]}

    def of_chart(*kinds: str, namespaces: tuple) -> dict[str, set]:
        things = operator.render(values={"operator.upgradeCRD": False, "penstock.cleanup.enabled": False})
        roles = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]): one for one in things if one["kind"].endswith("Role")}
        found: dict[str, set] = {}
        for (kind, namespace, name), role in roles.items():
            if kind in kinds and namespace in namespaces:
                [binding] = [one for one in things if one["kind"] == kind + "Binding" and one["roleRef"]["name"] == name]
                found.setdefault(binding["subjects"][0]["name"], set()).update(flat(role["rules"]))
        return found

    def of_bundle(where: str) -> dict[str, set]:
        return {one["serviceAccountName"]: flat(one["rules"]) for one in install(csv_in(BUNDLE))[where]}

    use = {"gpu-operator": "nonroot-v2", "penstock": "privileged"}
    assert of_bundle("clusterPermissions") == of_chart("ClusterRole", "Role", namespaces=(None, "default"))
    assert of_bundle("permissions") == {account: rules | {("security.openshift.io", "securitycontextconstraints", "use", (use[account],))}
                                        for account, rules in of_chart("Role", namespaces=(OPERATOR_NAMESPACE,)).items()}


def test_it_brings_the_service_and_the_rights_of_openshifts_prometheus(operator):
    """Without a namespace: OLM creates them in the operator's."""
    things = operator.render(values={"platform.openshift": True})
    for kind, name in (("Service", "gpu-operator"), ("Role", "gpu-operator-prometheus"), ("RoleBinding", "gpu-operator-prometheus")):
        made = yaml.safe_load((BUNDLE / f"manifests/{name}_{kind.lower()}.yaml").read_text())
        ours = things.one(kind, name)
        assert {key: value for key, value in made.items() if key != "metadata"} == {key: value for key, value in ours.items() if key != "metadata"}
        assert made["metadata"]["name"] == name and "namespace" not in made["metadata"]


def test_its_images_are_all_named_and_by_digest_if_wished(generate):
    driver = "nvcr.io/nvidia/driver@sha256:" + "1b" * 32
    csv = csv_in(generate("--image", DIGEST, "--related", driver))
    [container] = install(csv)["deployments"][0]["spec"]["template"]["spec"]["containers"]
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert container["image"] == environment["PENSTOCK_IMAGE"] == csv["metadata"]["annotations"]["containerImage"] == DIGEST
    assert [one["image"] for one in csv["spec"]["relatedImages"]] == [DIGEST, driver]
    assert len({one["name"] for one in csv["spec"]["relatedImages"]}) == 2
    tagged = csv_in(generate("--image", "registry.example:5000/team/penstock:1.2"))
    assert tagged["spec"]["relatedImages"][0]["image"] == "registry.example:5000/team/penstock:1.2"
    wrong = subprocess.run([sys.executable, ROOT / "deploy/olm/generate", "--image", "r/penstock@sha256:12"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "64 hexadecimal digits" in wrong.stderr


def test_the_image_of_the_bundle_says_where_its_parts_are():
    annotations = yaml.safe_load((BUNDLE / "metadata/annotations.yaml").read_text())["annotations"]
    lines = (BUNDLE / "bundle.Dockerfile").read_text().splitlines()
    assert annotations == dict(line.removeprefix("LABEL ").split("=", 1) for line in lines if line.startswith("LABEL "))
    assert [line.split()[1:] for line in lines if line.startswith("COPY ")] == [
        ["manifests", "/manifests/"], ["metadata", "/metadata/"], ["tests/scorecard", "/tests/scorecard/"]]
    kind = "operators.operatorframework.io"
    assert annotations[f"{kind}.bundle.manifests.v1"] == "manifests/" and annotations[f"{kind}.bundle.package.v1"] == "penstock-gpu-operator"
    config = yaml.safe_load((BUNDLE / "tests/scorecard/config.yaml").read_text())
    assert all(one["entrypoint"][0] == "scorecard-test" for stage in config["stages"] for one in stage["tests"])
