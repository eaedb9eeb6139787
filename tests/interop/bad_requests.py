"""Requests that no client of good faith sends, made by hand, and what a server answers to each.

A family is a function that sends its requests with a `Caller` and gives {name: code}; `answers` calls some of them. The
code of an error in the response's body counts as the answer's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import grpc
import numpy as np

from dtf.wire import codec
from dtf.wire.pb import config_pb2, graph_pb2, master_pb2, types_pb2, worker_pb2

MASTER = "tensorflow.MasterService"
WORKER = "tensorflow.WorkerService"
TIMEOUT_S = 5.0

_ids = itertools.count(1 << 40)


class Caller:
    """Calls of the two services with messages or with bytes; an answer is (code name, response or None)."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)

    def __call__(
        self, method: str, request: Any, response: Any = None, service: str = MASTER, timeout_s: float = TIMEOUT_S
    ) -> tuple[str, Any]:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        if response is None and hasattr(master_pb2, f"{method}Response"):
            response = getattr(master_pb2, f"{method}Response")
        if response is None or service == WORKER:
            response = getattr(worker_pb2, f"{method}Response", response)
        try:
            answered = self._channel.unary_unary(f"/{service}/{method}")(data, timeout=timeout_s)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        message = response.FromString(answered) if response is not None else answered
        code = getattr(message, "status_code", 0)
        if code:
            return names_of_codes()[code], message.status_error_message
        return "OK", message

    def future(self, method: str, request: Any, service: str = MASTER) -> Any:
        return self._channel.unary_unary(f"/{service}/{method}").future(request.SerializeToString())

    def close(self) -> None:
        self._channel.close()


def names_of_codes() -> dict[int, str]:
    return {code.value[0]: code.name for code in grpc.StatusCode}


def graph(*nodes: dict[str, Any]) -> graph_pb2.GraphDef:
    """A GraphDef of nodes given as {"name", "op", "input", "device", attribute: value}; numpy dtypes are types."""
    result = graph_pb2.GraphDef()
    result.versions.producer = 134
    for each in nodes:
        node = result.node.add(name=each["name"], op=each["op"], input=each.get("input", ()))
        node.device = each.get("device", "")
        for key, value in each.items():
            if key in ("name", "op", "input", "device"):
                continue
            attr = node.attr[key]
            if isinstance(value, type(types_pb2.DT_FLOAT)) and key in ("dtype", "T", "DstT", "SrcT"):
                attr.type = value
            elif isinstance(value, np.ndarray):
                attr.tensor.CopyFrom(codec.array_to_proto(value))
            elif isinstance(value, bool):
                attr.b = value
            elif isinstance(value, int):
                attr.i = value
            elif isinstance(value, bytes):
                attr.s = value
            else:
                attr.CopyFrom(value)
    return result


FLOAT = types_pb2.DT_FLOAT


def const(name: str, value: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"name": name, "op": "Const", "dtype": FLOAT, "value": np.array(value, np.float32), **more}


def placeholder(name: str) -> dict[str, Any]:
    return {"name": name, "op": "Placeholder", "dtype": FLOAT}


def add(name: str, *inputs: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "op": "AddV2", "input": inputs, "T": FLOAT, **more}


class Session:
    """A session made by hand."""

    def __init__(self, call: Caller, graph_def: graph_pb2.GraphDef | None = None, **config: Any) -> None:
        self.call = call
        request = master_pb2.CreateSessionRequest(
            graph_def=graph_def or graph(const("c"), placeholder("x"), add("y", "c", "x")),
            config=config_pb2.ConfigProto(**config),
        )
        self.created, response = call("CreateSession", request)
        self.why = response
        self.handle = response.session_handle if self.created == "OK" else "none"

    def run(self, fetch: Any = (), feed: Any = (), target: Any = (), **more: Any) -> str:
        return self.call("RunStep", self.step(fetch, feed, target, **more))[0]

    def step(self, fetch: Any = (), feed: Any = (), target: Any = (), **more: Any) -> master_pb2.RunStepRequest:
        request = master_pb2.RunStepRequest(
            session_handle=self.handle,
            fetch=fetch,
            target=target,
            request_id=next(_ids),
            store_errors_in_response_body=True,
        )
        for name, value in dict(feed).items():
            request.feed.add(name=name, tensor=codec.array_to_proto(np.asarray(value)))
        for key, value in more.items():
            if isinstance(value, (str, int, bool)):
                setattr(request, key, value)
            else:
                getattr(request, key).CopyFrom(value)
        return request

    def extend(self, graph_def: graph_pb2.GraphDef, version: int = 0) -> str:
        request = master_pb2.ExtendSessionRequest(
            session_handle=self.handle, graph_def=graph_def, current_graph_version=version
        )
        return self.call("ExtendSession", request)[0]

    def close(self) -> str:
        return self.call("CloseSession", master_pb2.CloseSessionRequest(session_handle=self.handle))[0]


