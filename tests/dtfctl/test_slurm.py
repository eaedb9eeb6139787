"""Slurm without Slurm: the batch script, the nodes of an allocation, srun's words, and commands that a script plays."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from dtfctl import config
from dtfctl.config.engine import nodes_of
from dtfctl.errors import ConfigError, HostsUnusable
from dtfctl.launchers import slurm_job, slurm_parcel
from dtfctl.launchers.base import Exited, Unreachable
from dtfctl.launchers.keeper.processes import boot_id
from dtfctl.launchers.slurm import SlurmPipe, explain, own_environment
from dtfctl.plan.batch_script import log_pattern, notice_s, options, script, unpacking
from dtfctl.plan.expand import environment
from dtfctl.storage.paths import ClusterPaths
from dtfctl.supervise.allocation import Allocation, job_of_restarted_node, why_signalled
from dtfctl.values.engines import SlurmSettings
from dtfctl.values.hosts import resolved
from dtfctl.values.plan import SLURM, ClusterPlan, HostPlan, to_json
from dtfctl.values.task import Exit
from dtfctl.wire.typed import from_document

TEXT = """
name: trial
program: train
engine: {slurm: {nodes: 2, options: [--partition=gpu], address: "{node}-ib"}}
jobs:
  ps: 1
  worker: {replicas: 3, gpus: 2, cpus: 4}
"""
ALLOCATED = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "gpu[08-09]"}


def plan_of(text=TEXT, variables=None):
    return config.parse(text, "cluster.yaml", Path("/cluster"), variables=variables or {})


def test_the_allocations_nodes_are_the_hosts():
    plan = plan_of(variables=ALLOCATED)
    assert [(host.via, host.target, host.address) for host in plan.hosts] == [
        (SLURM, "gpu08", "gpu08-ib"),
        (SLURM, "gpu09", "gpu09-ib"),
    ]
    assert plan.slurm.job == "12" and not plan.hosts[0].sync
    assert from_document(ClusterPlan, json.loads(json.dumps(to_json(plan)))) == plan


def test_before_there_is_an_allocation_the_nodes_have_numbers():
    assert {host.name for host in plan_of().hosts} == {"node-1", "node-2"}
    plain = plan_of("engine: slurm\nprogram: x\njobs: {a: 1}")
    assert plain.engine == SLURM and plain.slurm == SlurmSettings()


def test_groups_of_a_heterogeneous_job_come_one_after_the_other():
    variables = {"SLURM_HET_SIZE": "2", "SLURM_JOB_NODELIST_HET_GROUP_0": "cpu1"}
    assert nodes_of({**variables, "SLURM_JOB_NODELIST_HET_GROUP_1": "gpu[1-2]"}) == ["cpu1", "gpu1", "gpu2"]


GROUPS = """
name: trial
program: train
engine:
  slurm:
    groups: {ps: {nodes: 1, options: [--partition=cpu]}, worker: {nodes: 2, options: [--partition=gpu]}}
    options: [--account=me, --partition=main]
jobs:
  ps: 2
  chief: 1
  worker: {replicas: 2, gpus: 2}
