# ARGS: --log_dir word2vec_basic_log
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function
import argparse, collections, math, os, random, sys
import numpy as np
import tensorflow as tf

data_index = 0
try:
    from six.moves import xrange
except ImportError:
    xrange = range
parser = argparse.ArgumentParser()
parser.add_argument("--log_dir", type=str, default="log")
FLAGS, unparsed = parser.parse_known_args()
if not os.path.exists(FLAGS.log_dir):
    os.makedirs(FLAGS.log_dir)
text = "the quick brown fox jumps over the lazy dog while the small cat watches the brown bird and the fox sleeps near the river"
vocabulary = tf.compat.as_str(text).split() * 40
vocabulary_size = 18


def build_dataset(words, n_words):
    count = [["UNK", -1]]
    count.extend(collections.Counter(words).most_common(n_words - 1))
    dictionary = dict()
    for word, _ in count:
        dictionary[word] = len(dictionary)
    data = list()
    unk_count = 0
    for word in words:
        index = dictionary.get(word, 0)
        if index == 0:
            unk_count += 1
        data.append(index)
    count[0][1] = unk_count
    return data, count, dictionary, dict(zip(dictionary.values(), dictionary.keys()))


data, count, dictionary, reverse_dictionary = build_dataset(vocabulary, vocabulary_size)
random.seed(0)


def generate_batch(batch_size, num_skips, skip_window):
    global data_index
    assert batch_size % num_skips == 0
    batch = np.ndarray(shape=(batch_size), dtype=np.int32)
    labels = np.ndarray(shape=(batch_size, 1), dtype=np.int32)
    span = 2 * skip_window + 1
    buffer = collections.deque(maxlen=span)
    if data_index + span > len(data):
        data_index = 0
    buffer.extend(data[data_index : data_index + span])
    data_index += span
    for i in range(batch_size // num_skips):
        context_words = [w for w in range(span) if w != skip_window]
        words_to_use = random.sample(context_words, num_skips)
        for j, context_word in enumerate(words_to_use):
            batch[i * num_skips + j] = buffer[skip_window]
            labels[i * num_skips + j, 0] = buffer[context_word]
        if data_index == len(data):
            buffer.extend(data[0:span])
            data_index = span
        else:
            buffer.append(data[data_index])
            data_index += 1
    data_index = (data_index + len(data) - span) % len(data)
    return batch, labels


batch_size, embedding_size, skip_window, num_skips, num_sampled = 32, 12, 1, 2, 6
valid_examples = np.array([1, 2, 3, 4])
graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(7)
    with tf.name_scope("inputs"):
        train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
        train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
        valid_dataset = tf.constant(valid_examples, dtype=tf.int32)
    with tf.device("/cpu:0"):
        with tf.name_scope("embeddings"):
            embeddings = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
            embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        with tf.name_scope("weights"):
            nce_weights = tf.Variable(
                tf.truncated_normal([vocabulary_size, embedding_size], stddev=1.0 / math.sqrt(embedding_size))
            )
        with tf.name_scope("biases"):
            nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    with tf.name_scope("loss"):
        loss = tf.reduce_mean(
            tf.nn.nce_loss(
                weights=nce_weights,
                biases=nce_biases,
                labels=train_labels,
                inputs=embed,
                num_sampled=num_sampled,
                num_classes=vocabulary_size,
            )
        )
    tf.summary.scalar("loss", loss)
    with tf.name_scope("optimizer"):
        optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    merged = tf.summary.merge_all()
    init = tf.global_variables_initializer()
    saver = tf.train.Saver()
with tf.Session(graph=graph) as session:
    writer = tf.summary.FileWriter(FLAGS.log_dir, session.graph)
    init.run()
    average_loss = 0
    for step in xrange(60):
        batch_inputs, batch_labels = generate_batch(batch_size, num_skips, skip_window)
        feed_dict = {train_inputs: batch_inputs, train_labels: batch_labels}
        run_metadata = tf.RunMetadata()
        _, summary, loss_val = session.run([optimizer, merged, loss], feed_dict=feed_dict, run_metadata=run_metadata)
        average_loss += loss_val
        writer.add_summary(summary, step)
        if step == 59:
            writer.add_run_metadata(run_metadata, "step%d" % step)
        if step % 10 == 9:
            print("Average loss at step ", step, ": ", round(float(average_loss / 10), 5))
            average_loss = 0
    sim = similarity.eval()
    for i in range(4):
        nearest = (-sim[i, :]).argsort()[1:4]
        print(
            "Nearest to %s:" % reverse_dictionary[valid_examples[i]],
            ", ".join("%s %d" % (reverse_dictionary[n], n) for n in nearest),
        )
    final_embeddings = normalized_embeddings.eval()
    with open(FLAGS.log_dir + "/metadata.tsv", "w") as f:
        for i in xrange(vocabulary_size):
            f.write(reverse_dictionary[i] + "\n")
    saver.save(session, os.path.join(FLAGS.log_dir, "model.ckpt"))
    try:
        from tensorflow.contrib.tensorboard.plugins import projector

        config = projector.ProjectorConfig()
        embedding_conf = config.embeddings.add()
        embedding_conf.tensor_name = embeddings.name
        embedding_conf.metadata_path = os.path.join(FLAGS.log_dir, "metadata.tsv")
        projector.visualize_embeddings(writer, config)
        assert os.path.exists(os.path.join(FLAGS.log_dir, "projector_config.pbtxt"))
    except ImportError:
        pass
writer.close()
