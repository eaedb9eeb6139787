"""A pole on a cart: many at once, each pushed by a network of its own, as a loop in the graph.

Owns the task of the evolution example: the physics of Barto, Sutton and Anderson (1983) and the networks that act.
"""

from __future__ import annotations

import math

HIDDEN = 8
NETWORK_SIZE = 4 * HIDDEN + HIDDEN + HIDDEN + 1
"""Numbers that make one network: 4 inputs, a hidden layer, one output."""

STEPS = 200
_STEP_S = 0.02
_FORCE_N = 10.0
_GRAVITY = 9.8
_CART_KG, _POLE_KG, _POLE_HALF_M = 1.0, 0.1, 0.5
_TRACK_M, _FALLEN_RAD = 2.4, math.radians(12)


def balance(tf, networks):
    """How many steps, of STEPS, each network keeps its pole upright: float32 [n] for networks [n, NETWORK_SIZE].

    Carts and poles begin near rest, at random, and with the pole up to 5 degrees off.
    """
    first = tf.reshape(networks[:, : 4 * HIDDEN], [-1, 4, HIDDEN])
    first_bias = networks[:, 4 * HIDDEN : 5 * HIDDEN]
    second = networks[:, 5 * HIDDEN : 6 * HIDDEN]
    second_bias = networks[:, 6 * HIDDEN]
    count = tf.shape(networks)[:1]

    def force(state):
        hidden = tf.tanh(tf.reduce_sum(tf.expand_dims(state, 2) * first, 1) + first_bias)
        return _FORCE_N * tf.tanh(tf.reduce_sum(hidden * second, 1) + second_bias)

    def step(number, state, alive, lasted):
        place, speed, angle, turn = tf.unstack(state, axis=1)
        sine, cosine = tf.sin(angle), tf.cos(angle)
        mass = _CART_KG + _POLE_KG
        push = (force(state) + _POLE_KG * _POLE_HALF_M * turn * turn * sine) / mass
        turning = (_GRAVITY * sine - cosine * push) / (_POLE_HALF_M * (4 / 3 - _POLE_KG * cosine * cosine / mass))
        pushed = push - _POLE_KG * _POLE_HALF_M * turning * cosine / mass
        changes = tf.stack([speed, pushed, turn, turning], axis=1)
        state += _STEP_S * changes
        stands = tf.logical_and(tf.abs(state[:, 0]) < _TRACK_M, tf.abs(state[:, 2]) < _FALLEN_RAD)
        alive *= tf.cast(stands, tf.float32)
        # One that has fallen stays where it is, so that its numbers stay small.
        return number + 1, state * tf.expand_dims(alive, 1), alive, lasted + alive

    scale = tf.constant([0.05, 0.05, math.radians(5), 0.05])
    start = scale * tf.random_uniform(tf.concat([count, [4]], 0), -1.0, 1.0)
    alive = tf.ones(count)
    start.set_shape([None, 4])
    some = tf.TensorShape([None])
    return tf.while_loop(
        lambda number, state, alive, lasted: tf.logical_and(number < STEPS, tf.reduce_sum(alive) > 0),
        step,
        [tf.constant(0), start, alive, tf.zeros(count)],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4]), some, some],
    )[3]
