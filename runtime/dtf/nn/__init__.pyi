"""Made by `python -m tests.public`: where each public name of this package is defined."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtf.build.tensor import Tensor
from dtf.build.tensor_like import DTypeLike, TensorLike
from dtf.layers.choices import Activation
from dtf.wire.dtypes import DType

def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor: ...
def tanh(x: TensorLike, name: str | None = ...) -> Tensor: ...
from dtf.build.ops.activations import crelu as crelu
from dtf.build.ops.activations import elu as elu
from dtf.build.ops.activations import leaky_relu as leaky_relu
from dtf.build.ops.activations import log_softmax as log_softmax
from dtf.build.ops.activations import relu as relu
from dtf.build.ops.activations import relu6 as relu6
from dtf.build.ops.activations import selu as selu
from dtf.build.ops.activations import softmax as softmax
from dtf.build.ops.activations import softplus as softplus
from dtf.build.ops.activations import softsign as softsign
from dtf.build.ops.activations import swish as silu
from dtf.build.ops.activations import swish as swish
from dtf.build.ops.candidate_sampling import all_candidate_sampler as all_candidate_sampler
from dtf.build.ops.candidate_sampling import compute_accidental_hits as compute_accidental_hits
from dtf.build.ops.candidate_sampling import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from dtf.build.ops.candidate_sampling import learned_unigram_candidate_sampler as learned_unigram_candidate_sampler
from dtf.build.ops.candidate_sampling import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from dtf.build.ops.candidate_sampling import nce_loss as nce_loss
from dtf.build.ops.candidate_sampling import sampled_softmax_loss as sampled_softmax_loss
from dtf.build.ops.candidate_sampling import uniform_candidate_sampler as uniform_candidate_sampler
from dtf.build.ops.conv import atrous_conv2d as atrous_conv2d
from dtf.build.ops.conv import avg_pool as avg_pool
from dtf.build.ops.conv import avg_pool2d as avg_pool2d
from dtf.build.ops.conv import conv1d as conv1d
from dtf.build.ops.conv import conv2d as conv2d
from dtf.build.ops.conv import conv2d_backprop_filter as conv2d_backprop_filter
from dtf.build.ops.conv import conv2d_backprop_input as conv2d_backprop_input
from dtf.build.ops.conv import conv2d_transpose as conv2d_transpose
from dtf.build.ops.conv import depthwise_conv2d as depthwise_conv2d
from dtf.build.ops.conv import depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter
from dtf.build.ops.conv import depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input
from dtf.build.ops.conv import depthwise_conv2d_native as depthwise_conv2d_native
from dtf.build.ops.conv import depthwise_conv2d_native_backprop_filter as depthwise_conv2d_native_backprop_filter
from dtf.build.ops.conv import depthwise_conv2d_native_backprop_input as depthwise_conv2d_native_backprop_input
from dtf.build.ops.conv import max_pool as max_pool
from dtf.build.ops.conv import max_pool2d as max_pool2d
from dtf.build.ops.conv import separable_conv2d as separable_conv2d
from dtf.build.ops.convolution import atrous_conv2d_transpose as atrous_conv2d_transpose
from dtf.build.ops.convolution import conv1d_transpose as conv1d_transpose
from dtf.build.ops.convolution import conv_transpose as conv_transpose
from dtf.build.ops.convolution import convolution as convolution
from dtf.build.ops.convolution import with_space_to_batch as with_space_to_batch
from dtf.build.ops.cross_entropy import l2_loss as l2_loss
from dtf.build.ops.cross_entropy import log_poisson_loss as log_poisson_loss
from dtf.build.ops.cross_entropy import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from dtf.build.ops.cross_entropy import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from dtf.build.ops.cross_entropy import softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2
from dtf.build.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits
from dtf.build.ops.cross_entropy import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from dtf.build.ops.ctc_dense import collapse_repeated as collapse_repeated
from dtf.build.ops.ctc_dense import ctc_loss_v2 as ctc_loss_v2
from dtf.build.ops.ctc_dense import ctc_unique_labels as ctc_unique_labels
from dtf.build.ops.embedding import embedding_lookup as embedding_lookup
from dtf.build.ops.embedding import embedding_lookup_sparse as embedding_lookup_sparse
from dtf.build.ops.embedding import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from dtf.build.ops.nn import bias_add as bias_add
from dtf.build.ops.nn import dropout as dropout
from dtf.build.ops.nn import in_top_k as in_top_k
from dtf.build.ops.nn import nth_element as nth_element
from dtf.build.ops.nn import relu_layer as relu_layer
from dtf.build.ops.nn import top_k as top_k
from dtf.build.ops.nn import xw_plus_b as xw_plus_b
from dtf.build.ops.nn import zero_fraction as zero_fraction
from dtf.build.ops.normalization import batch_norm_with_global_normalization as batch_norm_with_global_normalization
from dtf.build.ops.normalization import batch_normalization as batch_normalization
from dtf.build.ops.normalization import fused_batch_norm as fused_batch_norm
from dtf.build.ops.normalization import l2_normalize as l2_normalize
from dtf.build.ops.normalization import local_response_normalization as local_response_normalization
from dtf.build.ops.normalization import lrn as lrn
from dtf.build.ops.normalization import moments as moments
from dtf.build.ops.normalization import normalize_moments as normalize_moments
from dtf.build.ops.normalization import sufficient_statistics as sufficient_statistics
from dtf.build.ops.normalization import weighted_moments as weighted_moments
from dtf.build.ops.pools import avg_pool1d as avg_pool1d
from dtf.build.ops.pools import avg_pool_v2 as avg_pool_v2
from dtf.build.ops.pools import max_pool1d as max_pool1d
from dtf.build.ops.pools import max_pool_v2 as max_pool_v2
from dtf.build.ops.pools import pool as pool
from dtf.build.ops.rearranging import depth_to_space as depth_to_space
from dtf.build.ops.rearranging import space_to_batch as space_to_batch
from dtf.build.ops.rearranging import space_to_depth as space_to_depth
from dtf.build.ops.sequence import ctc_beam_search_decoder as ctc_beam_search_decoder
from dtf.build.ops.sequence import ctc_greedy_decoder as ctc_greedy_decoder
from dtf.build.ops.sequence import ctc_loss as ctc_loss
from dtf.build.ops.volume import avg_pool3d as avg_pool3d
from dtf.build.ops.volume import conv3d as conv3d
from dtf.build.ops.volume import conv3d_backprop_filter as conv3d_backprop_filter
from dtf.build.ops.volume import conv3d_backprop_filter_v2 as conv3d_backprop_filter_v2
from dtf.build.ops.volume import conv3d_transpose as conv3d_transpose
from dtf.build.ops.volume import dilation2d as dilation2d
from dtf.build.ops.volume import erosion2d as erosion2d
from dtf.build.ops.volume import max_pool3d as max_pool3d
from dtf.build.ops.volume import max_pool_with_argmax as max_pool_with_argmax
from dtf.nn import rnn_cell as rnn_cell
from dtf.nn import rnn_loops as rnn_loops
from dtf.nn import rnn_steps as rnn_steps
from dtf.nn.rnn_loops import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
from dtf.nn.rnn_loops import dynamic_rnn as dynamic_rnn
from dtf.nn.rnn_loops import raw_rnn as raw_rnn
from dtf.nn.rnn_unrolled import static_bidirectional_rnn as static_bidirectional_rnn
from dtf.nn.rnn_unrolled import static_rnn as static_rnn
from dtf.nn.rnn_unrolled import static_state_saving_rnn as static_state_saving_rnn