"""


def test_each_group_of_a_heterogeneous_job_has_its_own_nodes_and_options():
    plan = plan_of(GROUPS)
    places = {task.name: task.host.name for task in plan.tasks()}
    assert places == {
        "ps:0": "node-1", "ps:1": "node-1", "chief:0": "node-1", "worker:0": "node-2", "worker:1": "node-3",
    }  # fmt: skip
    lines = script(plan, ("dtfctl",), ("f",), "log").splitlines()
    first, second = lines[1 : lines.index("#SBATCH hetjob")], lines[lines.index("#SBATCH hetjob") :]
    assert {"#SBATCH --nodes=1", "#SBATCH --partition=cpu", "#SBATCH --account=me", "#SBATCH --requeue"} <= {*first}
    assert {"#SBATCH --nodes=2", "#SBATCH --partition=gpu", "#SBATCH --account=me", "#SBATCH --gres=gpu:2"} <= {*second}
    assert not [line for line in first if "gres" in line] and "#SBATCH --partition=main" not in lines


HETEROGENEOUS = {
    "SLURM_JOB_ID": "12",
    "SLURM_HET_SIZE": "2",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "cpu1",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "gpu[1-2]",
}


def test_a_step_of_a_heterogeneous_job_names_the_group_of_its_node():
    plan = plan_of(GROUPS, HETEROGENEOUS)
    assert {task.host.name for task in plan.tasks() if task.job.name == "worker"} == {"gpu1", "gpu2"}
    lines = {host.name: SlurmPipe(plan.slurm, host).by_hand() for host in plan.hosts}
    assert "--jobid=12 --het-group=0" in lines["cpu1"] and "--jobid=12 --het-group=1" in lines["gpu2"]
    assert from_document(ClusterPlan, json.loads(json.dumps(to_json(plan)))) == plan
    with pytest.raises(ConfigError, match='"groups" has 2 groups, and job 12 of Slurm has 1'):
        plan_of(GROUPS, ALLOCATED)
    with pytest.raises(ConfigError, match='"groups" names pss, and no job is called so \\(did you mean "ps"'):
        plan_of(GROUPS.replace("{ps:", "{pss:"))


def test_gpus_are_counted_among_those_that_slurm_has_granted():
    plan = plan_of(variables=ALLOCATED)
    task = plan.task("worker:0")
    addresses = {each.name: "h:1" for each in plan.tasks()}

    def devices(inherited):
        return environment(plan, task, addresses, inherited)["CUDA_VISIBLE_DEVICES"]

    assert devices({}) == "0,1"
    assert devices({"CUDA_VISIBLE_DEVICES": "2,3,5"}) == "2,3"


def test_the_address_of_a_node_may_be_that_of_an_interface():
    plan = plan_of(TEXT.replace('address: "{node}-ib"', "interface: ib0"), ALLOCATED)
    found = {"folder": "/f", "environment": {}, "python": "p", "interfaces": {"ib0": "10.1.0.8"}}
    assert resolved(plan.hosts[0], plan, found).address == "10.1.0.8"
    with pytest.raises(ConfigError, match="exclude each other"):
        plan_of(TEXT.replace("address:", "interface: ib0, address:"))


def test_the_last_nodes_are_the_spares_of_every_job():
    plan = plan_of(TEXT.replace("nodes: 2", "nodes: 3, spares: 1"))
    assert {task.host.name for task in plan.tasks()} == {"node-1", "node-2"}
    assert all(job.spares == ("node-3",) for job in plan.jobs)
    with pytest.raises(ConfigError, match='"spares" must leave a node for the tasks: there are 2 nodes'):
        plan_of(TEXT.replace("nodes: 2", "nodes: 2, spares: 2"))


def test_tasks_of_a_node_that_was_cut_off_end_before_they_are_replaced():
    assert plan_of().fence_after_s == 60
    assert plan_of(TEXT + "host_lost_after: 10s\n").fence_after_s == 8
    assert plan_of(TEXT + "fence_after: 5m\n").fence_after_s == 300
    assert plan_of("program: x\njobs: {a: 1}").fence_after_s == 0
    with pytest.raises(ConfigError, match='"fence_after" must be less than "host_lost_after" \\(600s\\)'):
        plan_of(TEXT + "fence_after: 20m\n")


APART = """
name: trial
program: train
engine: {slurm: {nodes: 2, sync: true, python: /opt/dtf/bin/python}}
jobs: {worker: {env_file: words.env}}
"""


def apart(folder, *more, text=APART):
    (folder / "cluster.yaml").write_text(text)
    (folder / "words.env").write_text("WORD=${NAME}\n")
    (folder / ".env").write_text("NAME=me\n")
    read = config.read([folder / "cluster.yaml", *more])
    files = [str(folder / "cluster.yaml"), *map(str, more)]
    return slurm_parcel.packed(read.plan(), files, read.reads())


def unpacked(parcel):
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(parcel.text))) as archive:
        return {member.name for member in archive.getmembers()}


def test_nodes_without_a_shared_file_system_get_the_folder_and_their_own_python(tmp_path):
    (tmp_path / "cluster.yaml").write_text(APART)
    (tmp_path / "words.env").write_text("A=b\n")
    host = config.load(tmp_path / "cluster.yaml").hosts[0]
    assert host.sync and host.python == "/opt/dtf/bin/python" and host.folder == str(tmp_path)


def test_a_parcel_has_the_folder_and_every_file_that_the_cluster_file_reads(tmp_path):
    folder = tmp_path / "cluster"
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "train.py").touch()
    (folder / ".gitignore").write_text("words.env\nbig\n")
    (folder / "big").touch()
    (tmp_path / "more.yaml").write_text("jobs: {ps: 1}\n")
    found = apart(folder, tmp_path / "more.yaml")
    assert found.files == ("cluster.yaml", ".dtfctl/1-more.yaml")
    names = {"cluster.yaml", "code/train.py", "words.env", ".env", ".gitignore", ".dtfctl/1-more.yaml"}
    assert unpacked(found) == names
    lines = unpacking("/opt/a python", "/state/trial", found.text)
    assert subprocess.run(["bash", "-n"], input=lines, text=True).returncode == 0


def test_a_folder_that_no_batch_script_can_carry_is_refused_with_what_to_do(tmp_path):
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(3 << 20))
    with pytest.raises(HostsUnusable, match=r"MiB in the batch script, which may have .*\.dtfctlignore"):
        apart(folder)
    (folder / "large").unlink()
    (tmp_path / "elsewhere.env").touch()
    with pytest.raises(HostsUnusable, match="lies outside of"):
        apart(folder, text=APART.replace("words.env", "../elsewhere.env"))


def test_the_script_says_where_the_user_is_what_keeps_it_from_starting(tmp_path):
    """Run by bash, with a scontrol that a script plays."""
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/told\n')
    (tmp_path / "scontrol").chmod(0o755)
    (tmp_path / "taken").touch()

    def refused(python, folder, parcel="x"):
        (tmp_path / "told").unlink(missing_ok=True)
        variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "12"}
        lines = unpacking(python, str(folder), parcel)
        done = subprocess.run(["bash"], input=lines, text=True, capture_output=True, env=variables)
        assert done.returncode == 1
        return (tmp_path / "told").read_text()

    assert "JobId=12 Comment=" in (told := refused(sys.executable, tmp_path / "taken" / "trial"))
    assert "cannot be written; use another --state-dir" in told
    assert "has no dtfctl; install it there" in refused("/bin/false", tmp_path / "state")
    assert "cannot be unpacked in" in refused("/bin/true", tmp_path / "state")


def test_hosts_and_an_engine_exclude_each_other():
    with pytest.raises(ConfigError, match="exclude each other"):
        plan_of(TEXT + "hosts: [a, b]\n")


def test_the_scripts_options_follow_from_the_file():
    found = options(plan_of(), "/logs/%j")
    assert found[-1] == "--partition=gpu" and "--nodes=2" in found and "--no-kill" in found
    assert "--gres=gpu:4" in found and "--cpus-per-task=8" in found


@pytest.mark.parametrize("given", ["--nodes=5", "--nodes 5", "-N 5", "-N5"])
def test_every_option_can_be_replaced_or_left_out(given):
    text = TEXT.replace("[--partition=gpu]", f'["{given}"], without: [--requeue, --gres]')
    found = options(plan_of(text), "/logs/%j")
    assert found.count(given) == 1 and "--nodes=2" not in found
    assert not [option for option in found if option.startswith(("--requeue", "--gres"))]


@pytest.mark.parametrize(
    ("log", "pattern"),
    [
        ("/logs/slurm-%j.log", "/logs/slurm-%j.log"),
        ("/my logs/%job/slurm-%j.log", '"/my logs/%%job/slurm-%j.log"'),
        ('/a"b/slurm-%j.log', '"/a\\"b/slurm-%j.log"'),
    ],
)
def test_the_path_of_a_jobs_log_is_one_word_without_symbols(log, pattern):
    assert log_pattern(log) == pattern


def test_the_script_is_one_that_bash_takes(tmp_path):
    text = script(plan_of(), ("/a python", "-m", "dtfctl"), ("it's.yaml",), "/logs/%j")
    path = tmp_path / "job.sh"
    path.write_text(text)
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert """'/a python' -m dtfctl up 'it'"'"'s.yaml' --attach""" in text


def played(tmp_path, body, text=TEXT):
    """A dtfctl that a script plays, run by the batch script; its calls."""
    program = tmp_path / "dtfctl"
    program.write_text(f'#!/bin/bash\necho "$@" >> {tmp_path}/calls\n{body}\n')
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/bash\necho scontrol "$@" >> {tmp_path}/calls\n')
    for path in (program, scontrol):
        path.chmod(0o700)
    job = tmp_path / "job.sh"
    job.write_text(script(plan_of(text), (str(program),), ("f",), "x", folder=str(tmp_path)))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "12"}
    done = subprocess.run(["bash", str(job)], env=environment, timeout=60)
    return done.returncode, (tmp_path / "calls").read_text().splitlines()


def test_the_job_ends_as_the_cluster_does(tmp_path):
    assert played(tmp_path, "exit 10") == (10, ["up f --attach --progress plain"])


def test_slurms_notice_ends_the_cluster_in_order_and_queues_it_again(tmp_path):
    body = f"""
    if [ "$1" = up ]; then
        trap 'exit 1' TERM
        kill -USR1 $PPID
        while [ ! -e {tmp_path}/down ]; do sleep 0.01; done
        exit 1
    fi
    touch {tmp_path}/down
    """
    status, calls = played(tmp_path, body)
    assert status == 0 and calls[1:] == ["down trial", "scontrol requeue 12"]


@pytest.mark.parametrize(
    ("left_s", "ends", "is_queued"), [(100, 1, True), (100, 2, False), (100_000, 2, True), (None, 2, True)]
)
def test_a_job_is_queued_again_at_its_time_limit_so_often_only(tmp_path, left_s, ends, is_queued):
    """One end by the limit is allowed; `ends` are those with the present one."""
    end = f'date -d "+{left_s} seconds" +%Y-%m-%dT%H:%M:%S' if left_s else "echo N/A"
    (tmp_path / "squeue").write_text(f"#!/bin/bash\n{end}\n")
    (tmp_path / "squeue").chmod(0o700)
    (tmp_path / "limits-12").write_text("\n" * (ends - 1))
    body = f"""
    if [ "$1" = up ]; then
        trap 'exit 1' TERM
        kill -USR1 $PPID
        while [ ! -e {tmp_path}/down ]; do sleep 0.01; done
        exit 1
    fi
    touch {tmp_path}/down
    """
    text = TEXT.replace("nodes: 2,", "nodes: 2, requeues: 1,")
    status, calls = played(tmp_path, body, text)
    assert ("scontrol requeue 12" in calls) is is_queued and status == (0 if is_queued else 1)


def test_a_training_that_ends_at_the_notice_has_its_own_status_and_is_not_queued_again(tmp_path):
    body = f"""
    if [ "$1" = up ]; then
        kill -USR1 $PPID
        while [ ! -e {tmp_path}/down ]; do sleep 0.01; done
        exit 0
    fi
    touch {tmp_path}/down
    sleep 0.5
    """
    assert played(tmp_path, body) == (0, ["up f --attach --progress plain", "down trial"])


def test_the_time_of_the_notice_is_that_of_the_files_option():
    assert notice_s(options(plan_of(), "log")) == 120
    text = TEXT.replace("--partition=gpu", '"--signal=B:USR1@600"')
    assert notice_s(options(plan_of(text), "log")) == 600


@pytest.mark.parametrize(
    ("words", "why", "is_connection"),
    [
        (
            "srun: error: Unable to create step for job 12: Invalid job id specified\n",
            "Unable to create step for job 12: Invalid job id specified",
            True,
        ),
        ("Traceback\nOSError: no\nsrun: error: node1: task 0: Exited with exit code 1\n", "OSError: no", False),
        ("", "srun exits with status 1", False),
    ],
)
def test_sruns_words_are_told_from_the_commands(words, why, is_connection):
    assert explain(words, 1) == (why, is_connection)


def test_a_step_inherits_nothing_of_the_jobs_own_numbers():
    found = own_environment({"SLURM_CONF": "c", "SLURM_NTASKS": "9", "SRUN_X": "1", "PATH": "/bin"})
    assert found == {"SLURM_CONF": "c", "PATH": "/bin"}


def test_what_a_person_types_is_a_step_too():
    pipe = SlurmPipe(SlurmSettings("12"), HostPlan("n1", "n1", "python3", "/", via=SLURM, target="n1"))
    assert pipe.by_hand("df", "-h") == "srun --jobid=12 --overlap -N1 -n1 -w n1 df -h"


def commands(tmp_path, monkeypatch, **bodies):
    for name, body in bodies.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_job_is_submitted_and_known_again(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, sbatch="echo '12;cluster'", squeue="echo '12|PENDING|Priority|n/a'")
    job = slurm_job.submit(tmp_path, "#!/bin/bash\n", "srun", "/f.yaml")
    assert str(job) == "job 12 of Slurm is PENDING, Priority"
    assert slurm_job.noted(tmp_path) == slurm_job.Submitted("12", "srun", "/f.yaml")


@pytest.mark.parametrize(("nodes", "is_lost"), [("n1\nn2", False), ("n2\nn3", True)])
def test_a_job_without_its_first_node_has_lost_its_script(tmp_path, monkeypatch, nodes, is_lost):
    commands(tmp_path, monkeypatch, squeue="echo '12|RUNNING|None|n1|n[..]'", scontrol=f"echo '{nodes}'")
    assert slurm_job.has_lost_script(slurm_job.look("12")) is is_lost
    commands(tmp_path, monkeypatch, squeue="echo '12|PENDING|Resources|n/a|'", scontrol="exit 1")
    assert not slurm_job.has_lost_script(slurm_job.look("12"))


@pytest.mark.parametrize(
    ("boot", "node", "has_supervisor", "is_over", "is_lost"),
    [
        ("another", "n1", False, False, True),
        (boot_id(), "n1", False, False, False),
        ("another", "n2", False, False, False),
        ("another", "n1", True, False, False),
        ("another", "n1", False, True, False),
    ],
)
def test_a_first_node_that_was_restarted_has_lost_the_script(
    tmp_path, monkeypatch, boot, node, has_supervisor, is_over, is_lost
):
    commands(tmp_path, monkeypatch, squeue="echo '12|RUNNING|None|n1|n[1-2]'")
    (tmp_path / "job").write_text("12\nsrun\n/f.yaml\n")
    run = SimpleNamespace(boot=boot, is_over=is_over, plan=SimpleNamespace(slurm=SlurmSettings("12")))
    cluster = SimpleNamespace(
        paths=ClusterPaths(tmp_path), find=lambda: (run, {}), has_supervisor=lambda: has_supervisor
    )
    assert (job_of_restarted_node(cluster, node) is not None) is is_lost


def test_a_job_that_slurm_has_forgotten_has_no_state(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, squeue="echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert slurm_job.look("12") == slurm_job.Job("12")


BANNER = "Welcome to the cluster!\\n\\nMaintenance on 1 May | be ready"


@pytest.mark.parametrize(
    ("sbatch", "number"),
    [
        (f"printf '{BANNER}\\n12;cluster\\n'", "12"),
        (f"printf '12\\n{BANNER}\\n'", "12"),
        ("echo Submitted batch job 77 on cluster b", "77"),
    ],
)
def test_the_number_of_a_job_is_found_in_what_a_sites_own_sbatch_says(tmp_path, monkeypatch, sbatch, number):
    commands(tmp_path, monkeypatch, sbatch=sbatch, squeue=f"printf '{BANNER}\\n{number}|RUNNING|None|n1|n1\\n'")
    assert slurm_job.submit(tmp_path, "", "srun", "f") == slurm_job.Job(number, "RUNNING", "None", "n1", False, "n1")
    assert slurm_job.noted(tmp_path).number == number


@pytest.mark.parametrize("sbatch", ["true", f"printf '{BANNER}'", "printf '\\377\\000'"])
def test_an_answer_of_sbatch_without_a_number_is_told_in_one_line(tmp_path, monkeypatch, sbatch):
    commands(tmp_path, monkeypatch, sbatch=sbatch)
    with pytest.raises(HostsUnusable, match="^sbatch answers .*without the number of a job; .*scancel NUMBER$"):
        slurm_job.submit(tmp_path, "", "srun", "f")
    assert slurm_job.noted(tmp_path) is None


def test_a_job_that_was_submitted_is_known_even_if_squeue_fails(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, sbatch="echo 12", squeue="echo 'Unable to contact controller' >&2; exit 1")
    job = slurm_job.submit(tmp_path, "", "srun", "f")
    assert str(job).startswith("job 12 of Slurm is submitted, squeue: Unable to contact controller")


def test_a_job_that_cannot_be_noted_is_cancelled(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, sbatch="echo 12", scancel=f'echo "$@" > {tmp_path}/cancelled')
    (tmp_path / "job").mkdir()
    with pytest.raises(IsADirectoryError):
        slurm_job.submit(tmp_path, "", "srun", "f")
    assert (tmp_path / "cancelled").read_text() == "12\n"


SHOWN = "JobId=12 JobName=t Restarts=0 JobState={} Reason=None NodeList=n[1-2] BatchHost=n1"


@pytest.mark.parametrize(
    ("squeue", "scontrol", "state"),
    [
        ("true", f"echo '{SHOWN.format('RUNNING')}'", "RUNNING"),
        (f"printf '{BANNER}'", f"printf '{BANNER}\\n{SHOWN.format('PENDING')}\\n'", "PENDING"),
        ("echo 12", f"echo '{SHOWN.format('COMPLETED')}'", ""),
        ("true", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", ""),
        ("true", "true", ""),
    ],
)
def test_a_job_that_squeue_leaves_out_has_ended_only_if_scontrol_says_so(
    tmp_path, monkeypatch, squeue, scontrol, state
):
    commands(tmp_path, monkeypatch, squeue=squeue, scontrol=scontrol)
    assert slurm_job.look("12").state == state
    commands(tmp_path, monkeypatch, scontrol="echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(HostsUnusable, match="Unable to contact"):
        slurm_job.look("12")


@pytest.mark.parametrize(
    "variables",
    [
        {"SLURM_JOB_NODELIST": "n[1-"},
        {"SLURM_JOB_NODELIST": ""},
        {},
        {"SLURM_JOB_NODELIST": "n1", "SLURM_RESTART_COUNT": "x"},
        {"SLURM_HET_SIZE": "x"},
        {"SLURM_HET_SIZE": "1000000000"},
    ],
)
def test_an_allocation_whose_variables_make_no_sense_is_told_with_what_to_do(variables):
    with pytest.raises(ConfigError, match=r"in job 12 of Slurm \(SLURM_JOB_ID\), .*; unset SLURM_JOB_ID to submit"):
        plan_of(variables={"SLURM_JOB_ID": "12", **variables})


def test_what_the_user_prefers_to_see_changes_no_answer(monkeypatch):
    assert own_environment({"SQUEUE_STATES": "PENDING", "SCANCEL_INTERACTIVE": "1"}) == {}


def test_sbatchs_refusal_comes_in_its_own_words(tmp_path, monkeypatch):
    words = "sbatch: error: invalid partition specified: nowhere"
    commands(tmp_path, monkeypatch, sbatch=f"echo '{words}' >&2; exit 1")
    with pytest.raises(HostsUnusable, match="^sbatch: invalid partition specified: nowhere; see: sinfo$"):
        slurm_job.submit(tmp_path, "", "srun", "f")


def test_a_quota_is_told_with_its_limit_and_what_shows_it(tmp_path, monkeypatch):
    words = (
        "sbatch: error: AssocMaxSubmitJobLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size "
        "and/or time limits)"
    )
    (tmp_path / "words").write_text(words)
    commands(tmp_path, monkeypatch, sbatch=f"cat {tmp_path}/words >&2; exit 1")
    with pytest.raises(HostsUnusable) as refused:
        slurm_job.submit(tmp_path, "", "srun", "f")
    assert str(refused.value) == (
        "sbatch: AssocMaxSubmitJobLimit; Batch job submission failed: Job violates accounting/QOS policy (job submit "
        "limit, user's size and/or time limits); see: sacctmgr show assoc user=$USER"
    )


def test_an_sbatch_that_keeps_trying_is_told_with_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_job, "ANSWER_S", 0.5)
    words = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"
    commands(tmp_path, monkeypatch, sbatch=f"echo '{words}' >&2; exec sleep 100")
    with pytest.raises(HostsUnusable, match="within 0.5s .Slurm temporarily unable to accept job, sleeping and retry"):
        slurm_job.submit(tmp_path, "", "srun", "f")


@pytest.mark.parametrize(
    ("state", "is_over"), [("RUNNING", False), ("SUSPENDED", False), ("COMPLETING", True), ("PENDING", True)]
)
def test_a_host_is_unreachable_for_ever_only_when_its_job_has_ended(tmp_path, monkeypatch, state, is_over):
    commands(tmp_path, monkeypatch, squeue=f"echo '12|{state}|None|n1'; touch {tmp_path}/asked")
    ends, taken = [], []

    async def look():
        allocation = Allocation("12", taken.append, lambda why, _: ends.append(why), lambda task: True)
        allocation.take(Unreachable("n1", "why"))
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)

    asyncio.run(look())
    assert taken == [Unreachable("n1", "why")] and (tmp_path / "asked").exists()
    assert ends == ([f"job 12 of Slurm is {state}"] if is_over else [])


@pytest.mark.parametrize(
    ("squeue", "is_cut_off", "end"),
    [
        ("exit 1", True, ("neither Slurm nor another node of job 12 answered for 0.05s", False)),
        ("exit 1", False, None),
        ("echo '12|RUNNING|None|n1'", True, None),
        ("echo '12|RUNNING|None|n3'", True, ("job 12 of Slurm was queued again, and runs on n3", True)),
    ],
)
def test_a_first_node_that_is_cut_off_ends_its_part_of_the_job(tmp_path, monkeypatch, squeue, is_cut_off, end):
    monkeypatch.setattr("dtfctl.supervise.allocation.LOOK_AGAIN_S", 0.01)
    commands(tmp_path, monkeypatch, squeue=squeue)
    ends = []

    async def look():
        allocation = Allocation(
            "12", lambda event: None, lambda *end: ends.append(end), bool, lambda: is_cut_off, lambda: 0.05, "n1"
        )
        allocation.take(Unreachable("n2", "why"))
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)

    asyncio.run(look())
    assert ends == ([] if end is None else [end])


def test_slurm_is_asked_why_it_ends_a_job(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, squeue="echo '12|COMPLETING|TimeLimit|n1'")
    assert asyncio.run(why_signalled("12")) == "job 12 of Slurm has reached its time limit"
    commands(tmp_path, monkeypatch, squeue="echo '12|COMPLETING|None|n1'")
    assert "cancelled, queued again, or at its time limit" in asyncio.run(why_signalled("12"))


def test_the_end_of_a_task_waits_for_the_end_of_its_job(monkeypatch):
    monkeypatch.setattr("dtfctl.supervise.allocation.BELIEVED_AFTER_S", 0.01)
    taken = []
    alive, asked = Exited("ps:0", 1, Exit(1.0, signal=15)), Exited("ps:1", 1, Exit(1.0, signal=15))

    async def look():
        allocation = Allocation("12", taken.append, lambda why, _: None, lambda task: task == "ps:0")
        allocation.take(alive)
        allocation.take(asked)
        assert taken == [asked]
        while len(taken) < 2:
            await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(look(), 60))
    assert taken == [asked, alive]


def test_a_machine_without_slurm_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostsUnusable, match="sbatch cannot be run: .*; engine: slurm needs"):
        slurm_job.submit(tmp_path, "", "srun", "f")
