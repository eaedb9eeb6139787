"""tf.contrib.training: the placement strategies for tf.train.replica_device_setter."""

from __future__ import annotations

from dtf.train.device_setter import GreedyLoadBalancingStrategy, RandomStrategy, byte_size_load_fn

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]
