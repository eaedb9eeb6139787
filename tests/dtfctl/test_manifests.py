"""`dtfctl expand --as kubernetes, jobset, tfjob`: what the objects say, and that Kubernetes' schemas take them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dtfctl import config
from dtfctl.commands.frame import Options
from dtfctl.commands.manifests import write
from dtfctl.errors import ConfigError
from dtfctl.manifests import containerfile, pods
from dtfctl.manifests.documents import changed
from dtfctl.manifests.rights import RIGHTS
from dtfctl.manifests.written import TARGETS, manifests, of_supervisor
from tests.waiting import wait_until

OLDEST, NEWEST = "1.25", "1.37"

TEXT = """
name: trial
program: python trainer.py {cluster_flags} --checkpoint_dir={checkpoint_dir}
checkpoint_dir: checkpoints
secrets: [API_KEY]
engine: {kubernetes: {image: "images/trial:1", storage: 10Gi}}
jobs:
  ps: 2
  chief: {replicas: 1, restart: never}
  worker: {replicas: 3, gpus: 2, cpus: 4, limits: {memory: 4GiB}, restart: exit-code, liveness: tcp}
  evaluator: 1
"""
DIFFERING = f"""{TEXT}
  reader: {{replicas: 2, readiness: {{command: 'test {{index}} = 1'}}, tasks: {{1: {{environment: {{A: b}}}}}}}}
