"""Clusters on Slurm: real slurmctld and slurmd on this machine, see slurm.py."""

from __future__ import annotations

import pytest

from tests.dtfctl.test_environment import a_wheel
from tests.e2e import slurm as slurm_cluster
from tests.e2e.dtfctl_cluster import CommandLine
from tests.e2e.slurm import Slurm, tasks_of_node
from tests.e2e.warden import parents

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # each command is a step of the job
    pytest.mark.skipif(bool(slurm_cluster.why_not()), reason=f"no Slurm: {slurm_cluster.why_not()}"),
]

SLEEPERS = """
name: trial
readiness: none
grace_period: 3s
engine: {slurm: {nodes: 2, address: 127.0.0.2}}
jobs:
  ps: {program: "echo ps; exec sleep 1000"}
  worker:
    replicas: 2
    program: |
      echo worker {task} on {host} in step $SLURM_STEP_ID
      while [ ! -e done ]; do sleep 0.02; done
      echo bye
"""


@pytest.fixture
def slurm(tmp_path):
    with Slurm(tmp_path, 3) as slurm:
        yield slurm


@pytest.fixture
def cluster(tmp_path, slurm):
    cluster = CommandLine(tmp_path, SLEEPERS)
    cluster.timeout_s = 180.0
    cluster.environment.update({name: slurm.environment[name] for name in ("PATH", "SLURM_CONF", "XDG_STATE_HOME")})
    yield cluster
    slurm.end_all()
    assert cluster.processes() == {}


def log_of(cluster, task, run=1, generation=1):
    """What a task has written so far, read from the state folder; "" before it begins."""
    path = cluster.state / "trial" / "runs" / f"{run:04}" / "logs" / f"{task}.{generation}.log"
    return path.read_text() if path.exists() else ""


def test_a_cluster_must_run_in_an_allocation_and_be_commanded_from_outside(cluster, slurm):
    assert "#SBATCH --nodes=2" in cluster.run("up", "--plan", status=20).stdout
    up = cluster.run("up")
    assert "job " in up.stderr
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1"), "worker:1")
    tasks = {task["name"]: task for task in cluster.status()["tasks"]}
    assert {tasks[name]["host"] for name in tasks} == {"node1", "node2"}
    cluster.run("restart", "worker:0")
    slurm.wait_until(lambda: "worker 0" in log_of(cluster, "worker-0", generation=2), "the restart")
    assert cluster.run("logs", "worker:0").stdout.count("worker 0 on") == 2
    (cluster.folder / "done").touch()
    slurm.wait_until(lambda: not slurm.run("squeue", "-h"), "the end of the job")
    assert cluster.status()["state"] == "succeeded"
    assert cluster.run("logs", "worker:1").stdout.endswith("bye\n")


