"""What is looked at on other machines before anything starts, and how what is wrong is told. Pure parts."""

from __future__ import annotations

from dtfctl.launchers.preflight import Finding, doubts, problems, report, request
from tests.dtfctl.fakes import plan_of

TEXT = """
program: train
hosts:
  a: {address: 10.0.0.1, python: /opt/python, working_dir: ~/w}
  b: {address: 10.0.0.2, bind: 0.0.0.0, sync: false, working_dir: /w}
  c: {address: 10.0.0.3, working_dir: w}
jobs:
  ps: {hosts: a, port: 2222, spare_hosts: c}
  worker: {hosts: b, venv: /opt/own}
"""

GOOD = {
    "folder": "/home/me/w",
    "folder_error": "",
    "free_bytes": 1 << 40,
    "names": {"10.0.0.1": ""},
    "addresses": {"10.0.0.1": ""},
    "ports": [["10.0.0.1", 2222, ""]],
    "pythons": {"/opt/python": ""},
}


def host_of(name):
    return plan_of(TEXT).host(name)


def test_each_host_is_asked_for_what_its_tasks_need():
    asked = request(host_of("a"), plan_of(TEXT))
    assert asked["folder"] == "~/w" and asked["pythons"] == ["/opt/python"] and not asked["needs_folder"]
    assert asked["addresses"] == ["10.0.0.1"] and asked["ports"] == [("10.0.0.1", 2222)]
    asked = request(host_of("b"), plan_of(TEXT))
    assert asked["addresses"] == ["0.0.0.0"] and asked["names"] == ["10.0.0.2"]
    assert asked["pythons"] == ["/opt/own/bin/python"] and asked["needs_folder"]


def test_a_spare_is_asked_for_what_the_tasks_need_that_it_may_get():
    asked = request(host_of("c"), plan_of(TEXT))
    assert asked["addresses"] == ["10.0.0.3"] and asked["ports"] == [("10.0.0.3", 2222)]


def test_a_good_host_has_no_problem_and_no_doubt():
    assert list(problems(host_of("a"), GOOD)) == [] and list(doubts(GOOD, 0.4)) == []


def test_every_problem_is_told_with_what_shows_it():
    bad = {
        **GOOD,
        "folder_error": "/home/me/w is not writable",
        "free_bytes": 1 << 20,
        "names": {"10.0.0.1": "Name or service not known"},
        "addresses": {"10.0.0.1": "Cannot assign requested address"},
        "pythons": {"/opt/python": "No such file or directory"},
    }
    told = list(problems(host_of("a"), bad))
    assert [words[0] for _, words in told] == ["ls", "df", "getent", "ip", "/opt/python"]
    assert "servers cannot listen at 10.0.0.1: Cannot assign requested address" in told[3][0]
    taken = {**GOOD, "ports": [["10.0.0.1", 2222, "Address already in use"]]}
    assert [what for what, _ in problems(host_of("a"), taken)] == ["port 2222 at 10.0.0.1: Address already in use"]


def test_a_wrong_clock_and_a_full_disk_are_doubts():
    assert list(doubts(GOOD, -90)) == ["its clock is 90s behind this machine's"]
    assert list(doubts({**GOOD, "free_bytes": 200 << 20}, 0)) == ["only 200 MiB of disk are free for /home/me/w"]


def test_all_that_is_wrong_is_one_text():
    findings = [
        Finding("gpu-a", errors=(("Permission denied", "ssh gpu-a true"),)),
        Finding("b"),
        Finding("c", errors=(("one", "x"), ("two", "y"))),
    ]
    assert report(findings, "cannot be used", 3).splitlines() == [
        "2 of 3 hosts cannot be used",
        "  gpu-a  Permission denied",
        "         see: ssh gpu-a true",
        "  c      one",
        "         see: x",
        "         two",
        "         see: y",
    ]
