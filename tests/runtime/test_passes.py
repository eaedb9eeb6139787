"""prune, place, optimize and partition on small graphs written as text."""

from __future__ import annotations

import itertools

import pytest

from dtf.run.exchange import piggyback
from dtf.run.exchange.piggyback import GROUP_ATTR, PIGGYBACK_ATTR
from dtf.run.exchange.rendezvous import make_key
from dtf.run.interfaces import Device
from dtf.run.kernels import may_wait
from dtf.run.passes import Nodes, input_types
from dtf.run.passes.inline_functions import lower
from dtf.run.passes.optimize import optimize
from dtf.run.passes.partition import partition
from dtf.run.passes.place import choose_task, collect_requests, place
from dtf.run.passes.prune import prune
from dtf.run.passes.validate import check_edges
from dtf.wire import errors
from dtf.wire.pb import config_pb2, function_pb2, node_def_pb2

PS0, PS1, WORKER = "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0"
TASKS = [PS0, PS1, WORKER]
DEVICES = {task: [Device(f"{task}/device:CPU:0", incarnation=number + 1)] for number, task in enumerate(TASKS)}
FLOAT = 1
TYPE_ATTRS = {
    "Const": ["dtype"], "Placeholder": ["dtype"], "VariableV2": ["dtype"], "VarHandleOp": ["dtype"],
    "ReadVariableOp": ["dtype"], "NoOp": [], "RandomUniform": ["dtype"], "_Recv": ["tensor_type"],
}  # fmt: skip


def graph(text: str) -> Nodes:
    """Nodes from lines "name = Op(input, input) @device loc:other"; every dtype attribute is float32."""
    nodes: Nodes = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, rest = line.split(" = ")
        call, *extras = rest.split(") ") if ") " in rest else [rest.rstrip(")")]
        op, inputs = call.split("(")
        node = node_def_pb2.NodeDef(name=name, op=op, input=[i for i in inputs.split(", ") if i])
        for attr in TYPE_ATTRS.get(op, ["T"]):
            node.attr[attr].type = FLOAT
        for extra in " ".join(extras).split():
            if extra.startswith("@"):
                node.device = extra[1:]
            elif extra.startswith("loc:"):
                node.attr["_class"].list.s.append(b"loc:@" + extra[4:].encode())
            elif extra == "constant":
                node.attr["is_constant"].b = True
            elif extra.startswith("frame:"):
                node.attr["frame_name"].s = extra[6:].encode()
        nodes[name] = node
    return nodes


def placed(nodes: Nodes, **options: bool) -> Nodes:
    return place(nodes, collect_requests(nodes), TASKS, WORKER, DEVICES, **options)


def tasks_of(nodes: Nodes) -> dict[str, str]:
    requests = collect_requests(nodes)
    return {name: choose_task(requests[name], TASKS, WORKER) for name in nodes}


def describe(nodes: Nodes, client: Device | None = None) -> dict[str, list[str]]:
    """The partitions as text: one line per node."""
    return {
        task: [f"{node.name} = {node.op}({', '.join(node.input)})" for node in part.graph_def.node]
        for task, part in partition(nodes, DEVICES, client).items()
    }


# -- prune


def test_only_what_a_fetch_needs_is_kept():
    nodes = graph("a = Const()\nb = Const()\nc = Neg(a)\nd = Neg(b)")
    assert list(prune(nodes, [], ["c:0"], [])) == ["a", "c", "_send_c_0"]


def test_a_feed_takes_the_place_of_what_computed_it():
    nodes = graph("a = Const()\nb = Neg(a)\nc = Neg(b)")
    pruned = prune(nodes, ["b:0"], ["c:0"], [])
    assert list(pruned) == ["_recv_b_0", "c", "_send_c_0"]
    assert list(pruned["c"].input) == ["_recv_b_0"]
    assert list(nodes["c"].input) == ["b"], "the given graph must not change"


def test_a_target_that_joins_others_must_not_run_a_placeholder_that_is_fed():
    nodes = graph("x = Placeholder()\na = Const()\ninner = NoOp(^x)\nouter = NoOp(^a, ^inner)")
    assert sorted(prune(nodes, ["x:0"], [], ["outer"])) == ["a"]
    assert sorted(prune(nodes, ["x:0"], [], ["inner"])) == []
    assert sorted(prune(nodes, [], [], ["outer"])) == ["a", "x"]
    assert sorted(prune(nodes, ["x:0"], [], ["x"])) == ["x"]