"""


def plan_of(text=TEXT, folder=Path("/home/user/trial"), **settings):
    given = [f"engine.kubernetes.{key}={value}" for key, value in settings.items()]
    return config.parse(text, "cluster.yaml", folder, given)


def objects_of(plan, target="kubernetes", **secrets):
    found = list(yaml.safe_load_all(manifests(plan, target, secrets)))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def pod_of(one):
    template = one["spec"]["template"]
    (container,) = template["spec"]["containers"]
    return template["spec"], container


def environment_of(container):
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_each_job_is_an_object_of_the_kind_that_fits_its_end():
    found = objects_of(plan_of(TEXT + "tensorboard: true\n"), API_KEY="x")
    assert {kind for kind, _ in found} == {
        *("Service", "ConfigMap", "Secret", "PersistentVolumeClaim", "PodDisruptionBudget"),
        *("StatefulSet", "Job", "Deployment"),
    }
    assert ("StatefulSet", "trial-ps") in found and ("Deployment", "trial-tensorboard") in found
    service = found["Service", "trial"]["spec"]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"] is True


def test_a_task_knows_itself_by_its_pods_index():
    found = objects_of(plan_of())
    spec, container = pod_of(found["Job", "trial-worker"])
    assert spec["subdomain"] == "trial" and "hostname" not in spec
    environment = environment_of(container)
    assert "job-completion-index" in environment["TASK_INDEX"]["fieldRef"]["fieldPath"]
    place = json.loads(environment["TF_CONFIG"].replace("$(TASK_INDEX)", "2"))
    assert place["task"] == {"type": "worker", "index": 2}
    assert place["cluster"]["worker"][2] == "trial-worker-2.trial:2222"
    assert "--task_index=$(TASK_INDEX)" in container["command"][-1]


def test_a_workers_pod_has_its_resources_and_its_volume():
    _, container = pod_of(objects_of(plan_of())["Job", "trial-worker"])
    wanted = {"cpu": "4", "memory": str(4 << 30)}
    assert container["resources"] == {"requests": wanted, "limits": {**wanted, "nvidia.com/gpu": "2"}}
    assert "CUDA_VISIBLE_DEVICES" not in environment_of(container) and "PATH" not in environment_of(container)
    assert container["volumeMounts"] == [{"name": "checkpoints", "mountPath": "/app/checkpoints"}]
    assert container["readinessProbe"]["tcpSocket"] == container["livenessProbe"]["tcpSocket"] == {"port": 2222}


def test_restart_policies_become_those_of_jobs():
    found = objects_of(plan_of())
    assert found["Job", "trial-chief"]["spec"]["backoffLimit"] == 0
    worker = found["Job", "trial-worker"]["spec"]
    preempted, permanent = worker["podFailurePolicy"]["rules"]
    assert worker["backoffLimit"] == 15 and preempted["action"] == "Ignore"
    assert permanent["onExitCodes"]["values"] == list(range(128, 256))


def test_tasks_that_differ_are_jobs_of_their_own():
    found = objects_of(plan_of(DIFFERING))
    spec, container = pod_of(found["Job", "trial-reader-1"])
    assert spec["hostname"] == "trial-reader-1" and environment_of(container)["A"] == "b"
    assert container["readinessProbe"]["exec"]["command"][-1] == "test 1 = 1"


def test_a_dollar_of_the_program_stays_one():
    program = ["echo", "$(HOME) $$ $x $$(date) {index}"]
    text = TEXT.replace("python trainer.py {cluster_flags} --checkpoint_dir={checkpoint_dir}", json.dumps(program))
    _, container = pod_of(objects_of(plan_of(text.replace("$", "$$")))["Job", "trial-worker"])
    # Kubernetes makes $ of $$, and fills $(NAME).
    assert container["command"][1] == "$$(HOME) $$$ $x $$$$(date) $(TASK_INDEX)"


def test_secrets_are_named_and_only_printed_when_asked_for():
    text = manifests(plan_of(), "kubernetes")
    assert "kind: Secret" not in text and "trial-secrets" in text
    assert objects_of(plan_of(), API_KEY="s3")["Secret", "trial-secrets"]["stringData"] == {"API_KEY": "s3"}


def test_a_jobset_succeeds_with_the_deciding_jobs():
    found = objects_of(plan_of(), "jobset")
    spec = found["JobSet", "trial"]["spec"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["chief"]}
    assert spec["network"]["publishNotReadyAddresses"] is True
    assert "trial-worker-0-2.trial:2222" in found["ConfigMap", "trial"]["data"]["CLUSTER_SPEC"]


def test_a_tfjob_has_every_kind_of_replica():
    spec = objects_of(plan_of(), "tfjob")["TFJob", "trial"]["spec"]
    replicas = spec["tfReplicaSpecs"]
    assert [(kind, each["replicas"], each["restartPolicy"]) for kind, each in replicas.items()] == [
        ("PS", 2, "OnFailure"),
        ("Chief", 1, "Never"),
        ("Worker", 3, "ExitCode"),
        ("Evaluator", 1, "OnFailure"),
    ]
    (container,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert container["name"] == "tensorflow" and container["ports"] == [{"name": "tfjob-port", "containerPort": 2222}]
    assert "TF_CONFIG" not in environment_of(container)
    assert spec["runPolicy"]["cleanPodPolicy"] == "Running" and spec["successPolicy"] == ""


def test_workers_alone_decide_together():
    plan = plan_of("name: a\nprogram: x\nengine: {kubernetes: {image: i}}\njobs: {ps: 1, worker: 2}")
    assert objects_of(plan, "tfjob")["TFJob", "a"]["spec"]["successPolicy"] == "AllWorkers"


def test_a_gang_scheduler_and_its_group_may_be_named_for_each_pod():
    names = "spec.schedulerName=volcano", 'metadata.annotations."scheduling.k8s.io/group-name"=g'
    pod = changed({"metadata": {"name": "p"}, "spec": {}}, names, (), str)
    assert pod == {
        "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {"schedulerName": "volcano"},
    }


def test_parts_of_a_pod_are_added_and_left_out():
    plan = plan_of(options="[spec.nodeSelector.pool=gpu, 'metadata.annotations.a=\"1\"']")
    spec, _ = pod_of(objects_of(plan)["StatefulSet", "trial-ps"])
    assert spec["nodeSelector"] == {"pool": "gpu"}
    plan = plan_of(without="[spec.containers.0.env.0, spec.securityContext]")
    spec, container = pod_of(objects_of(plan)["Job", "trial-worker"])
    assert "securityContext" not in spec and "TASK_INDEX" not in environment_of(container)


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (("name: trial", "name: My_Trial"), {}, "cluster.yaml:2:7: Kubernetes does not take .My_Trial."),
        (("  ps: 2", "  p_s: 2"), {}, "Kubernetes does not take .p_s. as the name of a job"),
        (("name: trial", f"name: {'t' * 50}"), {}, "is too long: 55 letters of at most 52"),
        (("", ""), {"options": "replicas=1"}, "must begin with metadata or spec"),
        (("", ""), {"options": "spec"}, "must be path=value"),
        (("", ""), {"options": "'spec.a=[1'"}, r"spec.a=\[1|\[1: "),
    ],
)
def test_what_kubernetes_would_not_take_is_one_line(change, settings, words):
    with pytest.raises(ConfigError, match=words) as raised:
        manifests(plan_of(TEXT.replace(*change) if change[0] else TEXT, **settings), "kubernetes")
    assert "\n" not in str(raised.value)


def test_an_image_must_be_named():
    with pytest.raises(ConfigError, match="no image for the pods; build one"):
        manifests(plan_of(TEXT.replace('image: "images/trial:1", ', "")), "kubernetes")


@pytest.mark.parametrize("target", ["jobset", "tfjob"])
def test_one_template_does_not_fit_tasks_that_differ(target):
    text = DIFFERING if target == "jobset" else DIFFERING.replace("reader", "master")
    with pytest.raises(ConfigError, match="has one template for all tasks"):
        manifests(plan_of(text), target)


def test_a_tfjob_has_no_place_for_other_jobs():
    with pytest.raises(ConfigError, match='no place for the job "reader"'):
        manifests(plan_of(DIFFERING), "tfjob")


def test_the_image_has_the_folder_and_its_requirements(tmp_path):
    (tmp_path / "requirements.txt").write_text("numpy")
    plan = plan_of(TEXT + "requirements: requirements.txt\nvenv: /venv\n", folder=tmp_path)
    text = containerfile.text(plan)
    assert "COPY requirements.txt /tmp/requirements/" in text and "WORKDIR /app" in text and "USER 1000" in text


def test_a_shell_line_gets_the_signal_of_its_container(tmp_path):
    """Kubernetes signals the first process alone; the program behind a shell still saves and exits as it wants."""
    begun = tmp_path / "begun"
    program = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
        f"open({str(begun)!r}, 'w').close(); time.sleep(60)"
    )
    plan = plan_of()
    line = f"{sys.executable} -c {json.dumps(program)}"
    words = pods.command(("/bin/sh", "-c", pods.expand.shell_line.outliving_signals(line)))
    assert plan.engine == "kubernetes"
    process = subprocess.Popen(words, start_new_session=True)
    wait_until(begun.exists, "the program has begun")
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 7


def templates(one):
    """Pods of what no schema of Kubernetes itself describes."""
    if one["kind"] == "JobSet":
        for each in one["spec"]["replicatedJobs"]:
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, **each["template"]}
    elif one["kind"] == "TFJob":
        for each in one["spec"]["tfReplicaSpecs"].values():
            pod = each["template"]
            yield {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {"name": "a", **pod["metadata"]}}
    else:
        yield one


@pytest.mark.parametrize(("target", "version"), [("kubernetes", OLDEST), *((target, NEWEST) for target in TARGETS)])
def test_the_schemas_of_kubernetes_take_every_object(target, version):
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs pip install kubernetes-validate")
    text = DIFFERING + "tensorboard: true\n" if target == "kubernetes" else TEXT
    for one in objects_of(plan_of(text), target, API_KEY="x").values():
        for each in templates(one):
            kubernetes_validate.validate(each, version, strict=True)


def supervisor_of(plan):
    found = yaml.safe_load_all(of_supervisor(plan, ["cluster.yaml", "--set", "a=b"]))
    return {each["kind"]: each for each in found}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_schemas_take_the_supervisor(version):
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs pip install kubernetes-validate")
    for each in supervisor_of(plan_of()).values():
        kubernetes_validate.validate(each, version, strict=True)


def test_the_supervisor_has_the_rights_of_a_run_and_no_more():
    found = supervisor_of(plan_of())
    rules = found["Role"]["rules"]
    assert {(verb, rule["resources"][0]) for rule in rules for verb in rule["verbs"]} == set(RIGHTS)
    assert not any("*" in str(rule) for rule in rules)
    assert found["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "trial-dtfctl"}]
    assert found["RoleBinding"]["roleRef"]["name"] == found["Role"]["metadata"]["name"] == "trial-dtfctl"


def test_the_supervisor_is_no_member_of_the_clusters_service():
    found = supervisor_of(plan_of())["Job"]
    spec, container = pod_of(found)
    selector = objects_of(plan_of())["Service", "trial"]["spec"]["selector"]
    assert found["spec"]["template"]["metadata"]["labels"] != selector
    assert spec["serviceAccountName"] == "trial-dtfctl" and spec["restartPolicy"] == "OnFailure"
    assert container["command"][-7:-2] == ["up", "cluster.yaml", "--set", "a=b", "--attach"]
    environment = environment_of(container)
    assert environment["API_KEY"] == {"secretKeyRef": {"name": "trial-secrets", "key": "API_KEY"}}
    assert environment["DTFCTL_POD_UID"] == {"fieldRef": {"fieldPath": "metadata.uid"}}


def test_the_supervisor_gets_no_secret_from_a_file():
    plan = plan_of(TEXT.replace("[API_KEY]", "{API_KEY: {file: key.txt}}"))
    with pytest.raises(ConfigError, match=r"the image has no file .*key.txt for the secret API_KEY"):
        supervisor_of(plan)


def test_expand_writes_objects_and_a_containerfile(tmp_path):
    file = tmp_path / "cluster.yaml"
    file.write_text("name: plain\nprogram: 'true'\njobs: {ps: 1, worker: 1}\n")
    read = config.read([file], ["engine.kubernetes.image=i"])
    write(Options(None, False), read, "kubernetes", str(tmp_path / "out"), with_secrets=False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"kubernetes.yaml", "Containerfile"}
