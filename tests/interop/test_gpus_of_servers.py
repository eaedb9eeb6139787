"""A TensorFlow client must use the devices of a dtf server as it would use a TensorFlow server's GPUs."""

from __future__ import annotations

from dtf.run.devices.backends import FAKE_VARIABLE
from dtf.testing import LocalCluster
from tests.interop.tensorflow_process import needs_tensorflow, run

pytestmark = needs_tensorflow


def test_a_tensorflow_client_trains_on_the_fake_gpus_of_a_dtf_server(monkeypatch):
    monkeypatch.setenv(FAKE_VARIABLE, "GPU:2")
    with LocalCluster({"worker": 1}, processes=True) as cluster:
        monkeypatch.delenv(FAKE_VARIABLE)
        found = run(
            """
            with tf.device("/job:worker/task:0/gpu:1"):
                weights = tf.get_variable("weights", [2], initializer=tf.ones_initializer(), use_resource=False)
                loss = tf.reduce_sum(tf.square(weights * [1.0, 2.0]))
                step = tf.train.AdamOptimizer(0.1).minimize(loss)
            with tf.device("/gpu:7"):
                nowhere = tf.constant(1.0, name="nowhere")
            with tf.Session(sys.argv[1]) as session:
                names = [device.name for device in session.list_devices()]
                session.run(tf.global_variables_initializer())
                losses = [float(session.run([loss, step])[0]) for _ in range(3)]
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                metadata = tf.RunMetadata()
                session.run(loss, options=options, run_metadata=metadata)
                traced = sorted({each.device for each in metadata.step_stats.dev_stats if each.node_stats})
                try:
                    session.run(nowhere)
                    refused = 0
                except tf.errors.OpError as error:
                    refused = error.error_code
            print(json.dumps([names, losses, traced, refused]))
            """,
            cluster.target("worker"),
        )
    names, losses, traced, refused = found
    task = "/job:worker/replica:0/task:0/device:"
    assert names == [f"{task}CPU:0", f"{task}GPU:0", f"{task}GPU:1"]
    assert losses == sorted(losses, reverse=True) and losses[0] == 5.0
    assert f"{task}GPU:1" in traced
    assert refused == 3
