import os, sys

sys.path.append(os.getcwd())
import numpy as np
import tensorflow as tf

_params, _param_aliases = {}, {}


def param(name, *args, **kwargs):
    if name not in _params:
        kwargs["name"] = name
        p = tf.Variable(*args, **kwargs)
        p.param = True
        _params[name] = p
    result = _params[name]
    i = 0
    while result in _param_aliases:
        i += 1
        result = _param_aliases[result]
    return result


def params_with_name(name):
    return [p for n, p in _params.items() if name in n]


def Linear(name, input_dim, output_dim, inputs, initialization=None):
    with tf.name_scope(name) as scope:
        w = np.random.uniform(-np.sqrt(2.0 / input_dim), np.sqrt(2.0 / input_dim), size=(input_dim, output_dim)).astype(
            "float32"
        )
        weight = param(name + ".W", w)
        if inputs.get_shape().ndims == 2:
            result = tf.matmul(inputs, weight)
        else:
            result = tf.reshape(
                tf.matmul(tf.reshape(inputs, [-1, input_dim]), weight),
                tf.stack(tf.unstack(tf.shape(inputs))[:-1] + [output_dim]),
            )
        return tf.nn.bias_add(result, param(name + ".b", np.zeros((output_dim,), dtype="float32")))


def Generator(n, noise=None):
    if noise is None:
        noise = tf.random_normal([n, 2], seed=4)
    o = tf.nn.relu(Linear("Generator.1", 2, 16, noise))
    o = tf.nn.relu(Linear("Generator.2", 16, 16, o))
    return Linear("Generator.3", 16, 2, o)


def Discriminator(inputs):
    o = tf.nn.relu(Linear("Discriminator.1", 2, 16, inputs))
    o = tf.nn.relu(Linear("Discriminator.2", 16, 16, o))
    return tf.reshape(Linear("Discriminator.3", 16, 1, o), [-1])


np.random.seed(0)
tf.set_random_seed(0)
real = tf.placeholder(tf.float32, shape=[None, 2])
fake = Generator(32)
dr, df = Discriminator(real), Discriminator(fake)
disc_cost = tf.reduce_mean(df) - tf.reduce_mean(dr)
gen_cost = -tf.reduce_mean(df)
alpha = tf.random_uniform(shape=[32, 1], minval=0.0, maxval=1.0, seed=9)
interpolates = alpha * real + ((1 - alpha) * fake)
disc_interpolates = Discriminator(interpolates)
gradients = tf.gradients(disc_interpolates, [interpolates])[0]
slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), reduction_indices=[1]))
gradient_penalty = tf.reduce_mean((slopes - 1.0) ** 2)
disc_cost += 0.1 * gradient_penalty
disc_train_op = tf.train.AdamOptimizer(learning_rate=1e-3, beta1=0.5, beta2=0.9).minimize(
    disc_cost, var_list=params_with_name("Discriminator")
)
gen_train_op = tf.train.AdamOptimizer(learning_rate=1e-3, beta1=0.5, beta2=0.9).minimize(
    gen_cost, var_list=params_with_name("Generator")
)
clip_ops = []
for var in params_with_name("Discriminator"):
    clip_ops.append(tf.assign(var, tf.clip_by_value(var, -0.5, 0.5)))
clip = tf.group(*clip_ops)
for name, grads_and_vars in [
    ("D", tf.train.AdamOptimizer().compute_gradients(disc_cost, var_list=params_with_name("Discriminator")))
]:
    total = 0
    for g, v in grads_and_vars:
        shape = v.get_shape()
        c = 1
        for dim in shape:
            c *= int(dim)
        total += c
    print(total)


def inf_train_gen():
    rng = np.random.RandomState(3)
    while True:
        p = rng.randn(32, 2) * 0.02
        c = rng.randint(0, 8, 32) * np.pi / 4
        yield (p + np.stack([np.cos(c), np.sin(c)], 1)).astype("float32")


with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    gen = inf_train_gen()
    for iteration in range(10):
        if iteration > 0:
            session.run(gen_train_op)
        for i in range(3):
            _disc_cost, _ = session.run([disc_cost, disc_train_op], feed_dict={real: next(gen)})
        if iteration == 5:
            session.run(clip)
        print(iteration, "%.5f" % _disc_cost)