def test_a_fed_placeholder_satisfies_control_dependencies_but_another_op_must_still_run():
    nodes = graph("x = Placeholder()\na = Const()\nb = Neg(a)\nt = NoOp(^x, ^b)\nc = Neg(a, ^x, ^b)")
    pruned = prune(nodes, ["x:0", "b:0"], [], ["c"])
    assert list(pruned["c"].input) == ["a", "^_recv_x_0", "^b"]


def test_a_feed_that_nothing_needs_has_no_endpoint():
    assert "_recv_x_0" not in prune(graph("x = Placeholder()\na = Const()"), ["x:0"], ["a:0"], [])


def test_a_target_that_only_waits_is_replaced_by_what_it_waits_for():
    nodes = graph("a = Const()\nb = Const()\ninner = NoOp(^a)\nouter = NoOp(^inner, ^b)")
    assert sorted(prune(nodes, [], [], ["outer"])) == ["a", "b"]


def test_a_loop_is_walked_once():
    nodes = graph(
        "a = Const()\ne = Enter(a) frame:f\nm = Merge(e, n)\ni = Neg(m)\nn = NextIteration(i)\nx = Exit(m)"
    )
    assert set(prune(nodes, [], [], ["x"])) == {"a", "e", "m", "i", "n", "x"}


@pytest.mark.parametrize(
    ("feeds", "fetches", "targets", "words"),
    [
        (["nope:0"], ["a:0"], [], "unable to find feed output nope:0"),
        ([], ["nope:0"], [], "nope:0"),
        ([], [], ["nope"], "nope"),
        ([], ["a:3"], [], "a:3: output index too large, must be < 1"),
        (["a:0"], ["a:0"], [], "both fed and fetched"),
        (["a:0", "a:0"], ["b:0"], [], "more than once"),
        ([], [], [], "at least one target"),
    ],
)
def test_names_that_do_not_fit_the_graph_are_named(feeds, fetches, targets, words):
    with pytest.raises(errors.OpError, match=words):
        prune(graph("a = Const()\nb = Neg(a)"), feeds, fetches, targets)


# -- place


def test_what_nobody_asked_for_goes_to_the_masters_own_task():
    assert tasks_of(graph("a = Const()"))["a"] == WORKER


def test_a_partial_device_means_the_first_task_that_fits():
    assert tasks_of(graph("a = Const() @/job:ps\nb = Const() @/task:1")) == {"a": PS0, "b": PS1}


def test_who_takes_a_reference_stands_with_the_variable_whatever_it_asked_for():
    nodes = graph("v = VariableV2() @/job:ps/task:1\nc = Const()\na = Assign(v, c) @/job:worker\nr = Identity(v)")
    assert tasks_of(nodes) == {"v": PS1, "c": WORKER, "a": PS1, "r": WORKER}


def test_who_takes_a_resource_stands_with_it():
    nodes = graph("h = VarHandleOp() @/job:ps/task:1\nr = ReadVariableOp(h)")
    assert tasks_of(nodes) == {"h": PS1, "r": PS1}


def test_colocation_goes_through_nodes_that_the_step_does_not_need():
    nodes = graph("v = VariableV2()\nslot = VariableV2() loc:v\nbeside = Const() @/job:ps/task:1 loc:v")
    requests = collect_requests(nodes)
    assert choose_task(requests["slot"], TASKS, WORKER) == PS1


def test_a_variable_that_has_been_used_stays_where_it_is():
    nodes = graph("v = VariableV2()\nlater = Const() @/job:ps/task:1 loc:v")
    requests = collect_requests(nodes, {"v": f"{WORKER}/device:CPU:0"})
    assert choose_task(requests["later"], TASKS, WORKER) == WORKER


def test_contradicting_colocation_is_an_error_only_for_who_needs_it():
    nodes = graph("v = Const() @/job:ps/task:0\nw = Const() @/job:ps/task:1 loc:v\nx = Const()")
    assert placed({"x": nodes["x"]})
    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot colocate nodes .* w.* v.*incompatible tasks: "):
        placed(nodes)


