"""Where nodes go and what is said of requests that no device meets, on a machine that has CPUs only.

Functions of the module `tf` that return plain JSON. TensorFlow's own build without GPUs knows all of this: which
devices there are, soft placement, colocation, and the log of placements.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.interop import behaviours


def run(tf: Any, build: Callable[[], Any], **config: Any) -> Any:
    """The value of what `build` makes; or the code of the error, and its message without the stacks."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**config)) as session:
        try:
            return session.run(build())
        except tf.errors.OpError as error:
            found = re.search(r"Cannot (?:assign|colocate).*", error.message)
            return [error.error_code, found[0].strip() if found else error.message]


def on(tf: Any, device: str) -> Callable[[], Any]:
    def build() -> Any:
        with tf.device(device):
            return tf.constant(4.0, name="four")

    return build


DEVICES = ["/gpu:0", "/device:GPU:3", "/cpu:7", "/cpu:0", "/device:FOO:1", "/job:ps/task:3", "/task:1"]


def devices_that_are_not_there(tf: Any) -> Any:
    return [run(tf, on(tf, device)) for device in DEVICES]


def devices_that_are_not_there_with_soft_placement(tf: Any) -> Any:
    return [run(tf, on(tf, device), allow_soft_placement=True) for device in DEVICES]


def as_many_cpus_as_asked_for(tf: Any) -> Any:
    return run(tf, on(tf, "/cpu:7"), device_count={"CPU": 8})


def nodes_that_must_share_what_they_cannot(tf: Any) -> Any:
    def build(first: str, second: str) -> Callable[[], Any]:
        def made() -> Any:
            with tf.device(first):
                tf.constant(1.0, name="a")
            with tf.device(second):
                b = tf.constant(2.0, name="b")
            b.op._set_attr("_class", tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"loc:@a"])))
            return b

        return made

    return [
        run(tf, build(first, second), allow_soft_placement=soft, device_count={"CPU": 2})
        for first, second in (("/cpu:0", "/gpu:0"), ("/cpu:0", "/cpu:1"))
        for soft in (False, True)
    ]


def a_group_with_one_request(tf: Any) -> Any:
    def build() -> Any:
        with tf.device("/gpu:0"):
            tf.constant(1.0, name="a")
        b = tf.sqrt(tf.constant(2.0, name="b"), name="root")
        b.op._set_attr("_class", tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"loc:@a"])))
        return b

    return run(tf, build), run(tf, build, allow_soft_placement=True)


def the_log_of_placements(tf: Any) -> Any:
    tf.logging.set_verbosity(tf.logging.WARN)
    with captured() as lines:
        run(tf, on(tf, "/gpu:0"), allow_soft_placement=True, log_device_placement=True)
    return sorted({match[0] for line in lines for match in re.finditer(r"\w+: \(\w+\): /job\S+", line)})


def the_devices_of_a_session(tf: Any) -> Any:
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3, "GPU": 2})) as session:
        return [(each.name, each.device_type, each.memory_limit_bytes) for each in session.list_devices()]


def the_devices_of_a_process(tf: Any) -> Any:
    if tf.__name__ == "dtf":
        from dtf.client import device_lib
    else:
        from tensorflow.python.client import device_lib
    found = [(each.name, each.device_type, each.memory_limit) for each in device_lib.list_local_devices()]
    return found, tf.test.is_gpu_available(), tf.test.gpu_device_name()


@contextmanager
def captured() -> Iterator[list[str]]:
    """What is written to both outputs of this process meanwhile, by whatever library, as lines."""
    lines: list[str] = []
    with tempfile.TemporaryFile() as file:
        kept = [os.dup(number) for number in (1, 2)]
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)
            file.seek(0)
            lines.extend(file.read().decode(errors="replace").splitlines())


BEHAVIOURS = [
    devices_that_are_not_there, devices_that_are_not_there_with_soft_placement, as_many_cpus_as_asked_for,
    nodes_that_must_share_what_they_cannot, a_group_with_one_request, the_log_of_placements,
    the_devices_of_a_session, the_devices_of_a_process,
]  # fmt: skip

if __name__ == "__main__":
    behaviours.run_all(BEHAVIOURS)
