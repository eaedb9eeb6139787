from __future__ import annotations

from dtf.channel import spin_wait
from dtf.channel.spin_wait import SpinWait


def test_who_finds_something_goes_on_looking(monkeypatch):
    monkeypatch.setattr(spin_wait, "LOOKS_FOR_S", 60.0)
    spinning = SpinWait()
    for number in range(1, 6):
        attempts = iter([None, None, number])
        assert spinning.look(lambda attempts=attempts: next(attempts)) == number


def test_who_looks_in_vain_does_so_less_and_less_often(monkeypatch):
    monkeypatch.setattr(spin_wait, "LOOKS_FOR_S", 0.0)
    spinning = SpinWait()
    looked = []
    for number in range(1000):
        spinning.look(lambda number=number: looked.append(number))
    turns = sorted(set(looked))
    assert turns[:6] == [0, 2, 5, 10, 19, 36]
    assert 7 < len(turns) < 20  # it never gives up for good


def test_finding_something_once_is_enough_to_begin_anew(monkeypatch):
    monkeypatch.setattr(spin_wait, "LOOKS_FOR_S", 0.0)
    spinning = SpinWait()
    for _ in range(300):
        spinning.look(lambda: None)
    while spinning.look(lambda: "a message") is None:
        pass
    assert spinning.look(lambda: "the next") == "the next"
