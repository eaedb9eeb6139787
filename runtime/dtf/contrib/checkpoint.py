"""tf.contrib.checkpoint: checkpoints of objects under their older place. Only re-exports names."""

import dtf as tf

__all__ = ["Checkpoint", "CheckpointManager"]

Checkpoint = tf.train.Checkpoint
CheckpointManager = tf.train.CheckpointManager
