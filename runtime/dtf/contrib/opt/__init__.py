"""tf.contrib.opt: optimizers besides those of tf.train.

    rules ......... rules of their own: AdaMax, Nadam, AddSign, PowerSign, LARS, lazy Adam
    weight_decay .. variables that decay apart from their gradients
    wrappers ...... optimizers around others
    averaging ..... workers' copies of variables, averaged; stale gradients left out
    external ...... minimizers outside of the graph, such as scipy's

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/opt
"""

from dtf.contrib.opt.averaging import (
    DropStaleGradientOptimizer,
    ElasticAverageCustomGetter,
    ElasticAverageOptimizer,
    ModelAverageCustomGetter,
    ModelAverageOptimizer,
)
from dtf.contrib.opt.external import ExternalOptimizerInterface, ScipyOptimizerInterface
from dtf.contrib.opt.rules import (
    AdaMaxOptimizer,
    AddSignOptimizer,
    LARSOptimizer,
    LazyAdamOptimizer,
    NadamOptimizer,
    PowerSignOptimizer,
)
from dtf.contrib.opt.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from dtf.contrib.opt.wrappers import (
    MovingAverageOptimizer,
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

__all__ = [
    "AdaMaxOptimizer", "AdamWOptimizer", "AddSignOptimizer", "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer", "ElasticAverageCustomGetter", "ElasticAverageOptimizer",
    "ModelAverageCustomGetter", "ModelAverageOptimizer",
    "ExternalOptimizerInterface", "LARSOptimizer", "LazyAdamOptimizer", "MomentumWOptimizer",
    "MovingAverageOptimizer", "MultitaskOptimizerWrapper", "NadamOptimizer", "PowerSignOptimizer",
    "ScipyOptimizerInterface", "VariableClippingOptimizer", "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]  # fmt: skip
