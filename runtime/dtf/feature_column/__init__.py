"""tf.feature_column: converts features of records to the inputs of a model.

    age = tf.feature_column.numeric_column("age")
    town = tf.feature_column.categorical_column_with_vocabulary_list("town", ["Bonn", "Ulm"])
    inputs = tf.feature_column.input_layer(features, [age, tf.feature_column.embedding_column(town, 4)])

Only re-exports names: `dense` and `categorical` have the columns, `model_inputs` their use.
`sequence` has the columns of several time steps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column
"""

from __future__ import annotations

from dtf.feature_column.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_list,
)
from dtf.feature_column.crossed import (
    categorical_column_with_vocabulary_file,
    crossed_column,
    weighted_categorical_column,
)
from dtf.feature_column.dense import (
    bucketized_column,
    embedding_column,
    indicator_column,
    numeric_column,
    shared_embedding_columns,
)
from dtf.feature_column.model_inputs import input_layer, linear_model, make_parse_example_spec
from dtf.feature_column.sequence import (
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
