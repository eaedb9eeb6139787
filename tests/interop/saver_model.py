"""One model that both runtimes build: variables of each kind, a queue runner, collections."""


def model(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0]]))
    b = tf.get_variable("b", initializer=tf.constant([0.5]), use_resource=True)
    partitioner = tf.fixed_size_partitioner(2)
    parts = tf.get_variable("parts", initializer=tf.constant([[1.0], [2.0], [3.0]]), partitioner=partitioner)
    y = tf.add(tf.matmul(x, w), b + tf.reduce_sum(tf.convert_to_tensor(parts)), name="y")
    tf.train.get_or_create_global_step()
    queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]], name="queue")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.0)]))
    tf.identity(queue.dequeue(), name="dequeued")
    tf.add_to_collection("outputs", y)
    tf.add_to_collection("rates", 0.25)
    tf.add_to_collection("words", "hello")
    return tf.train.Saver(sharded=True)