def answers(address: str, families: Iterable[Callable[[Caller], dict[str, Any]]]) -> dict[str, Any]:
    """What the server answers, {"family/name": code}."""
    found: dict[str, Any] = {}
    for family in families:
        call = Caller(address)
        try:
            found.update((f"{family.__name__}/{name}", code) for name, code in family(call).items())
        finally:
            call.close()
    return found


def graphs(call: Caller) -> dict[str, Any]:
    """Graphs that cannot be: said at CreateSession, at ExtendSession or at the first run?"""
    bad = {
        "empty": graph(),
        "unknown op": graph({"name": "a", "op": "NoSuchOp"}),
        "unknown op beside": graph(const("c"), {"name": "a", "op": "NoSuchOp"}),
        "missing attribute": graph({"name": "a", "op": "Placeholder"}),
        "unknown attribute": graph(const("a", 1.0, nonsense=3)),
        "attribute of the wrong kind": graph({"name": "a", "op": "Placeholder", "dtype": 3}),
        "type that the op refuses": graph(const("c"), {"name": "a", "op": "LogicalNot", "input": ["c"]}),
        "type attribute that the op refuses": graph(
            {"name": "b", "op": "Placeholder", "dtype": types_pb2.DT_BOOL},
            {"name": "a", "op": "AddV2", "input": ["b", "b"], "T": types_pb2.DT_BOOL},
        ),
        "no kernel for the type": graph(
            {"name": "b", "op": "Placeholder", "dtype": types_pb2.DT_STRING},
            {"name": "a", "op": "Mul", "input": ["b", "b"], "T": types_pb2.DT_STRING},
        ),
        "number below its minimum": graph(const("c"), {"name": "a", "op": "Pack", "input": [], "N": 0, "T": FLOAT}),
        "invalid dtype": graph({"name": "a", "op": "Placeholder", "dtype": 0}),
        "dtype out of range": graph({"name": "a", "op": "Placeholder", "dtype": 77}),
        "too few inputs": graph(const("c"), add("a", "c")),
        "too many inputs": graph(const("c"), add("a", "c", "c", "c")),
        "unknown input": graph(const("c"), add("a", "c", "nowhere")),
        "unknown control input": graph(const("a", 1.0, input=["^nowhere"])),
        "output that is not there": graph(const("c"), add("a", "c", "c:3")),
        "inputs after control inputs": graph(const("c"), add("a", "^c", "c", "c")),
        "cycle": graph(const("c"), add("a", "b", "c"), add("b", "a", "c")),
        "cycle of itself": graph(const("c"), add("a", "a", "c")),
        "control cycle": graph(const("a", 1.0, input=["^b"]), const("b", 1.0, input=["^a"])),
        "two of one name": graph(const("a"), const("a")),
        "no name": graph(const("")),
        "rubbish name": graph(const("a b%")),
        "underscore name": graph(const("_a")),
        "malformed device": graph(const("a", 1.0, device="/rubbish")),
        "device of nobody": graph(const("a", 1.0, device="/job:nobody/task:0")),
        "colocated with nobody": graph(const("a")),
        "value that is too short": graph(const("a")),
        "constant of the wrong dtype": graph(const("a")),
        "input of the wrong dtype": graph(
            {"name": "i", "op": "Placeholder", "dtype": types_pb2.DT_INT32}, add("a", "i", "i")
        ),
        "shapes that do not fit": graph(const("p", [1.0, 2.0]), const("q", [1.0, 2.0, 3.0]), add("a", "p", "q")),
        "merge of a dead end": graph(const("c"), {"name": "a", "op": "NextIteration", "input": ["c"], "T": FLOAT}),
        "new producer": graph(const("a")),
        "new consumer wanted": graph(const("a")),
        "_Recv of nobody": graph({"name": "a", "op": "_Recv"}),
    }
    bad["colocated with nobody"].node[0].attr["_class"].list.s.append(b"loc:@nowhere")
    bad["value that is too short"].node[0].attr["value"].tensor.tensor_shape.dim.add(size=100)
    bad["value that is too short"].node[0].attr["value"].tensor.tensor_content = b"abc"
    bad["constant of the wrong dtype"].node[0].attr["dtype"].type = types_pb2.DT_INT32
    bad["new producer"].versions.producer = 1 << 30
    bad["new consumer wanted"].versions.min_consumer = 1 << 30
    found = {}
    for name, graph_def in bad.items():
        session = Session(call, graph_def)
        first = [session.created, session.created]
        if session.created == "OK":
            first[1] = session.run(["a:0"])
            session.close()
        session = Session(call)
        second = session.extend(graph_def)
        later = session.run(["a:0"]) if second == "OK" else second
        found[name] = [*first, second, later]
        found[f"{name}, others"] = session.run(["y:0"], {"x:0": np.float32(1.0)})
        session.close()
    return found


