"""Layers, backend functions, generators and preprocessing of tf.keras that examples use."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

K = tf.keras


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def fetch(value):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(value)


def test_a_functional_model_reads_sequences_in_both_directions():
    i = K.layers.Input((5,))
    e = K.layers.Embedding(20, 4)(i)
    both = K.layers.Bidirectional(K.layers.GRU(3, return_sequences=True))(e)
    steps = K.layers.TimeDistributed(K.layers.Dense(2))(both)
    o = K.layers.Dense(1, activation="sigmoid")(K.layers.GlobalMaxPooling1D()(steps))
    model = K.Model(inputs=i, outputs=o)
    model.compile(K.optimizers.Adam(lr=0.05), "binary_crossentropy", metrics=["accuracy"])
    x, y = np.random.RandomState(0).randint(0, 20, (16, 5)), np.arange(16) % 2
    losses = model.fit(x, y, epochs=30, batch_size=16, verbose=0).history["loss"]
    assert losses[-1] < losses[0] - 0.1
    assert len(model.trainable_weights) == 1 + 6 + 2 + 2 and both.shape.as_list() == [None, 5, 6]


def test_the_directions_of_bidirectional_are_merged():
    x = tf.ones([2, 3, 4])
    shapes = {mode: K.layers.Bidirectional(K.layers.LSTM(5), merge_mode=mode)(x) for mode in ("concat", "sum", "ave")}
    assert [each.shape.as_list() for each in shapes.values()] == [[2, 10], [2, 5], [2, 5]]
    with pytest.raises(ValueError, match="LSTM, GRU or SimpleRNN"):
        K.layers.Bidirectional(K.layers.Dense(2))(x)
    with pytest.raises(ValueError, match="merge_mode"):
        K.layers.Bidirectional(K.layers.LSTM(5), merge_mode="max")


def test_a_stack_of_convolutions_trains_from_a_generator():
    layers = K.layers
    model = K.Sequential([
        layers.SeparableConv2D(4, 3, input_shape=(8, 8, 2)), layers.ReLU(6.0), layers.GaussianNoise(0.01),
        layers.Conv2DTranspose(3, 2, strides=2), layers.ELU(), layers.GlobalAveragePooling2D(), layers.Dense(2),
        layers.Softmax(),
    ])  # fmt: skip
    model.compile(K.optimizers.SGD(lr=0.1, momentum=0.9, decay=1e-6, nesterov=True), "categorical_crossentropy")
    random = np.random.RandomState(0)

    def batches():
        while True:
            kind = random.randint(0, 2, 4)
            yield random.rand(4, 8, 8, 2) + kind[:, None, None, None], K.utils.to_categorical(kind, 2)

    history = model.fit_generator(batches(), steps_per_epoch=4, epochs=2, verbose=0, validation_data=next(batches()))
    assert len(history.history["loss"]) == 2 and np.isfinite(history.history["val_loss"]).all()
    assert model.predict_generator(batches(), steps=3).shape == (12, 2)
    assert np.isfinite(model.evaluate_generator(batches(), steps=2))
    with pytest.raises(ValueError, match="number of its steps"):
        model.fit_generator(batches())


def test_backend_functions_have_their_names():
    B = K.backend
    x = tf.constant([[1.0, -2.0], [3.0, 4.0]])
    assert fetch(B.clip(x, 0, 3)).tolist() == [[1, 0], [3, 3]]
    assert fetch(B.permute_dimensions(x, (1, 0))).tolist() == [[1, 3], [-2, 4]]
    assert fetch(B.switch(x > 0, x, B.zeros_like(x))).tolist() == [[1, 0], [3, 4]]
    assert fetch(B.random_normal(shape=(B.shape(x)[0], 3))).shape == (2, 3)
    np.testing.assert_allclose(fetch(B.std(x)), np.std([1, -2, 3, 4]))
    np.testing.assert_allclose(fetch(B.binary_crossentropy(tf.constant([1.0]), tf.constant([0.5]))), [np.log(2)], 1e-5)
    with pytest.raises(AttributeError, match="no_such"):
        B.no_such  # noqa: B018


def test_sequences_are_filled_and_texts_numbered():
    pad = K.preprocessing.sequence.pad_sequences
    assert pad([[1], [2, 3, 4]], maxlen=2).tolist() == [[0, 1], [3, 4]]
    assert pad([[1], [2, 3, 4]], padding="post", truncating="post", value=9).tolist() == [[1, 9, 9], [2, 3, 4]]
    tokenizer = K.preprocessing.text.Tokenizer(num_words=3, oov_token="?")
    tokenizer.fit_on_texts(["The cat, the dog.", "the cat"])
    assert tokenizer.word_index == {"?": 1, "the": 2, "cat": 3, "dog": 4}
    assert tokenizer.texts_to_sequences(["the cat runs"]) == [[2, 1, 1]]
    assert tokenizer.texts_to_matrix(["the the"], "count").tolist() == [[0, 0, 2]]