def test_an_unknown_task_is_named_with_the_known_ones():
    with pytest.raises(errors.InvalidArgumentError) as caught:
        placed(graph("a = Const() @/job:ps/task:7"))
    assert "Cannot assign a device for operation a" in caught.value.message
    assert "/job:ps/task:7" in caught.value.message and PS1 in caught.value.message
    assert caught.value.node_def.name == "a"


def test_soft_placement_replaces_a_device_that_the_task_does_not_have():
    nodes = graph("a = Const() @/job:ps/task:1/device:GPU:0")
    with pytest.raises(errors.InvalidArgumentError, match="GPU:0"):
        placed(nodes)
    assert placed(nodes, allow_soft_placement=True)["a"].device == f"{PS1}/device:CPU:0"


# -- optimize


def test_equal_stateless_nodes_become_one():
    nodes = graph("a = Placeholder()\nb = Neg(a)\nc = Neg(a)\nd = AddV2(b, c)")
    assert list(optimize(nodes)) == ["a", "b", "d"]
    assert list(optimize(nodes)["d"].input) == ["b", "b"]


def test_random_numbers_variables_and_placeholders_are_never_merged():
    nodes = graph(
        "s = Const()\nr = RandomUniform(s)\nq = RandomUniform(s)\nv = VariableV2()\nw = VariableV2()\n"
        "x = Placeholder()\ny = Placeholder()"
    )
    assert list(optimize(nodes)) == list(nodes)


def test_the_lowest_level_switches_optimization_off():
    options = config_pb2.GraphOptions()
    options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    nodes = graph("a = Placeholder()\nb = Neg(a)\nc = Neg(a)\nd = AddV2(b, c)")
    assert optimize(nodes, options) == nodes


def test_who_waits_for_a_joint_waits_for_what_it_joins():
    nodes = graph(
        "a = Placeholder()\nb = Placeholder()\nj = NoOp(^a, ^b)\nk = NoOp(^j)\nc = Neg(a, ^k)\nend = NoOp(^c, ^j)"
    )
    found = optimize(nodes)
    assert list(found) == ["a", "b", "c", "end"]
    assert list(found["c"].input) == ["a", "^a", "^b"]
    assert list(found["end"].input) == ["^c", "^a", "^b"]


def test_a_joint_of_many_for_many_stays():
    sources = "\n".join(f"a{i} = Placeholder()" for i in range(20))
    waits = ", ".join(f"^a{i}" for i in range(20))
    users = "\n".join(f"u{i} = NoOp(^j)" for i in range(20))
    nodes = graph(f"{sources}\nj = NoOp({waits})\n{users}")
    assert list(optimize(nodes)) == list(nodes)


def test_a_long_chain_of_joints_gives_way():
    chain = "\n".join(f"j{i} = NoOp(^{'a' if i == 0 else f'j{i - 1}'})" for i in range(3000))
    assert list(optimize(graph(f"a = Placeholder()\n{chain}"))) == ["a", "j2999"]


# -- partition


def test_an_edge_between_tasks_becomes_one_pair_for_all_its_consumers():
    nodes = placed(graph("v = RandomUniform(s) @/job:ps\ns = Placeholder() @/job:ps\na = Neg(v)\nb = Abs(v)"))
    assert describe(nodes) == {
        PS0: ["v = RandomUniform(s)", "s = Placeholder()", "v_S0 = _Send(v)"],
        WORKER: ["a = Neg(v_R0)", "v_R0 = _Recv()", "b = Abs(v_R0)"],
    }


def test_both_ends_of_an_edge_agree_on_the_key():
    nodes = placed(graph("v = Placeholder() @/job:ps\na = Neg(v)"))
    parts = partition(nodes, DEVICES)
    send = next(node for node in parts[PS0].graph_def.node if node.op == "_Send")
    recv = next(node for node in parts[WORKER].graph_def.node if node.op == "_Recv")
    for attr in ("tensor_name", "send_device", "recv_device", "send_device_incarnation", "client_terminated"):
        assert send.attr[attr] == recv.attr[attr]
    assert send.attr["tensor_name"].s == b"edge_0_v"
    assert send.attr["send_device_incarnation"].i == 1


