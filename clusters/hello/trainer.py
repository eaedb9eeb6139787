"""Hello, distributed TensorFlow: a server in this process is a cluster of one task, and a session on it runs a graph.

python trainer.py
python trainer.py --runtime=tensorflow
"""

import sys

if "--runtime=tensorflow" in sys.argv:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
else:
    import dtf as tf

c = tf.constant("Hello, distributed TensorFlow!")
server = tf.train.Server.create_local_server()
sess = tf.Session(server.target)  # Create a session on the server.
print(sess.run(c).decode())
