"""What is wrong with a cluster, said from a snapshot alone: the five cases that stop most trainings, and others."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dtfctl.logs.progress import Progress, Trend
from dtfctl.show import view
from dtfctl.show.diagnosis import Grade, Kind, findings, headline
from dtfctl.values.pace import TaskPace
from dtfctl.values.snapshot import Disk, HostView, Snapshot, TaskView


def a_task(name, state="running", **changes):
    known = (1, 0, 7, "localhost", "127.0.0.1:1", 60.0, None, None, "", "", "", "", 0.0)
    return replace(TaskView(name, state, state == "running", False, *known), **changes)


def a_cluster(*changed, **changes):
    tasks = {name: a_task(name) for name in ("ps:0", "ps:1", "worker:0", "worker:1", "worker:2")}
    tasks.update({task.name: task for task in changed})
    cluster = Snapshot(100.0, "trial", "f.yaml", "running", "", "", False, 0.0, (), tuple(tasks.values()), ())
    return replace(cluster, **changes)


def kinds(snapshot):
    return [finding.kind for finding in findings(snapshot)]


def test_nothing_is_wrong_with_a_cluster_that_trains():
    snapshot = a_cluster(progress=Progress(9, 1.0, 0.5))
    assert findings(snapshot) == []
    assert headline(snapshot, []) == "Nothing is wrong: 5 of 5 tasks are ready"


def test_a_hot_ps_is_named_with_its_share():
    snapshot = a_cluster(a_task("ps:0", cores=0.95), a_task("ps:1", cores=0.1))
    (finding,) = findings(snapshot)
    assert (finding.kind, finding.task, finding.grade) == (Kind.HOT_PS, "ps:0", Grade.WARNING)
    assert finding.words == "ps:0 is hot: it uses 95 % of a core, the other parameter servers 10 % on average"


@pytest.mark.parametrize("cores", [(0.95, 0.7), (0.3, 0.0), (0.95, None), (None, None)])
def test_parameter_servers_that_share_the_work_or_idle_are_not_hot(cores):
    assert kinds(a_cluster(a_task("ps:0", cores=cores[0]), a_task("ps:1", cores=cores[1]))) == []


def test_on_a_machine_that_others_use_too_a_ps_is_hot_with_fewer_cores():
    cluster = a_cluster(a_task("ps:0", cores=0.25), a_task("ps:1", cores=0.02))
    assert kinds(cluster) == []
    assert kinds(replace(cluster, strain=4.0)) == [Kind.HOT_PS]


def test_a_slow_worker_is_compared_with_the_others():
    rates = {"worker:0": 20.0, "worker:1": 4.0, "worker:2": 22.0}
    (finding,) = findings(a_cluster(*(a_task(name, steps_per_s=rate) for name, rate in rates.items())))
    assert (finding.kind, finding.task) == (Kind.SLOW_WORKER, "worker:1")
    assert finding.words == "worker:1 is slow: it makes 4 steps/s, the other workers 21"


def test_workers_of_like_rates_and_those_whose_rate_is_unknown_are_not_slow():
    assert kinds(a_cluster(a_task("worker:0", steps_per_s=10.0), a_task("worker:1", steps_per_s=7.0))) == []
    assert kinds(a_cluster(a_task("worker:0", steps_per_s=10.0))) == []


def test_a_worker_that_has_just_begun_is_not_called_slow():
    young = a_task("worker:1", steps_per_s=1.0, started_s=20.0)
    assert kinds(a_cluster(a_task("worker:0", steps_per_s=10.0), young)) == []


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_comes_first(loss):
    loop = a_task("worker:1", "backoff", failures=4, reason="exited with status 1")
    snapshot = a_cluster(loop, progress=Progress(70, 1.0, loss))
    assert kinds(snapshot) == [Kind.NAN_LOSS, Kind.CRASH_LOOP]
    assert "since step 70" in findings(snapshot)[0].words


def test_a_nan_that_ended_a_task_is_read_from_its_traceback():
    traceback = "Traceback (most recent call last):\ndtf.train.NanLossDuringTrainingError: NaN loss during training."
    (finding,) = findings(a_cluster(a_task("worker:0", "backoff", failures=1, traceback=traceback)))
    assert (finding.kind, finding.task) == (Kind.NAN_LOSS, "worker:0")


def test_a_full_disk_is_seen_before_anything_fails():
    (finding,) = findings(a_cluster(disks=(Disk("checkpoints", "/data", 1 << 20, 1 << 40),)))
    assert finding.kind == Kind.FULL_DISK and "/data (checkpoints) is full" in finding.words
    assert kinds(a_cluster(disks=(Disk("checkpoints", "/data", 1 << 30, 1 << 40),))) == []
    assert kinds(a_cluster(disks=(Disk("checkpoints", "/small", 20 << 20, 100 << 20),))) == []


def test_a_full_disk_of_another_host_is_read_from_the_task():
    traceback = "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device: 'model.ckpt'"
    task = a_task("worker:0", "backoff", failures=1, traceback=traceback, host="b")
    (finding,) = findings(a_cluster(task))
    assert (finding.kind, finding.advice) == (Kind.FULL_DISK, "make room on b: df -h")


def test_a_crash_loop_says_how_often_and_with_which_words():
    traceback = "Traceback (most recent call last):\n  File x\nValueError: no such column"
    (finding,) = findings(a_cluster(a_task("worker:2", "backoff", failures=3, traceback=traceback)))
    assert finding.kind == Kind.CRASH_LOOP
    begin = "worker:2 crashes in a loop: it failed 3 times and is started again each time: ValueError"
    assert finding.words.startswith(begin)
    given_up = a_cluster(a_task("worker:2", "gave-up", failures=5, reason="gave up"), outcome="failed", why="worker:2")
    assert kinds(given_up) == [Kind.CRASH_LOOP, Kind.FAILED]


def test_a_preempted_task_that_comes_back_is_no_crash_loop():
    assert kinds(a_cluster(a_task("ps:0", "backoff", restarts=9, reason="killed by SIGKILL from outside"))) == []


def test_what_a_task_has_got_over_is_not_wrong_any_more():
    traceback = "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device"
    assert kinds(a_cluster(a_task("worker:0", traceback=traceback, restarts=1))) == []


def test_stalled_tasks_and_hosts_out_of_reach_are_told_until_the_end():
    stalled = a_task("worker:0", stalled="its sessions run no step, though its server answers")
    host = HostView("b", "unreachable", 1.0, "no route")
    assert kinds(a_cluster(stalled, hosts=(host,))) == [Kind.HOST_AWAY, Kind.STALLED]
    assert kinds(a_cluster(stalled, hosts=(host,), is_over=True, outcome="stopped")) == []


def test_words_from_outside_stay_on_their_line():
    loop = a_task("worker:1", "backoff", failures=4, reason="exited\x1b[2J\nwith status 1")
    assert "\x1b" not in findings(a_cluster(loop))[0].words and "\n" not in findings(a_cluster(loop))[0].words


def test_the_headline_names_what_is_waited_for():
    assert headline(a_cluster(a_task("worker:0", "starting")), []) == "Waiting for worker:0: 4 of 5 tasks are ready"


def paced(name, cores=0.1, **pace):
    return a_task(name, cores=cores, pace=TaskPace(**pace))


def test_a_worker_that_waits_for_an_empty_queue_is_told_with_the_queue():
    server = paced("ps:0", waits_s={"input": 47.0, "done": 4000.0})
    worker = paced("worker:0", idle_s=44.0)
    (finding,) = findings(a_cluster(server, worker))
    assert (finding.kind, finding.task) == (Kind.STARVED, "worker:0")
    assert finding.words == (
        "worker:0 makes no step: for 47 s it waits for an element of the queue input on ps:0, and nobody fills it"
    )


def test_an_operation_that_waits_while_all_workers_make_steps_is_usual():
    assert kinds(a_cluster(paced("ps:0", waits_s={"done": 4000.0}), paced("worker:0", idle_s=0.5))) == []
    assert kinds(a_cluster(paced("ps:0", waits_s={"input": 2.0}), paced("worker:0", idle_s=60.0))) == []


def test_a_loss_that_grows_without_being_nan_is_told():
    grown = a_cluster(progress=Progress(80, 1.0, 5e4, Trend(first=2.3, best=1.9, now=4.8e4)))
    (finding,) = findings(grown)
    assert finding.kind == Kind.DIVERGING
    assert finding.words == "The loss grows: about 4.8e+04 at step 80, 2.3 at the beginning, 1.9 at best"
    for trend in (Trend(2.3, 0.1, 0.5), Trend(2.3, 2.2, 4.7), Trend(-5.0, -9.0, 3.0)):
        assert kinds(a_cluster(progress=Progress(80, 1.0, 1.0, trend))) == []


def test_the_worker_that_the_others_wait_for_is_told_though_all_rates_are_equal():
    waiting = {"runs_per_s": 2.0, "run_s": 0.49}
    others = [paced("worker:0", **waiting), paced("worker:2", **waiting)]
    (finding,) = findings(a_cluster(*others, paced("worker:1", runs_per_s=2.0, run_s=0.1)))
    assert (finding.kind, finding.task) == (Kind.STRAGGLER, "worker:1")
    assert "spends 400 ms of each step outside of session.run, they 10 ms" in finding.words
    (finding,) = findings(a_cluster(*others, paced("worker:1", 0.9, **waiting)))
    assert (finding.kind, finding.task) == (Kind.STRAGGLER, "worker:1")
    assert "worker:1 holds the others up: it uses 90 % of a core, they 10 % on average" in finding.words
    assert kinds(a_cluster(*others, paced("worker:1", 0.9, runs_per_s=3.0, run_s=0.3))) == []
    assert kinds(a_cluster(*others, paced("worker:1", 0.12, **waiting))) == []


def test_workers_of_nearly_the_same_rates_do_not_wait_for_each_other():
    busy = paced("worker:0", runs_per_s=116.0, run_s=0.0085)
    assert kinds(a_cluster(busy, paced("worker:1", runs_per_s=109.0, run_s=0.004))) == []
    # A pause of a few milliseconds is the scheduler's.
    assert kinds(a_cluster(busy, paced("worker:1", runs_per_s=116.0, run_s=0.0055))) == []


def test_checkpoints_that_take_a_good_part_of_the_time_are_told():
    (finding,) = findings(a_cluster(paced("worker:0", saves=3, save_s=4.0, save_part=0.4)))
    assert finding.kind == Kind.SLOW_SAVES
    assert finding.words == "Checkpoints take too long: worker:0 saves for 4.0 s each time, 40 % of its time"
    assert kinds(a_cluster(paced("worker:0", saves=1, save_s=4.0, save_part=0.4))) == []
    assert kinds(a_cluster(paced("worker:0", saves=9, save_s=0.2, save_part=0.4))) == []


def test_a_task_behind_a_slow_network_is_told_by_its_answers():
    near = [paced(name, answer_s=0.002) for name in ("ps:0", "worker:0", "worker:1", "worker:2")]
    (finding,) = findings(a_cluster(*near, paced("ps:1", answer_s=0.21)))
    assert (finding.kind, finding.task) == (Kind.SLOW_ANSWERS, "ps:1")
    assert finding.words == "ps:1 answers slowly: 210 ms for the smallest question, the other tasks 2 ms"
    assert kinds(a_cluster(*near, paced("ps:1", answer_s=0.008))) == []
    assert kinds(replace(a_cluster(*near, paced("ps:1", answer_s=0.21)), strain=8.0)) == []


def test_status_says_what_is_wrong_above_the_table():
    loop = a_task("worker:2", "backoff", failures=3, reason="exited with status 1")
    assert view.table(a_cluster(loop)).splitlines()[1].startswith("wrong: worker:2 crashes in a loop")


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory.", "The memory of a GPU of localhost is full"),
        ("ResourceExhaustedError: OOM when allocating tensor with shape[9] and type float on GPU:0", "memory of a GPU"),
        ("CUDA error: uncorrectable ECC error encountered", "A GPU of localhost failed under worker:0"),
        ("NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.", "A GPU of localhost failed under worker:0"),
        ("RuntimeError: no CUDA-capable device is detected", "worker:0 finds no usable GPU on localhost"),
    ],
)
def test_an_end_by_a_gpu_is_named(last, words):
    first = findings(a_cluster(a_task("worker:0", "failed", failures=1, traceback=f"Traceback\n{last}")))[0]
    assert (first.kind, first.task, first.grade) == (Kind.GPU, "worker:0", Grade.ERROR)
    assert words in first.words