def test_an_incarnation_above_the_signed_range_wraps_around():
    devices = {**DEVICES, PS0: [Device(f"{PS0}/device:CPU:0", incarnation=(1 << 64) - 5)]}
    parts = partition(placed(graph("v = Placeholder() @/job:ps\na = Neg(v)")), devices)
    send = next(node for node in parts[PS0].graph_def.node if node.op == "_Send")
    assert send.attr["send_device_incarnation"].i == -5


def test_a_control_edge_between_tasks_is_an_empty_tensor():
    nodes = placed(graph("a = Placeholder() @/job:ps\nb = NoOp(^a)"))
    assert describe(nodes) == {
        PS0: ["a = Placeholder()", "a_C0 = Const(^a)", "a_S0 = _Send(a_C0)"],
        WORKER: ["b = NoOp(^a_R0)", "a_R0 = _Recv()"],
    }


def test_a_control_edge_needs_no_message_where_a_value_of_the_node_goes_anyway():
    nodes = placed(graph("a = Placeholder() @/job:ps\nb = NoOp(^a)\nc = Neg(a)"))
    assert describe(nodes) == {
        PS0: ["a = Placeholder()", "a_S0 = _Send(a)"],
        WORKER: ["b = NoOp(^a_R0)", "c = Neg(a_R0)", "a_R0 = _Recv()"],
    }


def test_all_that_a_node_waits_for_on_one_task_is_one_message():
    nodes = placed(graph("a = Placeholder() @/job:ps\nb = Placeholder() @/job:ps\nt = NoOp(^a, ^b)"))
    assert describe(nodes) == {
        PS0: ["a = Placeholder()", "b = Placeholder()", "a_C0 = Const(^a, ^b)", "a_S0 = _Send(a_C0)"],
        WORKER: ["t = NoOp(^a_R0)", "a_R0 = _Recv()"],
    }


def test_a_constant_is_copied_instead_of_sent():
    nodes = placed(graph("c = Const()\na = Neg(c) @/job:ps"))
    assert describe(nodes) == {WORKER: ["c = Const()"], PS0: ["a = Neg(c)", "c = Const()"]}


def test_feeds_go_to_each_consumer_and_fetches_come_from_the_producer():
    nodes = graph("x = Placeholder()\na = Neg(x) @/job:ps\nb = Neg(x)")
    pruned = prune(nodes, ["x:0"], ["a:0", "b:0"], [])
    whole = collect_requests(nodes)
    parts = partition(place(pruned, whole, TASKS, WORKER, DEVICES), DEVICES)
    ps, worker = f"{PS0}/device:CPU:0", f"{WORKER}/device:CPU:0"
    assert parts[PS0].feeds == {"x:0": make_key(ps, 1, ps, "x:0")}
    assert parts[WORKER].feeds == {"x:0": make_key(worker, 3, worker, "x:0")}
    assert list(parts[PS0].fetches) == ["a:0"] and list(parts[WORKER].fetches) == ["b:0"]


def test_a_partial_run_is_fed_and_fetched_at_the_clients_device():
    nodes = graph("x = Placeholder()\na = Neg(x) @/job:ps")
    pruned = prune(nodes, ["x:0"], ["a:0"], [])
    client = DEVICES[WORKER][0]
    parts = partition(place(pruned, collect_requests(nodes), TASKS, WORKER, DEVICES), DEVICES, client)
    ps = f"{PS0}/device:CPU:0"
    assert parts[PS0].feeds == {"x:0": make_key(client.name, 3, ps, "x:0")}
    assert parts[PS0].fetches == {"a:0": make_key(ps, 1, client.name, "a:0")}


LOOP = """
a = Placeholder() @/job:worker
e = Enter(a) @/job:worker frame:f
m = Merge(e, n) @/job:worker
limit = Placeholder() @/job:worker
c = Enter(limit) @/job:worker frame:f constant
l = LoopCond(m) @/job:worker
s = Switch(m, l) @/job:worker
i = Neg(s:1) @/job:ps
j = Mul(i, c) @/job:ps
n = NextIteration(j) @/job:worker
x = Exit(s) @/job:worker
"""