def handles(call: Caller) -> dict[str, Any]:
    session = Session(call)
    found: dict[str, Any] = {"good": session.run(["y:0"], {"x:0": np.float32(1)})}
    good = session.handle
    found["version"] = [session.extend(graph(const("d")), 7), session.extend(graph(const("d")), 0)]
    found["same version again"] = session.extend(graph(const("e")), 0)
    found["next version"] = session.extend(graph(const("e")), 1)
    found["duplicate node"] = session.extend(graph(const("e")), 2)
    found["empty extension"] = session.extend(graph(), 2)
    for version in (2, 3, 4):
        found[f"version {version}"] = session.extend(graph(const(f"f{version}")), version)
    ids = [session.step(["y:0"], {"x:0": np.float32(1)}, request_id=next(_ids)) for _ in range(2)]
    found["request id twice"] = [call("RunStep", ids[0])[0], call("RunStep", ids[1])[0], call("RunStep", ids[0])[0]]
    zero = session.step(["y:0"], {"x:0": np.float32(1)}, request_id=0)
    found["request id zero twice"] = [call("RunStep", zero)[0], call("RunStep", zero)[0]]
    session.handle = "0123456789abcdef"
    found["unknown session"] = {
        "run": session.run(["y:0"]),
        "extend": session.extend(graph(const("g"))),
        "close": session.close(),
        "partial": call(
            "PartialRunSetup", master_pb2.PartialRunSetupRequest(session_handle=session.handle, fetch=["y:0"])
        )[0],
        "list": call("ListDevices", master_pb2.ListDevicesRequest(session_handle=session.handle))[0],
        "make": call("MakeCallable", master_pb2.MakeCallableRequest(session_handle=session.handle))[0],
        "call": call("RunCallable", master_pb2.RunCallableRequest(session_handle=session.handle, handle=1))[0],
        "release": call("ReleaseCallable", master_pb2.ReleaseCallableRequest(session_handle=session.handle, handle=1))[
            0
        ],
        "no handle": call("RunStep", master_pb2.RunStepRequest(fetch=["y:0"]))[0],
    }
    session.handle = good
    found["unknown callable"] = {
        "call": call("RunCallable", master_pb2.RunCallableRequest(session_handle=good, handle=77))[0],
        "release": call("ReleaseCallable", master_pb2.ReleaseCallableRequest(session_handle=good, handle=77))[0],
    }
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["y:0"])
    made, response = call("MakeCallable", master_pb2.MakeCallableRequest(session_handle=good, options=options))
    one = codec.array_to_proto(np.float32(1))

    def call_it(*feeds: Any, **more: Any) -> str:
        request = master_pb2.RunCallableRequest(session_handle=good, handle=response.handle, feed=feeds, **more)
        return call("RunCallable", request)[0]

    found["callable"] = [made, call_it(one)]
    call("ReleaseCallable", master_pb2.ReleaseCallableRequest(session_handle=good, handle=response.handle))
    found["released callable"] = call_it(one)
    found["partial run of nobody"] = session.run(["y:0"], partial_run_handle="nobody")
    found["close"] = [
        session.close(),
        session.close(),
        session.run(["y:0"], {"x:0": np.float32(1)}),
        session.extend(graph(const("z"))),
    ]
    return found