def test_a_job_that_waits_must_say_what_for_and_can_be_cancelled(cluster, slurm):
    slurm.run("sbatch", "-N3", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1000")
    cluster.run("up")
    waiting = cluster.run("status", status=3)
    assert "is PENDING" in waiting.stderr
    assert "it is cancelled" in cluster.run("down").stderr
    assert "was never up" in cluster.run("status", status=4).stderr


def test_what_slurm_refuses_must_be_told_in_its_words(cluster, slurm):
    refusals = {
        "--partition=nowhere": "invalid partition",
        "--gres=gpu:99": "Requested node configuration is not available",
        "--mem=99G": "Memory specification can not be satisfied",
        "--nodelist=node77": "Invalid node name",
        "--time=soon": "Invalid --time specification",
    }
    for option, words in refusals.items():
        refused = cluster.run("up", "--set", f"engine.slurm.options={option}", status=8).stderr
        assert words in refused and "see: sinfo" in refused and refused.count("\n") == 1, refused
    slurm.run("scontrol", "update", "PartitionName=main", "State=INACTIVE")
    assert "partition not available" in cluster.run("up", status=8).stderr
    assert not slurm.run("squeue", "-h")
    assert "never up" in cluster.run("status", status=4).stderr


def job_of(slurm):
    return slurm.run("squeue", "-h", "-o", "%A")


def test_a_requeue_must_begin_a_new_run_of_the_same_job(cluster, slurm):
    cluster.run("up")
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1"), "worker:1")
    job = job_of(slurm)
    slurm.run("scontrol", "requeue", job)
    restarts = ("scontrol", "show", "job", job)
    slurm.wait_until(lambda: "Restarts=1" in slurm.run(*restarts), "the requeue")
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1", run=2), "worker:1 of the second run")
    assert job_of(slurm) == job
    (cluster.folder / "done").touch()
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    status = cluster.status()
    assert status["state"] == "succeeded"
    assert all(task["restarts"] == 0 for task in status["tasks"])


def test_an_existing_allocation_must_be_used_as_it_is(cluster, slurm):
    job = slurm.allocate(2)
    nodes = slurm.run("squeue", "-h", "-j", job, "-o", "%N")
    cluster.environment.update({"SLURM_JOB_ID": job, "SLURM_JOB_NODELIST": nodes})
    cluster.run("up")
    assert {task["host"] for task in cluster.status()["tasks"]} == {"node1", "node2"}
    cluster.run("down")
    slurm.wait_until(lambda: "job" not in slurm.run("squeue", "-h", "-s", "-o", "%j").split(), "the end of all steps")


SAVING = """
name: trial
readiness: none
grace_period: 20s
engine: {slurm: {nodes: 2, address: 127.0.0.2}}
jobs:
  ps: {program: "trap 'ls saved >> order; exit 0' TERM; echo ps; while :; do sleep 0.02; done"}
  chief:
    program: |
      [ ! -e saved ] || { echo continues from $(cat saved); exit 0; }
      trap 'echo 17 > saved; echo chief saves; exit 0' TERM
      echo chief trains
      while :; do sleep 0.02; done
  worker: {program: "echo worker; while :; do sleep 0.02; done"}
"""


def test_slurms_notice_must_let_the_chief_save_and_queue_the_job_again(cluster, slurm):
    cluster.write(SAVING)
    cluster.run("up")
    slurm.wait_until(lambda: "trains" in log_of(cluster, "chief-0"), "the chief")
    slurm.wait_until(lambda: "worker" in log_of(cluster, "worker-0"), "the worker")
    job = job_of(slurm)
    slurm.run("scancel", "--batch", "--signal=USR1", job)
    slurm.wait_until(lambda: "continues from 17" in log_of(cluster, "chief-0", run=2), "the second run")
    assert "chief saves" in log_of(cluster, "chief-0")
    assert (cluster.folder / "order").read_text().startswith("saved\n")
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    status = cluster.status()
    assert status["state"] == "succeeded"
    assert all(task["restarts"] == 0 for task in status["tasks"])
    words = (cluster.state / "trial" / f"slurm-{job}.log").read_text()
    assert words.index("chief trains") < words.index("continues from 17")


@pytest.mark.parametrize("ending", ["scancel", "scontrol requeue", "kill"])
def test_the_end_of_a_job_must_be_an_end_and_no_failure(cluster, slurm, ending):
    cluster.write(SLEEPERS.replace("grace_period: 3s", "grace_period: 100s\nrestart: never"))
    cluster.run("up")
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1"), "worker:1")
    slurm.wait_until(lambda: "worker 0" in log_of(cluster, "worker-0"), "worker:0")
    job = job_of(slurm)
    if ending == "kill":
        slurm.run("scancel", "--signal=KILL", "--full", job)
    else:
        slurm.run(*ending.split(), job)
    if ending == "scontrol requeue":
        slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1", run=2), "the second run")
        assert "all tasks are ready" in cluster.run("events").stdout
        slurm.run("scancel", job)
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    status = cluster.status()
    assert status["state"] == "stopped", status
    assert all(task["restarts"] == 0 and task["state"] == "stopped" for task in status["tasks"]), status


def test_commands_must_reach_a_running_job_from_the_submit_host(cluster, slurm):
    cluster.run("up")
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1"), "worker:1")
    following = cluster.start("logs", "-f", "worker:1")
    slurm.wait_until(lambda: "worker 1" in cluster.out(), "logs -f")
    assert "ready" in cluster.run("events").stdout
    cluster.run("scale", "worker=3")
    slurm.wait_until(lambda: "worker 2" in log_of(cluster, "worker-2"), "worker:2")
    cluster.run("stop", "worker:0")
    assert cluster.task("worker:0")["state"] == "stopped"
    cluster.run("start", "worker:0")
    assert cluster.run("exec", "worker:1", "--", "printenv", "SLURMD_NODENAME").stdout in ("node1\n", "node2\n")
    assert "worker:0" in cluster.run("top", "--once", status=None).stdout
    cluster.run("down")
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    assert following.wait(60) == 0
    assert cluster.status()["state"] == "stopped"
    assert "worker 2" in cluster.run("logs", "worker:2").stdout


def test_a_job_that_cannot_start_must_give_slurms_reason(cluster, slurm):
    slurm.run("scontrol", "update", "PartitionName=main", "MaxNodes=1")
    assert "is PENDING, Partition" in cluster.run("up").stderr
    assert "is PENDING, Partition" in cluster.run("status", status=3).stderr
    cluster.run("down")
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")


def test_a_node_without_python_must_be_told_and_the_job_must_end(cluster, slurm):
    cluster.write(SLEEPERS + "python: /nowhere/python3\n")
    cluster.run("up")
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    status = cluster.run("status", status=3).stderr
    assert "/nowhere/python3" in status and "job " in status, status


def test_an_environment_on_a_shared_file_system_must_be_made_once_for_all_nodes(cluster, slurm):
    a_wheel(cluster.folder / "wheels", "greeting", "1.0")
    (cluster.folder / "requirements.txt").write_text("--no-index\n--find-links wheels\ngreeting\n")
    cluster.write(
        """
name: trial
readiness: none
engine: {slurm: {nodes: 2, interface: lo}}
venv: environment
requirements: requirements.txt
jobs: {worker: {replicas: 2, program: [python, -c, "import greeting; print(greeting.version)"]}}
"""
    )
    cluster.run("up")
    job = job_of(slurm)
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    assert cluster.status()["state"] == "succeeded"
    assert log_of(cluster, "worker-0") == log_of(cluster, "worker-1") == "1.0\n"
    assert "environment: 1 of 2 made" in (cluster.state / "trial" / f"slurm-{job}.log").read_text()


def test_a_cluster_must_end_with_the_allocation_of_salloc(cluster, slurm):
    cluster.prefix = ("salloc", "--nodes=2", "--quiet")
    assert "2 worker" in cluster.run("up").stderr
    cluster.prefix = ()
    # salloc has ended its allocation with its command; the supervisor, on the submit host, has to notice.
    slurm.wait_until(lambda: not cluster.processes(), "the end of the supervisor")
    status = cluster.status()
    assert status["state"] == "stopped" and {task["state"] for task in status["tasks"]} == {"stopped"}
    assert cluster.run("down").returncode == 0


GROUPS = """
name: trial
readiness: none
grace_period: 3s
engine: {slurm: {groups: {ps: 1, worker: {nodes: 2, options: [--gres=gpu:2]}}, interface: lo}}
jobs:
  ps: {program: "echo at {address}; exec sleep 1000"}
  worker: {replicas: 2, gpus: 1, program: "echo on $SLURMD_NODENAME with GPU $CUDA_VISIBLE_DEVICES; exec sleep 1000"}
"""


def test_a_heterogeneous_job_must_have_parameter_servers_and_workers_on_their_own_nodes(cluster, slurm):
    # Another job has the first GPU of each node; so number 0 of ours is Slurm's number 1.
    slurm.run("sbatch", "-N3", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "sleep 1000")
    cluster.write(GROUPS)
    cluster.run("up")
    slurm.wait_until(lambda: "GPU" in log_of(cluster, "worker-0"), "worker:0")
    slurm.wait_until(lambda: "GPU" in log_of(cluster, "worker-1"), "worker:1")
    slurm.wait_until(lambda: "at 127." in log_of(cluster, "ps-0"), "ps:0")
    tasks = {task["name"]: task for task in cluster.status()["tasks"]}
    assert len({task["host"] for task in tasks.values()}) == 3
    for index in (0, 1):
        words = log_of(cluster, f"worker-{index}")
        assert f"on {tasks[f'worker:{index}']['host']} with GPU 1\n" in words, words
    assert cluster.run("exec", "worker:1", "--", "printenv", "SLURMD_NODENAME").stdout.strip() in words
    cluster.run("down")
    slurm.wait_until(lambda: "trial" not in slurm.run("squeue", "-h", "-o", "%j"), "the end of the job")


def test_tasks_of_a_node_that_was_cut_off_must_end_by_themselves(cluster, slurm):
    text = SLEEPERS.replace("nodes: 2", "nodes: 3, spares: 1")
    cluster.write(text.replace("name: trial", "name: trial\nhost_lost_after: 8s\nfence_after: 5s"))
    cluster.run("up")
    slurm.wait_until(lambda: "worker 0" in log_of(cluster, "worker-0"), "worker:0")
    before = cluster.task("worker:0")
    assert before["host"] == "node2"
    slurm.cut_node("node2")
    slurm.wait_until(lambda: "on node3" in log_of(cluster, "worker-0", generation=2), "worker:0 on the spare")
    assert before["pid"] not in parents(), "both write"
    # Nobody may ever come to end the keeper there, so it does not wait for long.
    conf = slurm.environment["SLURM_CONF"]
    slurm.wait_until(lambda: not tasks_of_node("node2", conf), "the end of all that runs there")
    slurm.kill_node("node2")
    (cluster.folder / "done").touch()
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    assert cluster.status()["state"] == "succeeded"


def test_a_first_node_that_was_cut_off_must_end_its_part_of_the_job(cluster, slurm):
    cluster.write(SLEEPERS.replace("name: trial", "name: trial\nfence_after: 3s"))
    cluster.run("up")
    for task in ("worker-0", "worker-1"):
        slurm.wait_until(lambda task=task: "worker" in log_of(cluster, task), task)
    tasks = cluster.status()["tasks"]
    assert {task["host"] for task in tasks} == {"node1", "node2"}
    job = job_of(slurm)
    log = cluster.state / "trial" / f"slurm-{job}.log"
    slurm.cut_node("node1")
    slurm.wait_until(lambda: "neither Slurm nor another node" in log.read_text(), "the end of the supervisor")
    slurm.wait_until(lambda: not {task["pid"] for task in tasks} & set(parents()), "the end of all tasks")
    # Slurm keeps the job, and nothing is left in it.
    slurm.kill_node("node1")
    slurm.wait_until(lambda: "down" in slurm.run("sinfo", "-h", "-N", "-n", "node1", "-o", "%T"), "the loss of node1")
    assert f"scontrol requeue {job}" in cluster.run("status", status=3).stderr
    slurm.start_node("node1")
    assert "lost its first node, node1, and is queued again" in cluster.run("up").stderr
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1", run=2), "the second run")
    (cluster.folder / "done").touch()
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    assert cluster.status()["state"] == "succeeded"


def test_a_job_that_reaches_its_time_limit_must_end_in_words(cluster, slurm):
    cluster.write(SAVING.replace("nodes: 2,", "nodes: 2, without: [--signal],"))
    cluster.run("up")
    slurm.wait_until(lambda: "trains" in log_of(cluster, "chief-0"), "the chief")
    job = job_of(slurm)
    slurm.run("scontrol", "update", f"JobId={job}", "EndTime=now")
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    status = cluster.status()
    assert status["state"] == "stopped"
    assert all(task["restarts"] == 0 and task["state"] == "stopped" for task in status["tasks"]), status
    assert f"job {job} of Slurm has reached its time limit" in cluster.run("events").stdout
    # Without a notice the chief saves within Slurm's own KillWait.
    assert (cluster.folder / "saved").read_text() == "17\n"


def test_missing_rights_must_be_told_in_slurms_words(cluster, slurm):
    slurm.run("scontrol", "update", "PartitionName=main", "AllowAccounts=physics")
    up = cluster.run("up").stderr
    assert "is PENDING, " in up and "ccount" in up, up
    cluster.run("down")
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    with open(slurm.environment["SLURM_CONF"], "a") as conf:
        conf.write("EnforcePartLimits=ALL\n")
    slurm.run("scontrol", "reconfigure")
    slurm.run("scontrol", "update", "PartitionName=main", "AllowAccounts=physics")
    refused = cluster.run("up", status=8).stderr
    assert "nvalid account" in refused and refused.count("\n") == 1, refused
    assert not job_of(slurm)
    assert "never up" in cluster.run("status", status=4).stderr


def test_tasks_of_a_lost_node_must_move_to_a_spare_while_the_others_go_on(cluster, slurm):
    text = SLEEPERS.replace("nodes: 2", "nodes: 3, spares: 1")
    cluster.write(text.replace("name: trial", "name: trial\nhost_lost_after: 4s"))
    cluster.run("up")
    slurm.wait_until(lambda: "worker 0" in log_of(cluster, "worker-0"), "worker:0")
    slurm.wait_until(lambda: "worker 1" in log_of(cluster, "worker-1"), "worker:1")
    before = {task["name"]: task for task in cluster.status()["tasks"]}
    assert before["worker:0"]["host"] == "node2" and "node3" not in {task["host"] for task in before.values()}
    slurm.kill_node("node2")
    slurm.wait_until(lambda: "on node3" in log_of(cluster, "worker-0", generation=2), "worker:0 on the spare")
    after = {task["name"]: task for task in cluster.status()["tasks"]}
    assert after["worker:0"]["host"] == "node3"
    assert after["worker:0"]["address"] != before["worker:0"]["address"]
    assert after["ps:0"]["host"] == before["ps:0"]["host"] == "node1"
    (cluster.folder / "done").touch()
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job")
    assert cluster.status()["state"] == "succeeded"