def marks(text: str) -> dict[str, int | None]:
    """Which number each _Recv of the partitions got."""
    parts = partition(placed(graph(text)), DEVICES)
    piggyback.mark(parts, may_wait)
    return {
        node.name.rpartition("_")[0]: node.attr[GROUP_ATTR].i if GROUP_ATTR in node.attr else None
        for part in parts.values()
        for node in part.graph_def.node
        if node.op == "_Recv"
    }


def test_what_is_sent_without_a_wait_in_between_comes_together():
    found = marks(
        """
        v = VariableV2() @/job:ps
        w = VariableV2() @/job:ps
        a = Neg(v)
        b = Neg(w)
        c = Abs(a) @/job:ps
        d = Abs(b) @/job:ps
        """
    )
    assert found["v"] == found["w"] != found["a"]
    assert found["a"] == found["b"]


def test_what_waits_for_a_queue_does_not_come_with_what_does_not():
    found = marks(
        """
        q = FIFOQueueV2() @/job:ps
        x = QueueSizeV2(q) @/job:ps
        e = QueueDequeueV2(q) @/job:ps
        f = Neg(e) @/job:ps
        a = Abs(x)
        b = Abs(f)
        """
    )
    assert found["x"] != found["f"]


@pytest.mark.parametrize(
    ("more", "is_piggybacked"),
    [("", True), ("e = Neg(a)", False), ("e = Add(a, v)", False), ("e = Merge(a, b)", False)],
    ids=["only with the later one", "also by itself", "also with what is there", "or the later one"],
)
def test_what_is_wanted_only_with_something_later_of_the_same_task_is_piggybacked(more, is_piggybacked):
    parts = partition(
        placed(
            graph(
                """
                x = VariableV2()
                v = VariableV2() @/job:ps
                a = Neg(x)
                b = Neg(v)
                c = Add(a, b) @/job:ps
                """
                + (more and f"{more} @/job:ps")
            )
        ),
        DEVICES,
    )
    piggyback.mark(parts, may_wait)
    nodes = [node for part in parts.values() for node in part.graph_def.node if node.op == "_Send"]
    piggybacked = {node.name.rpartition("_")[0] for node in nodes if PIGGYBACK_ATTR in node.attr}
    assert piggybacked == ({"a"} if is_piggybacked else set())


def test_a_large_variable_and_its_update_come_alone():
    text = "v = VariableV2() @/job:ps\nw = VariableV2() @/job:ps\na = Neg(v)\nb = Abs(w)\n"
    nodes = placed(graph(text + "u = AssignAdd(v, b) @/job:ps"))
    nodes["v"].attr["shape"].shape.dim.add(size=1_000_000)
    parts = partition(nodes, DEVICES)
    piggyback.mark(parts, may_wait)
    found = {
        node.name.rpartition("_")[0]: GROUP_ATTR in node.attr
        for part in parts.values()
        for node in part.graph_def.node
        if node.op == "_Recv"
    }
    assert found == {"v": False, "w": True, "b": False}


def test_results_of_arithmetic_for_more_arithmetic_come_alone():
    """The second micro-batch is made while the first is worked on. Gradients are only applied, and come together."""
    found = marks(
        """
        x = Placeholder() @/job:worker
        y = Placeholder() @/job:worker
        a = MatMul(x, x) @/job:worker
        b = Neg(a) @/job:worker
        c = MatMul(y, y) @/job:worker
        d = Abs(b) @/job:ps
        e = MatMul(d, d) @/job:ps
        f = MatMul(c, c) @/job:ps
        g = MatMul(y, x) @/job:worker
        h = Neg(g) @/job:ps
        i = MatMul(x, y) @/job:worker
        j = Neg(i) @/job:ps
        """
    )
    assert found["b"] is None and found["c"] is None
    assert found["g"] == found["i"] is not None


def test_a_task_comes_round_with_a_loop_that_another_one_decides():
    assert describe(placed(graph(LOOP)))[PS0] == [
        "i = Neg(s_R0)",
        "s_R0 = _Recv(^f/_control_loop_0/merge)",
        "f/_control_loop_0 = Const()",
        "f/_control_loop_0/enter = Enter(f/_control_loop_0)",
        "f/_control_loop_0/merge = Merge(f/_control_loop_0/enter, f/_control_loop_0/next)",
        "l_R1 = _Recv(^f/_control_loop_0/merge)",
        "f/_control_loop_0/switch = Switch(f/_control_loop_0/merge, l_R1)",
        "f/_control_loop_0/next = NextIteration(f/_control_loop_0/switch:1)",
        "j = Mul(i, c)",
        "c = Enter(limit_R2)",
        "limit_R2 = _Recv()",
        "j_S3 = _Send(j)",
    ]


