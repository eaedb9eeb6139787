"""Two places of a task in this process: who leads, what the backup has, and which orders and questions are refused."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing

import numpy as np
import pytest

from dtf.places import lines
from dtf.places.__main__ import main
from dtf.places.address_book import AddressBook
from dtf.places.frames import BASE, PARTS, RECORD, Reader, packed, read_frame
from dtf.places.place import PlaceOfTask
from dtf.places.standby import Standby
from dtf.run.durability.replicated_resources import Part, Record, ReplicatedResources, Rows, look_at
from dtf.run.state.resources import Variable
from dtf.wire import errors
from dtf.wire.dtypes import float32
from dtf.wire.durability import KeptState, Place, described, kept_state, parse_places, places_of
from tests.certificates import credentials_of
from tests.ports import free_ports
from tests.waiting import wait_until

TASK = "/job:ps/replica:0/task:0"


class World:
    """Two places with folders; each may be started again. Ends them as a context manager."""

    def __init__(self, folder, credentials=None):
        self.folder = folder
        self.credentials = credentials
        ports = free_ports(4)
        self.places = [Place(f"127.0.0.1:{ports[2 * i]}", f"127.0.0.1:{ports[2 * i + 1]}") for i in range(2)]
        self.left = []
        self.stack = ExitStack()
        self.running = [None, None]

    def start(self, place):
        resources = ReplicatedResources(self.folder / str(place), place)
        made = PlaceOfTask(
            TASK, self.places, resources, 2.0, self.credentials, leave=lambda: self.left.append(place), notice_s=0.05
        )
        self.running[place] = made
        return made

    def move(self, place, ports):
        """Starts the process of a place elsewhere, without the folder that it had."""
        self.places = list(self.places)
        self.places[place] = Place(f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}")
        shutil.rmtree(self.folder / str(place))
        self.start(place)

    def end(self, place):
        """What SIGKILL does: the connections are closed, and the lock of the folder is free."""
        found, self.running[place] = self.running[place], None
        found.close()
        found.resources.close()

    def state(self, place):
        return lines.ask(self.places[place].peer_address, {"ask": "state"}, 5.0, self.credentials)["state"]

    def order(self, place, what, /, **more):
        return lines.ask(self.places[place].peer_address, {"ask": what, **more}, 5.0, self.credentials)

    def until(self, place, **expected):
        deadline = time.monotonic() + 20
        while any((state := self.state(place)).get(name) != value for name, value in expected.items()):
            assert time.monotonic() < deadline, state
            time.sleep(0.002)
        return state

    def __enter__(self):
        self.start(0)
        self.start(1)
        self.until(1, has_right=True)
        return self

    def __exit__(self, *_):
        for place, found in enumerate(self.running):
            if found is not None:
                self.end(place)


@pytest.fixture
def world(tmp_path):
    with World(tmp_path) as made:
        yield made


def variable(resources, name, value=None):
    made = resources.lookup_or_create("", name, Variable, lambda: Variable(name, float32, None))
    if value is not None:
        with resources.update_lock:
            made.assign(np.asarray(value, np.float32))
    return made


def confirmed(resources):
    """Waits for the answer of a step; its error, or None."""
    outcomes = []

    def done(value=None, error=None):
        outcomes.append(error)

    resources.confirming(done)("value")
    deadline = time.monotonic() + 20
    while not outcomes:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return outcomes[0]


def test_two_empty_places_begin_together_and_the_first_one_leads(world):
    in_sync = {"place": 1, "state": "in sync", "bytes_left": 0, "lag": 0}  # once the last frame is acknowledged
    primary = world.until(0, role="primary", mode="pair", is_paused=False, backup=in_sync)
    assert world.state(1)["terms"] == primary["terms"]


def test_the_backup_has_dense_sparse_and_small_updates_when_a_step_is_answered(world):
    resources = world.running[0].resources
    dense = variable(resources, "dense", np.zeros(5000))
    table = variable(resources, "table", np.zeros((3000, 4)))
    small = variable(resources, "small", 7)
    with resources.update_lock:
        dense.update(np.add, np.ones(5000, np.float32))
        rows = np.array([3, 7, 3])
        np.add.at(table.writable(rows), rows, 1)
    assert confirmed(resources) is None
    world.end(0)
    assert world.running[1].wait(20)
    promoted = world.running[1].resources
    np.testing.assert_array_equal(variable(promoted, "dense").read(), np.ones(5000))
    np.testing.assert_array_equal(variable(promoted, "table").read()[[3, 7, 8]], [[2] * 4, [1] * 4, [0] * 4])
    assert variable(promoted, "small").read() == 7
    assert promoted.lineage == resources.lineage
    assert promoted.terms[:-1] == resources.terms
    assert small is not None


def test_a_new_backup_is_filled_while_updates_go_on(world):
    resources = world.running[0].resources
    table = variable(resources, "table", np.zeros((40_000, 16)))
    assert confirmed(resources) is None
    world.end(1)
    assert isinstance(confirmed(resources), errors.UnavailableError)
    world.start(1)
    deadline = time.monotonic() + 20
    count = 0
    while not world.state(1)["has_right"]:
        assert time.monotonic() < deadline
        rows = np.array([count % 40_000, 39_999])
        with resources.update_lock:
            np.add.at(table.writable(rows), rows, 1)
        count += 1
    assert confirmed(resources) is None
    expected = np.array(table.read())
    world.end(0)
    assert world.running[1].wait(20)
    np.testing.assert_array_equal(variable(world.running[1].resources, "table").read(), expected)


def test_a_paused_primary_refuses_answers_until_it_is_ordered_to_go_on_alone(world):
    resources = world.running[0].resources
    term = world.state(0)["term"]
    world.end(1)
    paused = world.until(0, is_paused=True)
    assert paused["backup"]["state"] == "lost"
    assert "backup" in paused["reason"]
    with pytest.raises(errors.UnavailableError, match="paused"):
        resources.check_serving()
    assert "--fenced" in world.order(0, "alone")["error"]
    assert "look at its state again" in world.order(0, "alone", fenced=True, term=term + 5)["error"]
    other = look_at(world.folder / "1")["terms"][-1]
    assert world.order(0, "alone", fenced=True, term=term, other_term=other)["ok"]
    assert confirmed(resources) is None
    assert world.state(0)["term"] == term + 1


def test_a_backup_with_full_memory_gives_its_right_back_and_its_primary_goes_on_alone(world, monkeypatch):
    resources = world.running[0].resources
    full = errors.ResourceExhaustedError.of("no room")
    backup = world.running[1]

    def take(*_):
        raise full

    monkeypatch.setattr(backup.resources, "take", take)
    variable(resources, "small", [1, 2])
    wait_until(lambda: world.state(0)["mode"] == "alone", "the primary to go on alone")
    assert confirmed(resources) is None
    assert not world.state(1)["has_right"]
    assert "cannot take its records" in world.state(0)["reason"]
    world.end(1)
    world.start(1)
    wait_until(lambda: world.state(1)["has_right"], "the backup that was started again")
    world.end(0)
    wait_until(lambda: world.state(1)["role"] == "primary", "the backup to serve")
    np.testing.assert_array_equal(variable(world.running[1].resources, "small").read(), [1, 2])


def test_an_order_to_go_on_alone_is_refused_when_the_dead_place_had_a_later_term(world):
    assert world.order(1, "promote")["ok"]
    world.end(1)
    world.until(0, is_paused=True)
    later = look_at(world.folder / "1")["terms"][-1]
    refused = world.order(0, "alone", fenced=True, other_term=later)
    assert not refused["ok"]
    assert "start it again" in refused["error"]


def test_a_promoted_backup_makes_the_former_primary_leave_and_acknowledges_nothing(world):
    resources = world.running[0].resources
    assert world.order(1, "promote")["ok"]
    assert world.state(1)["role"] == "primary"
    deadline = time.monotonic() + 20
    while not world.left:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert isinstance(confirmed(resources), errors.UnavailableError)
    world.end(0)
    world.start(0)
    assert world.until(0, has_right=True)["role"] == "backup"


def test_a_primary_gives_up_its_backup_with_its_answer_and_the_backup_then_leads_nothing(world):
    assert world.order(0, "alone")["ok"]
    world.until(1, role="waiting", has_right=False)
    world.end(0)
    refused = world.order(1, "promote")
    assert not refused["ok"]
    assert "--fenced" in refused["error"]


def test_both_places_that_are_started_again_go_on_with_the_state(world):
    resources = world.running[0].resources
    variable(resources, "dense", np.full(5000, 3))
    assert confirmed(resources) is None
    world.end(0)
    world.end(1)  # it may have begun the next term by then
    first, second = world.start(0), world.start(1)
    deadline = time.monotonic() + 20
    while not any(world.state(place)["has_right"] for place in range(2)):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    leads = first if first.wait(0) else second
    np.testing.assert_array_equal(variable(leads.resources, "dense").read(), np.full(5000, 3))


def test_places_find_each_other_after_both_have_moved_in_turn_and_clients_hear_of_it(world):
    resources = world.running[0].resources
    variable(resources, "dense", np.full(5000, 3))
    assert confirmed(resources) is None
    before = list(world.places)
    ports = free_ports(4)
    assert world.order(0, "alone")["ok"]
    world.end(1)
    world.move(1, ports[:2])
    world.until(1, has_right=True)
    assert places_of([resources.description]) == (before[0], world.places[1])
    assert world.order(1, "promote")["ok"]
    wait_until(lambda: world.left, "the former primary to leave")
    world.end(0)
    moved, world.places = world.places, before  # its program is started with the addresses of long ago
    world.start(0)
    world.places = moved
    assert world.until(0, has_right=True)["role"] == "backup"
    world.order(1, "alone")
    world.end(0)
    world.move(0, ports[2:])
    world.until(0, has_right=True)
    assert set(places_of([world.running[1].resources.description])) == set(world.places)
    world.end(1)
    assert world.running[0].wait(20)
    np.testing.assert_array_equal(variable(world.running[0].resources, "dense").read(), np.full(5000, 3))


def test_a_damaged_note_of_addresses_is_passed_over_and_a_full_disk_stops_nothing(tmp_path):
    given = [Place("a:1", "a:2"), Place("b:1", "b:2")]
    for text in ("", "[]", "{", '{"1": "c"}', '{"9": "c:1/2"}', '{"x": "c:1/2"}', '{"1": 3}', "\xff"):
        (tmp_path / "places").write_text(text)
        assert AddressBook(tmp_path, 0, given).others() == [(1, given[1])], text
    (tmp_path / "places.new").mkdir()  # a file that cannot be written
    book = AddressBook(tmp_path, 0, given)
    moved = Place("c:1", "c:2")
    assert book.note(1, moved)
    assert not book.note(1, moved)
    assert book.all() == (given[0], moved)


@pytest.mark.parametrize("at", ["nonsense", "a:1", "a:b/2", "a:1/99999", ["a:1/2"], "a:1/2" * 5000])
def test_a_place_that_says_a_malformed_address_is_no_backup(world, at):
    world.end(1)
    state = world.until(0, is_paused=True)
    said = {"task": TASK, "place": 1, "lineage": "", "terms": [], "at": at}
    answer = world.order(0, "follow", **said, incarnation=state["incarnation"], turn=state["turn"])
    assert not answer["ok"]


def test_places_of_a_secured_cluster_speak_tls_and_refuse_others(tmp_path):
    own = credentials_of(tmp_path, hosts=("127.0.0.1",))
    with World(tmp_path, own) as world:
        resources = world.running[0].resources
        value = np.random.RandomState(0).rand(400_000).astype(np.float32)
        variable(resources, "dense", value)
        assert confirmed(resources) is None
        with pytest.raises(errors.OpError):
            lines.ask(world.places[0].peer_address, {"ask": "alone", "fenced": True}, 5.0)
        other = credentials_of(tmp_path, "another, run 1", hosts=("127.0.0.1",))
        with pytest.raises(errors.UnauthenticatedError):
            lines.ask(world.places[0].peer_address, {"ask": "state"}, 5.0, other)
        world.end(0)
        assert world.running[1].wait(20)
        np.testing.assert_array_equal(variable(world.running[1].resources, "dense").read(), value)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_of_a_place_keeps_no_connection_open_when_its_parent_is_gone(world):
    ready, end = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.write(ready[1], b"1")
        os.read(end[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 1) == b"1"
        world.end(0)
        assert world.until(1, role="primary")["reason"] == ""
    finally:
        os.write(end[1], b"1")
        os.waitpid(child, 0)
        for each in (*ready, *end):
            os.close(each)


def test_a_question_of_an_earlier_turn_is_refused(world):
    state = world.state(0)
    question = {
        "task": TASK, "place": 1, "lineage": state["lineage"], "terms": state["terms"],
        "incarnation": state["incarnation"], "turn": state["turn"] - 1,
    }  # fmt: skip
    answer = world.order(0, "follow", **question)
    assert answer["error"] == "the question is old"
    assert world.state(0)["backup"]["state"] == "in sync"


@pytest.mark.parametrize("sent", [b"\x00\xff\n", b"[]\n", b"{}\n", b"GET / HTTP/1.1\r\n\r\n", b'{"ask":"follow"}\n'])
def test_nonsense_at_the_peer_port_changes_nothing(world, sent):
    host, port = world.places[0].peer_address.split(":")
    with socket.create_connection((host, int(port)), 5.0) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1 << 16)
    assert world.state(0)["backup"]["state"] == "in sync"


def test_the_command_shows_states_and_refusals_in_its_exit_status(world, capsys):
    addresses = [each.peer_address for each in world.places]
    assert main(["state", *addresses]) == 0
    assert [json.loads(line)["role"] for line in capsys.readouterr().out.splitlines()] == ["primary", "backup"]
    assert main(["promote", addresses[0]]) == 1
    assert "it is the primary already" in capsys.readouterr().err
    assert main(["folder", str(world.folder / "nowhere")]) == 1
    world.end(1)
    assert main(["state", addresses[1]]) == 2
    capsys.readouterr()
    assert main(["folder", str(world.folder / "1")]) == 0
    assert json.loads(capsys.readouterr().out)["is_complete"]


@pytest.mark.slow
def test_the_command_runs_as_a_program(world):
    command = [sys.executable, "-m", "dtf.places", "state", world.places[1].peer_address]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert json.loads(shown.stdout)["role"] == "backup"


def test_places_are_read_and_what_is_malformed_is_named():
    found = parse_places("ps:0=a:1/2,b:3/4; /job:ps/task:1=[::1]:5/6,c:7/8,d:9/10")
    assert found["/job:ps/replica:0/task:0"] == (Place("a:1", "a:2"), Place("b:3", "b:4"))
    assert found["/job:ps/replica:0/task:1"][0] == Place("[::1]:5", "[::1]:6")
    for wrong in ("ps:0=a:1/2", "ps:0=a:1,b:2", "ps=a:1/2,b:1/2", "ps:0=a:x/2,b:1/2", "ps:0=a:1/0,b:1/2"):
        with pytest.raises(errors.InvalidArgumentError, match="PEER_PORT"):
            parse_places(wrong)
    with pytest.raises(errors.InvalidArgumentError, match="twice"):
        parse_places("ps:0=a:1/2,b:3/4;ps:1=a:1/5,c:6/7")


def test_a_state_follows_another_when_its_terms_have_the_last_one_of_that():
    earlier, later = KeptState("x", ("1.a",)), KeptState("x", ("1.a", "2.b"))
    assert later.follows(earlier)
    assert not earlier.follows(later)
    assert not KeptState("x", ("1.a", "2.c")).follows(later)
    assert not KeptState("y", later.terms).follows(earlier)
    assert kept_state(["", described("x", later.terms)]) == later
    assert kept_state([described("x")]) == KeptState("x")


def test_a_description_names_the_places_and_its_state_is_read_without_them():
    places = (Place("a:1", "a:2"), Place("[::1]:3", "[::1]:4"))
    text = described("x", ("1.a", "2.b"), places)
    assert places_of(["", text]) == places
    assert kept_state([text]) == KeptState("x", ("1.a", "2.b"))
    assert places_of([described("x", ("1.a",))]) == places_of([described("x")]) == ()
    assert places_of([text.replace(":3/4", ":3")]) == ()


@pytest.mark.parametrize(
    "frame",
    [
        packed(RECORD, 1, Record(b"\x02\0\0\0{}", [], [Rows(1, 64, np.array([9]), np.zeros((1, 32), np.uint8))])),
        packed(RECORD, 1, Record(b"\xff\0\0\0{}", [])),
        packed(BASE, 1, Record(b"", [])),
        packed(PARTS, 1, parts=[Part(1, 10, 8, np.zeros(8, np.uint8))]),
    ],
)
def test_a_backup_refuses_what_is_malformed_and_holds_no_right(tmp_path, frame):
    left, right = socket.socketpair()
    resources = ReplicatedResources(tmp_path / "backup", 1)
    with left, right, closing(resources):
        standby = Standby(right, Reader(right), resources)
        for each in frame:
            left.sendall(each)
        left.shutdown(socket.SHUT_WR)
        with pytest.raises(errors.DataLossError, match="primary has sent"):
            standby.run()
        assert not standby.has_right


def test_frames_that_are_none_are_refused():
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"\xff" * 64)
        with pytest.raises(errors.DataLossError, match="no frame"):
            read_frame(Reader(right))
