"""From what tasks answer to a trace, its critical path, its findings and its file: pure functions."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace

import pytest

from dtfctl.commands.tracing import write_whole
from dtfctl.errors import TraceUnreadable
from dtfctl.trace.critical_path import COMPUTE, FEED, OVERHEAD, SERVE, TRANSFER, WAIT, critical_path
from dtfctl.trace.documents import TRACED, trace_of
from dtfctl.trace.explain import explain, lines
from dtfctl.trace.model import Client, Clock, Edge, Node, Step, Trace
from dtfctl.trace.perfetto import document, explanation_document, explanation_of
from dtfctl.wire.messages import BadMessage

W, PS, PS1 = "worker:0", "ps:0", "ps:1"


def moved(tensor, source, sent, destination, received, size, since=0.0):
    """A tensor that is sent at one time and received at another, by a task that waits for it `since`."""
    edge = Edge(tensor, source, destination)
    return (
        Node(source, f"{tensor}_S", "_Send", sent, sent + 1, 0, (), edge),
        Node(destination, f"{tensor}_R", "_Recv", since, received, size, (), edge),
    )


def a_step(pull=10.0, compute=40.0, push=10.0, apply=20.0, size=1000, client=W, ps=PS, name="w", number=1):
    """A worker pulls a variable, computes a gradient, pushes it, and the ps applies it; times in microseconds."""
    read = Node(ps, name, "VariableV2", 2, 3)
    send, receive = moved(f"edge_0_{name}/read", ps, 4, client, 4 + pull, size)
    began = receive.end_us
    feed = Node(client, "_recv_x_0", "_Recv", 0, 2, 64, (), Edge("x:0", client, client))
    work = Node(client, "MatMul", "MatMul", began, began + compute, size, ("_recv_x_0", receive.name))
    push_send, push_receive = moved("edge_1_grad", client, work.end_us, ps, work.end_us + push, size)
    push_send = replace(push_send, inputs=("MatMul",))
    begun = push_receive.end_us
    update = Node(ps, "ApplyAdam", "ApplyAdam", begun, begun + apply, 0, (name, "m", push_receive.name))
    nodes = (feed, read, send, receive, work, push_send, push_receive, update)
    return Step(client, number, ("train",), 0.0, update.end_us + 5, nodes)


def kinds(step):
    found = {}
    for part in critical_path(step):
        found[part.kind] = found.get(part.kind, 0) + part.duration_us
    return found


def test_the_path_leads_from_the_update_over_the_gradient_to_the_pulled_variable():
    step = a_step()
    found = critical_path(step)
    assert [part.kind for part in found if part.kind != OVERHEAD] == [SERVE, TRANSFER, COMPUTE, TRANSFER, SERVE]
    assert [part.task for part in found if part.kind == TRANSFER] == [PS, W]
    assert {part.variable for part in found if part.kind == TRANSFER} == {"w"}
    assert (found[0].start_us, found[-1].end_us) == (step.start_us, step.end_us)
    assert all(former.end_us == part.start_us for former, part in zip(found, found[1:], strict=False))
    assert kinds(step)[COMPUTE] == 40 and kinds(step)[TRANSFER] == 20


def test_a_step_that_only_computes_begins_with_its_feed():
    feed = Node(W, "_recv_x_0", "_Recv", 0, 6, 64, (), Edge("x:0", W, W))
    step = Step(W, 1, (), 0.0, 20.0, (feed, Node(W, "Add", "AddV2", 6, 15, 4, ("_recv_x_0",))))
    assert kinds(step) == {FEED: 6, COMPUTE: 9, OVERHEAD: 5}


def test_what_waits_for_others_is_no_work():
    step = Step(W, 1, (), 0.0, 20.0, (Node(PS, "sync_token_q_Dequeue", "QueueDequeueV2", 1, 19),))
    assert kinds(step)[WAIT] == 18


def test_operations_of_one_task_that_share_no_tensor_come_after_one_another():
    nodes = (Node(W, "a", "MatMul", 0, 10), Node(W, "b", "MatMul", 10, 30), Node(W, "c", "Add", 30, 31, 0, ("a",)))
    assert kinds(Step(W, 1, (), 0.0, 31.0, nodes)) == {COMPUTE: 31}


@pytest.mark.parametrize("nodes", [(), (Node(W, "late", "Add", 50, 60),), (Node(W, "a", "Add", 0, 9, 0, ("a",)),)])
def test_odd_steps_have_a_path_as_long_as_they_are(nodes):
    path = critical_path(Step(W, 1, (), 0.0, 20.0, nodes))
    assert sum(part.duration_us for part in path) == pytest.approx(20.0)


def test_clocks_that_disagree_give_no_part_of_negative_length():
    send, receive = moved("t", PS, 30, W, 20, 8)
    step = Step(W, 1, (), 0.0, 25.0, (send, receive, Node(W, "Add", "AddV2", 20, 24, 4, (receive.name,))))
    path = critical_path(step)
    assert all(part.duration_us > 0 for part in path) and sum(part.duration_us for part in path) == 25.0


def found_in(*clients, helpers=(PS,)):
    explanation = explain(Trace("trial", clients, helpers=helpers))
    return {(finding.what, finding.task, finding.variable) for finding in explanation.findings}, explanation


def test_a_worker_that_computes_most_of_the_time_needs_more_workers():
    found, explanation = found_in(Client(W, (a_step(compute=900.0),)))
    assert found == {("compute", W, "")}
    text = "\n".join(lines(explanation))
    assert "worker:0: a step takes" in text and "MatMul" in text and "try: more workers" in text


def test_a_variable_that_is_most_of_what_moves_is_named():
    step = a_step(pull=4000.0, push=4000.0, apply=900.0, size=8 << 20, name="embedding")
    assert found_in(Client(W, (step,)))[0] == {("large variable", W, "embedding")}


def test_a_hot_parameter_server_is_named_with_its_variable():
    step = a_step(pull=4000.0, push=4000.0, apply=900.0, size=8 << 20)
    found, explanation = found_in(Client(W, (step,)), helpers=(PS, PS1))
    assert ("hot ps", PS, "w") in found
    (hot,) = (finding for finding in explanation.findings if finding.what == "hot ps")
    assert "(ps:1 0 B and 0%)" in hot.words and "partition w" in hot.advice


def test_a_parameter_server_with_most_bytes_is_hot_however_long_the_others_take():
    step = a_step(pull=4000.0, push=400.0, apply=900.0, size=8 << 20)
    for late_us in (0.0, 3000.0, 20000.0):
        other = Node(PS1, "other/ApplyAdam", "ApplyAdam", step.end_us - 1.0, step.end_us + late_us, 4)
        beside = moved("edge_9_other/read", PS1, 0.0, W, 9.0 + late_us, 4)
        late = Step(W, 1, (), step.start_us, step.end_us + late_us, (*step.nodes, *beside, other))
        found, explanation = found_in(Client(W, (late,)), helpers=(PS, PS1))
        assert ("hot ps", PS, "w") in found, "\n".join(lines(explanation))


def test_a_parameter_server_with_most_of_few_bytes_is_hot_only_if_it_works_long():
    small = a_step(compute=3.0, pull=50.0, push=50.0)
    assert found_in(Client(W, (small,)), helpers=(PS, PS1))[0] == {("small batch", W, "")}
    assert ("hot ps", PS, "w") in found_in(Client(W, (a_step(apply=5000.0),)), helpers=(PS, PS1))[0]


def test_a_worker_slower_than_the_others_is_named():
    clients = [Client(f"worker:{number}", (a_step(client=f"worker:{number}"),)) for number in range(2)]
    slow = Client("worker:2", (a_step(client="worker:2", compute=400.0),))
    assert ("slow worker", "worker:2", "") in found_in(*clients, slow)[0]
    dawdling = Client("worker:2", (a_step(client="worker:2"),), pause_s=0.001)
    found, explanation = found_in(*clients, dawdling)
    assert {("slow worker", "worker:2", ""), ("input", "worker:2", "")} <= found
    assert "outside of the session" in "\n".join(lines(explanation))


def test_steps_with_little_to_do_want_a_larger_batch():
    assert ("small batch", W, "") in found_in(Client(W, (a_step(compute=3.0, pull=50.0, push=50.0),)))[0]


def test_parameter_servers_that_work_most_of_the_time_are_too_few():
    found, explanation = found_in(Client(W, (a_step(apply=900.0),)))
    assert ("serving", "worker:0", "") in found
    assert "there is 1" in explanation.findings[0].advice


def test_a_step_that_waits_in_a_queue_says_in_which():
    nodes = (Node(PS, "sync_rep/token_q_Dequeue", "QueueDequeueV2", 0, 900),)
    found, explanation = found_in(Client(W, (Step(W, 1, (), 0.0, 1000.0, nodes),)))
    assert ("waiting", W, "") in found
    waiting = next(finding for finding in explanation.findings if finding.what == "waiting")
    assert "token_q_Dequeue" in waiting.words and "slowest worker" in waiting.advice


def test_nothing_traced_and_nothing_wrong_are_words_too():
    assert lines(explain(Trace("trial", (), missing=("worker:1",))))[-1] == "nothing was traced"
    assert "worker:1: gave no trace" in lines(explain(Trace("trial", (), missing=("worker:1",))))[0]


DEVICES = [
    {
        "name": "/job:worker/replica:0/task:0/device:CPU:0",
        "nodes": [
            ["w_R", "_Recv", 1_000_100, 50, 400, [], "edge_0_w/read", "/job:ps/replica:0/task:0/device:CPU:0",
             "/job:worker/replica:0/task:0/device:CPU:0"],
            ["Add", "AddV2", 1_000_150, 50, 400, ["w_R:0", "^init"]],
        ],
    },
    {
        "name": "/job:ps/replica:0/task:0/device:CPU:0",
        "nodes": [
            ["w_S", "_Send", 6_000_110, 5, 0, ["w"], "edge_0_w/read", "/job:ps/replica:0/task:0/device:CPU:0",
             "/job:worker/replica:0/task:0/device:CPU:0"],
        ],
    },
]  # fmt: skip


def a_plan(**changes):
    run = {"start_us": 1_000_000.0, "end_us": 1_000_300.0, "devices": DEVICES}
    return {
        "fetches": ["train"], "is_main": True, "untraced_runs": 4, "untraced_s": 0.001, "pauses": 2, "paused_s": 0.0005,
        "runs": [run], **changes,
    }  # fmt: skip


def an_answer(*plans):
    return json.loads(json.dumps({"number": 7, "is_fulfilled": True, "plans": list(plans)}))


def test_times_of_other_hosts_are_brought_to_the_clock_here():
    answer = an_answer(a_plan())
    TRACED(answer, "")
    trace = trace_of("trial", {W: answer}, [Clock(PS, "b", offset_us=5_000_000.0), Clock(W, "a")])
    (step,) = trace.steps
    send = next(node for node in step.nodes if node.is_send)
    assert (send.task, send.start_us, send.edge) == (PS, 1_000_110.0, Edge("edge_0_w/read", PS, W))
    assert (trace.clients[0].untraced_s, trace.clients[0].pause_s) == (0.00025, 0.00025)
    assert [part.kind for part in critical_path(step) if part.kind != OVERHEAD] == [TRANSFER, COMPUTE]


def test_the_steps_of_the_training_are_those_that_are_many_and_long():
    seldom = a_plan(fetches=["save"], untraced_runs=0, untraced_s=0.0)
    thread = a_plan(fetches=["enqueue"], is_main=False, untraced_runs=1000, untraced_s=10.0)
    trace = trace_of("trial", {W: an_answer(seldom, a_plan(), thread)}, [])
    assert [step.fetches for step in trace.steps if step.is_main] == [("train",)]
    assert len(trace.steps) == 3


@pytest.mark.parametrize(
    "broken",
    [
        None, [], {"number": 1}, {"number": 1, "is_fulfilled": True, "plans": [1]},
        an_answer(a_plan(runs=[{"start_us": 0, "end_us": 1, "devices": [{"name": "x", "nodes": [["a"]]}]}])),
        an_answer(a_plan(untraced_s=-1.0)),
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_refused(broken):
    with pytest.raises(BadMessage):
        TRACED(broken, "")


def test_the_file_has_tasks_steps_arrows_and_the_path():
    trace = trace_of("trial", {W: an_answer(a_plan())}, [Clock(PS, "b", 5_000_000.0), Clock(W, "a")])
    found = json.loads(json.dumps(document(trace, explain(trace))))
    events = found["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} == {"critical path", PS, W}
    ends = [event for event in events if event.get("cat") == "message"]
    assert [event["ph"] for event in ends] == ["s", "f"] and ends[0]["id"] == ends[1]["id"]
    assert min(event["ts"] for event in events if "ts" in event) == 0.0
    assert found["dtf"]["version"] == 1 and [step["client"] for step in found["dtf"]["steps"]] == [W]
    critical = [event["name"] for event in events if event.get("args", {}).get("critical")]
    assert {"AddV2", "_Recv"} <= set(critical)


def test_an_explanation_survives_its_way_through_a_file():
    trace = Trace("trial", (Client(W, (a_step(compute=900.0),)),), helpers=(PS,))
    explanation = explain(trace)
    assert explanation_of(json.loads(json.dumps(document(trace, explanation)))) == explanation
    assert json.loads(json.dumps(explanation_document(explanation)))["cluster"] == "trial"


@pytest.mark.parametrize("other", [None, [], {}, {"dtf": 1}, {"dtf": {"explanation": {"cluster": 3}}}])
def test_another_file_is_refused_in_words(other):
    with pytest.raises(TraceUnreadable, match="not a file of dtfctl trace"):
        explanation_of(other)


def test_a_pipe_or_device_must_be_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(str(tmp_path / "pipe"), "text")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    write_whole(str(tmp_path / "file"), "text")
    assert sorted(os.listdir(tmp_path)) == ["file", "pipe"]