def test_the_task_that_decides_a_loop_receives_once_in_each_iteration_too():
    lines = describe(placed(graph(LOOP)))[WORKER]
    assert "j_R3 = _Recv(^f/_control_loop_1/merge)" in lines
    assert "f/_control_loop_1/switch = Switch(f/_control_loop_1/merge, l)" in lines


def test_a_loop_inside_of_a_loop_is_entered_from_the_control_loop_of_the_outer_one():
    inner = LOOP.replace("frame:f", "frame:g").replace("a = Placeholder", "a0 = Placeholder")
    outer = "a = Identity(s0:1)\ne0 = Enter(a0) frame:f\nm0 = Merge(e0, n0)\nl0 = LoopCond(m0)\ns0 = Switch(m0, l0)\n"
    nodes = placed(graph(outer + inner + "n0 = NextIteration(x)\nx0 = Exit(s0)"))
    lines = describe(nodes)[PS0]
    assert "f/g/_control_loop_1 = Const(^f/_control_loop_0/merge)" in lines
    assert "l0_R1 = _Recv(^f/_control_loop_0/merge)" in lines


def test_a_control_edge_from_a_branch_is_dead_with_it_on_a_tensorflow_worker_too():
    nodes = graph("p = Placeholder()\ns = Switch(p, p)\na = Neg(s:1)\nb = Const(^a) @/job:ps")
    lines = describe(placed(nodes))[PS0]
    assert "b = Const(^a_R0_I)" in [line.replace("_C0", "") for line in lines]


# -- lower


def library_with(name: str, arguments: dict[str, int], body: str, results: dict[str, str]) -> dict:
    """A library of one function: its nodes as `graph` reads them, its results by name, all of them floats."""
    function = function_pb2.FunctionDef()
    function.signature.name = name
    for argument, enum in arguments.items():
        function.signature.input_arg.add(name=argument, type=enum)
    for result, tensor in results.items():
        function.signature.output_arg.add(name=result, type=FLOAT)
        function.ret[result] = tensor
    function.node_def.extend(graph(body).values())
    return {name: function}


def call(op: str, name: str, inputs: list[str], types: list[int], **functions: str) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
    for key, function in functions.items():
        node.attr[key].func.name = function
    node.attr["Tin"].list.type.extend(types)
    node.attr["Tout"].list.type.append(FLOAT)
    return node


DOUBLE = library_with("double", {"x": FLOAT}, "y = Add(x, x) @/job:ps", {"z": "y:z:0"})


def test_the_body_of_a_function_that_names_a_task_takes_the_place_of_its_call():
    nodes = graph("a = Placeholder()\nc = NoOp()\nb = Neg(f)\nd = Neg(b, ^f)")
    nodes["f"] = call("PartitionedCall", "f", ["a", "^c"], [FLOAT], f="double")
    assert as_text(lower(nodes, DOUBLE)) == [
        "a = Placeholder()",
        "c = NoOp()",
        "b = Neg(f/double/y:0)",
        "d = Neg(b, ^f)",
        "f/double/y = Add(a, a, ^c)",
        "f = NoOp(^f/double/y)",
    ]
    assert lower(nodes, DOUBLE)["f/double/y"].device == "/job:ps"


def test_what_is_called_only_for_its_value_leaves_no_node_of_its_name():
    nodes = {**graph("a = Placeholder()"), "f": call("PartitionedCall", "f", ["a"], [FLOAT], f="double")}
    assert "f" not in lower(nodes, DOUBLE, targets=[])
    assert "f" in lower(nodes, DOUBLE, targets=["f"])


def test_a_body_without_a_place_of_its_own_stays_a_call():
    library = library_with("double", {"x": FLOAT}, "y = Add(x, x)", {"z": "y:z:0"})
    nodes = {**graph("a = Placeholder()"), "f": call("PartitionedCall", "f", ["a"], [FLOAT], f="double")}
    assert lower(nodes, library) == nodes