def runs(call: Caller) -> dict[str, Any]:
    one = np.float32(1)
    session = Session(call)
    found: dict[str, Any] = {
        "nothing": session.run(),
        "unknown fetch": session.run(["nowhere:0"]),
        "fetch without a colon": session.run(["c"]),
        "fetch of an output that is not there": session.run(["c:5"]),
        "fetch of a rubbish name": session.run(["c:x"]),
        "fetch of a control input": session.run(["^c"]),
        "empty fetch": session.run([""]),
        "unknown target": session.run(target=["nowhere"]),
        "target with a colon": session.run(target=["c:0"]),
        "unknown feed": session.run(["c:0"], {"nowhere:0": one}),
        "feed without a colon": session.run(["y:0"], {"x": one}),
        "feed of an output that is not there": session.run(["y:0"], {"x:5": one}),
        "unfed": session.run(["y:0"]),
        "fed and fetched": session.run(["x:0"], {"x:0": one}),
        "target twice": session.run(target=["c", "c"]),
        "placeholder as target": session.run(target=["x"]),
    }
    request = session.step(["y:0"])
    for _ in range(2):
        request.feed.add(name="x:0", tensor=codec.array_to_proto(one))
    found["fed twice"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(name="x:0")
    found["feed without a value"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(name="x:0", tensor={"dtype": types_pb2.DT_FLOAT, "tensor_content": b"abc"})
    found["feed cut short"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(name="x:0", tensor={"dtype": types_pb2.DT_FLOAT, "tensor_shape": {"dim": [{"size": -3}]}})
    found["feed of a negative size"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(
        name="x:0",
        tensor={"dtype": types_pb2.DT_FLOAT, "tensor_shape": {"dim": [{"size": 1 << 40}, {"size": 1 << 40}]}},
    )
    found["feed of a huge shape"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(
        name="x:0",
        tensor={"dtype": types_pb2.DT_FLOAT, "tensor_shape": {"dim": [{"size": 1 << 34}]}, "tensor_content": b"abcd"},
    )
    found["feed of a claimed size"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(name="x:0", tensor={"dtype": 99, "float_val": [1.0]})
    found["feed of an unknown dtype"] = call("RunStep", request)[0]
    request = session.step(["y:0"])
    request.feed.add(
        name="x:0",
        tensor={
            "dtype": types_pb2.DT_STRING,
            "tensor_shape": {"dim": [{"size": 3}]},
            "tensor_content": b"\xff\xff\xff\xff\x7f",
        },
    )
    found["feed of rubbish strings"] = call("RunStep", request)[0]
    found["errors outside the body"] = session.run(["nowhere:0"], store_errors_in_response_body=False)
    found["still serving"] = session.run(["y:0"], {"x:0": one})
    session.close()
    return found


def rubbish(call: Caller) -> dict[str, Any]:
    found = {}
    for method in (
        "CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession", "ListDevices", "MakeCallable",
        "RunCallable", "ReleaseCallable",
    ):  # fmt: skip
        found[method] = _raw(call, method, MASTER)
    for method in (
        "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "DeregisterGraph", "RunGraph", "CleanupGraph",
        "CleanupAll", "RecvTensor", "RecvBuf", "MarkRecvFinished", "Logging", "Tracing", "GetStatus", "CompleteGroup",
        "CompleteInstance", "GetStepSequence",
    ):  # fmt: skip
        found[f"worker {method}"] = _raw(call, method, WORKER)
    found["unknown method"] = _raw(call, "NoSuchMethod", MASTER)
    found["unknown service"] = _raw(call, "Nothing", "tensorflow.NoSuchService")
    found["eager"] = _raw(call, "CreateContext", "tensorflow.eager.EagerService")
    return found


def _raw(call: Caller, method: str, service: str) -> str:
    try:
        call._channel.unary_unary(f"/{service}/{method}")(b"\xff\xff\xff\xff\x01\x02rubbish", timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def workers(call: Caller) -> dict[str, Any]:
    """What a foreign master may ask a worker, well and badly."""
    found: dict[str, Any] = {}

    def ask(method: str, **fields: Any) -> str:
        return call(method, getattr(worker_pb2, f"{method}Request")(**fields), service=WORKER, timeout_s=8.0)[0]

    status, response = call("GetStatus", worker_pb2.GetStatusRequest(), service=WORKER)
    device = response.device_attributes[0]
    found["GetStatus"] = [status, device.name, device.device_type]
    handle = "feedfeedfeedfeed"
    found["graph without a session"] = ask(
        "RegisterGraph", session_handle=handle, create_worker_session_called=True, graph_def=graph(const("c"))
    )
    found["CreateWorkerSession"] = [ask("CreateWorkerSession", session_handle=handle) for _ in range(2)]
    c = const("c", 2.0, device=device.name)
    key = f"{device.name};{device.incarnation:016x};{device.name};%s;0:0"

    def end(name: str, op: str, kind: str, label: str, source: Any = ()) -> dict[str, Any]:
        signed = device.incarnation - (1 << 64) if device.incarnation >> 63 else device.incarnation
        return {
            "name": name, "op": op, "input": source, kind: FLOAT, "device": device.name,
            "tensor_name": label.encode(), "send_device": device.name.encode(), "recv_device": device.name.encode(),
            "send_device_incarnation": signed, "client_terminated": True,
        }  # fmt: skip

    part = graph(
        end("_recv_x_0", "_Recv", "tensor_type", "x:0"),
        c,
        add("y", "_recv_x_0", "c", device=device.name),
        end("_send_y_0", "_Send", "T", "y:0", ["y"]),
    )
    for node in part.node:
        if "tensor_type" in node.attr:
            node.attr["tensor_type"].type = FLOAT

    def register(graph_def: graph_pb2.GraphDef, **more: Any) -> tuple[str, Any]:
        fields = {"session_handle": handle, "create_worker_session_called": True, "graph_def": graph_def, **more}
        return call("RegisterGraph", worker_pb2.RegisterGraphRequest(**fields), service=WORKER)

    code, registered = register(part)
    found["RegisterGraph"] = code
    graph_handle = registered.graph_handle
    steps = itertools.count(1 << 50)

    def run(step: int | None = None, **more: Any) -> tuple[str, Any]:
        request = worker_pb2.RunGraphRequest(
            **{
                "session_handle": handle,
                "create_worker_session_called": True,
                "graph_handle": graph_handle,
                "step_id": next(steps) if step is None else step,
                "recv_key": [key % "y:0"],
                "request_id": next(_ids),
                "store_errors_in_response_body": True,
                **more,
            }  # fmt: skip
        )
        if "send" not in more:
            request.send.add(name=key % "x:0", tensor=codec.array_to_proto(np.float32(1)))
        return call("RunGraph", request, service=WORKER, timeout_s=8.0)

    code, result = run()
    found["RunGraph"] = [code, result.recv[0].tensor.tensor_content.hex() or list(result.recv[0].tensor.float_val)]
    found["unknown graph"] = run(graph_handle="7777777777777777")[0]
    found["unknown session"] = run(session_handle="nowhere")[0]
    found["legacy session"] = run(create_worker_session_called=False)[0]
    found["malformed recv key"] = run(recv_key=["rubbish"])[0]
    found["malformed send key"] = run(send=[{"name": "rubbish", "tensor": codec.array_to_proto(np.float32(1))}])[0]
    again = next(_ids)
    found["request id twice"] = [run(request_id=again)[0], run(request_id=again)[0]]
    found["request id zero twice"] = [run(request_id=0)[0], run(request_id=0)[0]]
    found["step twice"] = [run(step=1 << 51)[0], run(step=1 << 51)[0]]
    found["graph with an unknown op"] = register(graph({"name": "a", "op": "NoSuchOp", "device": device.name}))[0]
    found["graph without devices"] = register(graph(const("a")))[0]
    found["graph of another device"] = register(
        graph(const("a", 1.0, device="/job:other/replica:0/task:0/device:CPU:0"))
    )[0]
    found["graph with a cycle"] = register(
        graph(c, add("a", "b", "c", device=device.name), add("b", "a", "c", device=device.name))
    )[0]
    found["DeregisterGraph"] = [
        ask("DeregisterGraph", session_handle=handle, create_worker_session_called=True, graph_handle=graph_handle)
        for _ in range(2)
    ]
    found["after it"] = run()[0]
    found["CleanupGraph of no step"] = [ask("CleanupGraph", step_id=12345), ask("CleanupGraph", step_id=12345)]
    found["RecvTensor with a rubbish key"] = ask("RecvTensor", step_id=5, rendezvous_key="rubbish")
    found["RecvTensor of a former self"] = ask(
        "RecvTensor", step_id=5, rendezvous_key=f"{device.name};{1:016x};{device.name};x;0:0"
    )
    found["RecvTensor of another device"] = ask(
        "RecvTensor", step_id=6, rendezvous_key=f"/job:other/replica:0/task:0/device:CPU:0;{1:016x};{device.name};x;0:0"
    )
    found["RecvBuf"] = ask("RecvBuf", step_id=5, buf_rendezvous_key="nothing")
    found["MarkRecvFinished"] = ask("MarkRecvFinished", request_id=7)
    found["Logging"] = [
        ask("Logging", enable_rpc_logging=True),
        ask("Logging", fetch_step_id=[1]),
        ask("Logging", disable_rpc_logging=True),
        ask("Logging", clear=True),
    ]
    found["Tracing"] = ask("Tracing")
    found["CompleteGroup"] = ask("CompleteGroup", group_key=1, group_size=2)
    found["CompleteInstance"] = ask("CompleteInstance", name="a")
    found["GetStepSequence"] = ask("GetStepSequence", graph_key=[5])
    found["CleanupAll"] = [ask("CleanupAll"), ask("CleanupAll", container=["nothing"])]
    found["DeleteWorkerSession"] = [ask("DeleteWorkerSession", session_handle=handle) for _ in range(2)]
    found["CreateWorkerSession of a rubbish cluster"] = ask(
        "CreateWorkerSession",
        session_handle="bad",
        server_def={"cluster": {"job": [{"name": "a", "tasks": {0: "rubbish"}}]}},
    )
    found["still serving"] = ask("GetStatus")
    return found


def deadly(call: Caller) -> dict[str, Any]:
    """What TensorFlow's server does not survive, or answers never again: for ours only."""
    one = np.float32(1)
    session = Session(call)
    found: dict[str, Any] = {
        "feed that nothing needs": session.run(["c:0"], {"x:0": one}),
        "fetched twice": session.run(["y:0", "y:0"], {"x:0": one}),
        "feed of another dtype": session.run(["y:0"], {"x:0": np.float64(1)}),
        "feed of an integer": session.run(["y:0"], {"x:0": np.int32(1)}),
        "feed of strings": session.run(["y:0"], {"x:0": np.array([b"a"], object)}),
        "feed of a constant of another dtype": session.run(["y:0"], {"c:0": np.int32(1), "x:0": one}),
        "feed that nothing needs of another dtype": session.run(["c:0"], {"x:0": np.int32(1)}),
    }
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["y:0"])
    _, made = call("MakeCallable", master_pb2.MakeCallableRequest(session_handle=session.handle, options=options))

    def call_it(*feeds: Any) -> str:
        protos = [codec.array_to_proto(feed) for feed in feeds]
        request = master_pb2.RunCallableRequest(session_handle=session.handle, handle=made.handle, feed=protos)
        return call("RunCallable", request)[0]

    found["callable with too few feeds"] = call_it()
    found["callable with too many feeds"] = call_it(one, one)
    found["callable with another dtype"] = call_it(np.float64(1))
    found["still serving"] = [call_it(one), session.run(["y:0"], {"x:0": one}), session.close()]
    return found


FAMILIES = (graphs, handles, runs, rubbish, workers)
