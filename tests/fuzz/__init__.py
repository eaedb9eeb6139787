"""Fuzzing: what a stranger may send or a damaged disk may hold, mutated from good examples by numbers.

    python -m tests.fuzz [--minutes N] [--seed S] [--target T ...]      all targets, or some, in turn
    python -m tests.fuzz.sockets --frames N --requests N [--tls]        against real servers, beside an honest client

    targets ... the inputs: what good ones look like, who reads them, and which errors are documented
    mutate .... bytes, messages and texts, changed by a random.Random
    harness ... runs inputs in a process of their own and sorts what comes of them
    damaged_files  the kinds of files in more depth, with commands of its own
    corpus/ ... inputs that were lost once; tests/fuzz/test_corpus.py replays them

An input is lost when it ends in anything but success or a documented error, takes longer than 2 s, or makes the process
grow by more than 256 MB. It is known by target, seed and number, and is made again from these.
"""