def test_a_function_that_calls_itself_keeps_the_call():
    library = library_with("again", {"x": FLOAT}, "y = Neg(x) @/job:ps", {"z": "g:output:0"})
    inner = call("PartitionedCall", "g", ["y:y:0"], [FLOAT], f="again")
    library["again"].node_def.append(inner)
    nodes = {**graph("a = Placeholder()"), "f": call("PartitionedCall", "f", ["a"], [FLOAT], f="again")}
    assert as_text(lower(nodes, library))[1:3] == [
        "f/again/y = Neg(a)",
        "f/again/g = PartitionedCall(f/again/y:0)",
    ]


def test_a_branch_takes_its_arguments_through_switches_and_what_has_none_waits_for_its_pivot():
    library = {
        **library_with("yes", {"x": FLOAT}, "y = Neg(x) @/job:ps", {"z": "y:y:0"}),
        **library_with("no", {"x": FLOAT}, "k = Const()", {"z": "k:output:0"}),
    }
    nodes = graph("p = Placeholder()\na = Placeholder()\nb = Neg(i)")
    nodes["i"] = call("If", "i", ["p", "a"], [FLOAT], then_branch="yes", else_branch="no")
    nodes["i"].attr["Tcond"].type = 10
    lines = as_text(lower(nodes, library, targets=[]))
    assert "i/_branch_0/_switch_0 = Switch(a, i/_pred)" in lines
    assert "i/_branch_0/yes/y = Neg(i/_branch_0/_switch_0:1)" in lines
    assert "i/_branch_1/no/k = Const(^i/_branch_1/_pivot)" in lines
    assert "i/_merge_0 = Merge(i/_branch_1/no/k:0, i/_branch_0/yes/y:0)" in lines
    assert "b = Neg(i/_merge_0)" in lines


def test_what_starts_nothing_in_a_call_inside_of_a_branch_waits_for_the_pivot_of_the_branch():
    library = {
        **library_with("inner", {"x": FLOAT}, "k = Const() @/job:ps", {"z": "k:output:0"}),
        **library_with("yes", {"x": FLOAT}, "n = NoOp()", {"z": "c:output:0"}),
    }
    library["yes"].node_def.append(call("PartitionedCall", "c", ["x"], [FLOAT], f="inner"))
    nodes = {**graph("p = Placeholder()\na = Placeholder()")}
    nodes["i"] = call("If", "i", ["p", "a"], [FLOAT], then_branch="yes", else_branch="yes")
    nodes["i"].attr["Tcond"].type = 10
    assert "i/_branch_0/yes/c/inner/k = Const(^i/_branch_0/_pivot)" in as_text(lower(nodes, library, targets=[]))


def as_text(nodes: Nodes) -> list[str]:
    return [f"{node.name} = {node.op}({', '.join(node.input)})" for node in nodes.values()]


def test_edges_of_one_session_have_names_of_their_own():
    # TensorFlow's workers find the kernels of _Send and _Recv by name: an old one would wait for another step's edge.
    nodes = placed(graph("v = Placeholder() @/job:ps\na = Neg(v) @/job:worker"))
    numbers = itertools.count()
    names = [
        {node.name for part in partition(nodes, DEVICES, None, numbers).values() for node in part.graph_def.node}
        for _ in range(2)
    ]
    assert names[0] & names[1] == {"v", "a"}


def test_an_attribute_that_a_file_leaves_out_has_its_default():
    """Model files are written without attributes at their defaults; the types of edges do not depend on that."""
    node = node_def_pb2.NodeDef(name="total", op="Sum", input=["x", "axis"])
    node.attr["T"].type = 1
    assert input_types(node) == [1, 3]  # Tidx is int32
    assert "Tidx" not in node.attr
    bare = node_def_pb2.NodeDef(name="total", op="Sum", input=["x", "axis"])
    assert input_types(bare) == [0, 3]  # T has no default
    constant = node_def_pb2.NodeDef(name="axis", op="Const")
    constant.attr["dtype"].type = 3
    check_edges([source(1), constant, node])


def source(enum: int) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name="x", op="Placeholder")
    node.attr["dtype"].type = enum
    return node
