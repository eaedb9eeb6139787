"""A program of Spark, as TensorFlowOnSpark's are. `python spark_program.py MASTER CASE`"""

import sys

import dtfctl.spark
from dtfctl.spark import TFCluster, TFNode

CLUSTER = """
program: "echo on {host}"
readiness: none
engine: {spark: {nodes: 2, sync: false}}
jobs: {worker: 2}
"""


def train_fun(args, ctx):
    """Linear regression with one ps: each worker trains on the rows that it is fed."""
    import numpy as np
    import tensorflow as tf

    cluster, server = TFNode.start_cluster_server(ctx)
    if ctx.job_name == "ps":
        server.join()
        return
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        xs, ys = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None])
        weights = tf.get_variable("weights", [2], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(xs * weights, 1) - ys))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    feed = ctx.get_data_feed(train_mode=True)
    rows = 0
    with tf.train.MonitoredTrainingSession(server.target, is_chief=ctx.task_index == 0) as session:
        while not feed.should_stop():
            batch = feed.next_batch(args["batch_size"])
            if batch:
                rows += len(batch)
                session.run(train, {xs: np.array([row[:2] for row in batch]), ys: [row[2] for row in batch]})
        found = session.run(weights)
    print("rows", rows, "weights", *(f"{each:.3f}" for each in found), flush=True)


def square_fun(args, ctx):
    feed = TFNode.DataFeed(ctx.mgr, False)
    while not feed.should_stop():
        batch = feed.next_batch(7)
        feed.batch_results([each * each for each in batch])


def broken_fun(args, ctx):
    feed = ctx.get_data_feed()
    feed.next_batch(1)
    raise ValueError(f"no more of this on {ctx.job_name}:{ctx.task_index}")


def waiting_fun(args, ctx):
    import time

    print("waiting", flush=True)
    time.sleep(1000)


def main(master, case):
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(master).setAppName("program")
    for key, value in (("driver.host", "127.0.0.1"), ("ui.enabled", "false"), ("executor.memory", "512m")):
        conf.set(f"spark.{key}", value)
    conf.set("spark.executor.cores", "1").set("spark.cores.max", "3")
    sc = SparkContext(conf=conf)
    fed = TFCluster.InputMode.SPARK
    if case == "killed":
        TFCluster.run(sc, waiting_fun, None, 3, 1)
        print("runs", flush=True)
        sys.stdin.read()
    if case == "feeds":
        numbers = sc.parallelize(range(1000), 5)
        rows = numbers.map(lambda n: (n % 7 / 7.0, n % 5 / 5.0, 2.0 * (n % 7) / 7.0 - n % 5 / 5.0))
        cluster = TFCluster.run(sc, train_fun, {"batch_size": 20}, 3, 1, input_mode=fed)
        cluster.train(rows, num_epochs=4)
        cluster.shutdown()
        print("trained", flush=True)
        cluster = TFCluster.run(sc, square_fun, None, 2, 0, input_mode=fed)
        assert cluster.inference(numbers).collect() == [n * n for n in range(1000)]
        cluster.shutdown()
        print("inferred", flush=True)
        cluster = TFCluster.run(sc, broken_fun, None, 2, 0, input_mode=fed)
        try:
            cluster.train(numbers, num_epochs=1)
        except Exception as error:
            print("driver sees", type(error).__name__, str(error).splitlines()[-1], flush=True)
        try:
            cluster.shutdown()
        except Exception as error:
            print("shutdown sees", str(error).splitlines()[-1], flush=True)
        with open("cluster.yaml", "w") as file:
            file.write(CLUSTER)
        dtfctl.spark.run(sc, "cluster.yaml")
        try:
            TFCluster.run(sc, waiting_fun, None, 4, 1, reservation_timeout=6)
        except Exception as error:
            print("too few", error, flush=True)
    sc.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
