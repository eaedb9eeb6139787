"""Made by `python -m tests.public`: where each public name of this package is defined."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtf.build.tensor import Tensor
from dtf.build.tensor_like import DTypeLike, TensorLike
from dtf.layers.choices import Activation
from dtf.wire.dtypes import DType

__version__: str
def acos(x: TensorLike, name: str | None = ...) -> Tensor: ...
def acosh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def add(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def asin(x: TensorLike, name: str | None = ...) -> Tensor: ...
def asinh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def atan(x: TensorLike, name: str | None = ...) -> Tensor: ...
def atan2(y: TensorLike, x: TensorLike, name: str | None = ...) -> Tensor: ...
def atanh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = ...) -> Tensor: ...
def bitwise_and(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def bitwise_or(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def bitwise_xor(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def ceil(x: TensorLike, name: str | None = ...) -> Tensor: ...
def cos(x: TensorLike, name: str | None = ...) -> Tensor: ...
def cosh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def digamma(x: TensorLike, name: str | None = ...) -> Tensor: ...
def equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def erf(x: TensorLike, name: str | None = ...) -> Tensor: ...
def erfc(x: TensorLike, name: str | None = ...) -> Tensor: ...
def erfinv(x: TensorLike, name: str | None = ...) -> Tensor: ...
def exp(x: TensorLike, name: str | None = ...) -> Tensor: ...
def expm1(x: TensorLike, name: str | None = ...) -> Tensor: ...
def floor(x: TensorLike, name: str | None = ...) -> Tensor: ...
def floor_div(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def floormod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def greater(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def greater_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def igamma(a: TensorLike, x: TensorLike, name: str | None = ...) -> Tensor: ...
def igammac(a: TensorLike, x: TensorLike, name: str | None = ...) -> Tensor: ...
def invert(x: TensorLike, name: str | None = ...) -> Tensor: ...
def is_finite(x: TensorLike, name: str | None = ...) -> Tensor: ...
def is_inf(x: TensorLike, name: str | None = ...) -> Tensor: ...
def is_nan(x: TensorLike, name: str | None = ...) -> Tensor: ...
def left_shift(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def less(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def less_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def lgamma(x: TensorLike, name: str | None = ...) -> Tensor: ...
def log(x: TensorLike, name: str | None = ...) -> Tensor: ...
def log1p(x: TensorLike, name: str | None = ...) -> Tensor: ...
def logical_and(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def logical_not(x: TensorLike, name: str | None = ...) -> Tensor: ...
def logical_or(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def maximum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def minimum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def mod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def multiply(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def ndtri(x: TensorLike, name: str | None = ...) -> Tensor: ...
def negative(x: TensorLike, name: str | None = ...) -> Tensor: ...
def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = ...) -> Tensor: ...
def not_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def polygamma(a: TensorLike, x: TensorLike, name: str | None = ...) -> Tensor: ...
def pow(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def realdiv(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def reciprocal(x: TensorLike, name: str | None = ...) -> Tensor: ...
def right_shift(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def rint(x: TensorLike, name: str | None = ...) -> Tensor: ...
def rsqrt(x: TensorLike, name: str | None = ...) -> Tensor: ...
def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor: ...
def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor: ...
def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor: ...
def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor: ...
def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor: ...
def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sign(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sin(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sinh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sqrt(x: TensorLike, name: str | None = ...) -> Tensor: ...
def square(x: TensorLike, name: str | None = ...) -> Tensor: ...
def squared_difference(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def subtract(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def tan(x: TensorLike, name: str | None = ...) -> Tensor: ...
def tanh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def truncatediv(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def truncatemod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def unsorted_segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor: ...
def unsorted_segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor: ...
def unsorted_segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor: ...
def unsorted_segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor: ...
def xdivy(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def xlog1py(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def xlogy(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def zeta(x: TensorLike, q: TensorLike, name: str | None = ...) -> Tensor: ...
from dtf import app as app
from dtf import audio as audio
from dtf import behavior as behavior
from dtf import bitwise as bitwise
from dtf import blas_environment as blas_environment
from dtf import build as build
from dtf import compat as compat
from dtf import config as config
from dtf import contrib as contrib
from dtf import data as data
from dtf import debugging as debugging
from dtf import distribute as distribute
from dtf import distributions as distributions
from dtf import dtypes as dtypes
from dtf import estimator as estimator
from dtf import feature_column as feature_column
from dtf import flags as flags
from dtf import gfile as gfile
from dtf import graph_names as graph_names
from dtf import graph_util as graph_util
from dtf import image as image
from dtf import initializers as initializers
from dtf import io as io
from dtf import keras as keras
from dtf import layers as layers
from dtf import linalg as linalg
from dtf import logging as logging
from dtf import lookup as lookup
from dtf import losses as losses
from dtf import manip as manip
from dtf import math as math
from dtf import metrics as metrics
from dtf import nn as nn
from dtf import profiler as profiler
from dtf import python_io as python_io
from dtf import quantization as quantization
from dtf import queue as queue
from dtf import ragged as ragged
from dtf import random as random
from dtf import raw_ops as raw_ops
from dtf import resource_loader as resource_loader
from dtf import saved_model as saved_model
from dtf import sets as sets
from dtf import signal as signal
from dtf import sparse as sparse
from dtf import spectral as spectral
from dtf import strings as strings
from dtf import summary as summary
from dtf import sysconfig as sysconfig
from dtf import test as test
from dtf import testing as testing
from dtf import train as train
from dtf import version as version
from dtf import wire as wire
from dtf.behavior import disable_control_flow_v2 as disable_control_flow_v2
from dtf.behavior import disable_eager_execution as disable_eager_execution
from dtf.behavior import disable_tensor_equality as disable_tensor_equality
from dtf.behavior import disable_v2_behavior as disable_v2_behavior
from dtf.behavior import disable_v2_tensorshape as disable_v2_tensorshape
from dtf.behavior import executing_eagerly as executing_eagerly
from dtf.build import nest as nest
from dtf.build.constant import constant as constant
from dtf.build.conversion import convert_to_tensor as convert_to_tensor
from dtf.build.conversion import register_tensor_conversion_function as register_tensor_conversion_function
from dtf.build.custom_gradient import custom_gradient as custom_gradient
from dtf.build.default_graph import add_to_collection as add_to_collection
from dtf.build.default_graph import add_to_collections as add_to_collections
from dtf.build.default_graph import colocate_with as colocate_with
from dtf.build.default_graph import container as container
from dtf.build.default_graph import control_dependencies as control_dependencies
from dtf.build.default_graph import device as device
from dtf.build.default_graph import get_collection as get_collection
from dtf.build.default_graph import get_collection_ref as get_collection_ref
from dtf.build.default_graph import get_default_graph as get_default_graph
from dtf.build.default_graph import get_default_session as get_default_session
from dtf.build.default_graph import init_scope as init_scope
from dtf.build.default_graph import name_scope as name_scope
from dtf.build.default_graph import reset_default_graph as reset_default_graph
from dtf.build.default_stack import default_session_stack as default_session_stack
from dtf.build.gradients import AggregationMethod as AggregationMethod
from dtf.build.gradients import NoGradient as NoGradient
from dtf.build.gradients import NotDifferentiable as NotDifferentiable
from dtf.build.gradients import RegisterGradient as RegisterGradient
from dtf.build.gradients import UnconnectedGradients as UnconnectedGradients
from dtf.build.gradients import gradients as gradients
from dtf.build.gradients import no_gradient as no_gradient
from dtf.build.graph import Graph as Graph
from dtf.build.graph_keys import GraphKeys as GraphKeys
from dtf.build.hessians import hessians as hessians
from dtf.build.importer import import_graph_def as import_graph_def
from dtf.build.initializers import constant_initializer as constant_initializer
from dtf.build.initializers import glorot_normal_initializer as glorot_normal_initializer
from dtf.build.initializers import glorot_uniform_initializer as glorot_uniform_initializer
from dtf.build.initializers import ones_initializer as ones_initializer
from dtf.build.initializers import orthogonal_initializer as orthogonal_initializer
from dtf.build.initializers import random_normal_initializer as random_normal_initializer
from dtf.build.initializers import random_uniform_initializer as random_uniform_initializer
from dtf.build.initializers import truncated_normal_initializer as truncated_normal_initializer
from dtf.build.initializers import uniform_unit_scaling_initializer as uniform_unit_scaling_initializer
from dtf.build.initializers import variance_scaling_initializer as variance_scaling_initializer
from dtf.build.initializers import zeros_initializer as zeros_initializer
from dtf.build.ops.array import bitcast as bitcast
from dtf.build.ops.array import broadcast_dynamic_shape as broadcast_dynamic_shape
from dtf.build.ops.array import broadcast_static_shape as broadcast_static_shape
from dtf.build.ops.array import broadcast_to as broadcast_to
from dtf.build.ops.array import check_numerics as check_numerics
from dtf.build.ops.array import ensure_shape as ensure_shape
from dtf.build.ops.array import expand_dims as expand_dims
from dtf.build.ops.array import guarantee_const as guarantee_const
from dtf.build.ops.array import identity as identity
from dtf.build.ops.array import identity_n as identity_n
from dtf.build.ops.array import placeholder as placeholder
from dtf.build.ops.array import placeholder_with_default as placeholder_with_default
from dtf.build.ops.array import rank as rank
from dtf.build.ops.array import reshape as reshape
from dtf.build.ops.array import shape as shape
from dtf.build.ops.array import shape_n as shape_n
from dtf.build.ops.array import size as size
from dtf.build.ops.array import sparse_placeholder as sparse_placeholder
from dtf.build.ops.array import squeeze as squeeze
from dtf.build.ops.array import stop_gradient as stop_gradient
from dtf.build.ops.array_rare import edit_distance as edit_distance
from dtf.build.ops.array_rare import unravel_index as unravel_index
from dtf.build.ops.check_ops import add_check_numerics_ops as add_check_numerics_ops
from dtf.build.ops.check_ops import assert_equal as assert_equal
from dtf.build.ops.check_ops import assert_greater as assert_greater
from dtf.build.ops.check_ops import assert_greater_equal as assert_greater_equal
from dtf.build.ops.check_ops import assert_integer as assert_integer
from dtf.build.ops.check_ops import assert_less as assert_less
from dtf.build.ops.check_ops import assert_less_equal as assert_less_equal
from dtf.build.ops.check_ops import assert_near as assert_near
from dtf.build.ops.check_ops import assert_negative as assert_negative
from dtf.build.ops.check_ops import assert_non_negative as assert_non_negative
from dtf.build.ops.check_ops import assert_non_positive as assert_non_positive
from dtf.build.ops.check_ops import assert_none_equal as assert_none_equal
from dtf.build.ops.check_ops import assert_positive as assert_positive
from dtf.build.ops.check_ops import assert_proper_iterable as assert_proper_iterable
from dtf.build.ops.check_ops import assert_rank as assert_rank
from dtf.build.ops.check_ops import assert_rank_at_least as assert_rank_at_least
from dtf.build.ops.check_ops import assert_rank_in as assert_rank_in
from dtf.build.ops.check_ops import assert_same_float_dtype as assert_same_float_dtype
from dtf.build.ops.check_ops import assert_scalar as assert_scalar
from dtf.build.ops.check_ops import assert_type as assert_type
from dtf.build.ops.check_ops import is_non_decreasing as is_non_decreasing
from dtf.build.ops.check_ops import is_numeric_tensor as is_numeric_tensor
from dtf.build.ops.check_ops import is_strictly_increasing as is_strictly_increasing
from dtf.build.ops.clip import clip_by_average_norm as clip_by_average_norm
from dtf.build.ops.clip import clip_by_global_norm as clip_by_global_norm
from dtf.build.ops.clip import clip_by_norm as clip_by_norm
from dtf.build.ops.clip import clip_by_value as clip_by_value
from dtf.build.ops.clip import global_norm as global_norm
from dtf.build.ops.confusion_matrix import confusion_matrix as confusion_matrix
from dtf.build.ops.control_flow import Assert as Assert
from dtf.build.ops.control_flow import case as case
from dtf.build.ops.control_flow import cond as cond
from dtf.build.ops.control_flow import while_loop as while_loop
from dtf.build.ops.counting import bincount as bincount
from dtf.build.ops.counting import histogram_fixed_width as histogram_fixed_width
from dtf.build.ops.counting import histogram_fixed_width_bins as histogram_fixed_width_bins
from dtf.build.ops.critical_section import CriticalSection as CriticalSection
from dtf.build.ops.data_flow import ConditionalAccumulator as ConditionalAccumulator
from dtf.build.ops.data_flow import ConditionalAccumulatorBase as ConditionalAccumulatorBase
from dtf.build.ops.data_flow import FIFOQueue as FIFOQueue
from dtf.build.ops.data_flow import PaddingFIFOQueue as PaddingFIFOQueue
from dtf.build.ops.data_flow import PriorityQueue as PriorityQueue
from dtf.build.ops.data_flow import QueueBase as QueueBase
from dtf.build.ops.data_flow import RandomShuffleQueue as RandomShuffleQueue
from dtf.build.ops.data_flow import SparseConditionalAccumulator as SparseConditionalAccumulator
from dtf.build.ops.data_flow import delete_session_tensor as delete_session_tensor
from dtf.build.ops.data_flow import get_session_handle as get_session_handle
from dtf.build.ops.data_flow import get_session_tensor as get_session_tensor
from dtf.build.ops.decompositions import cholesky as cholesky
from dtf.build.ops.decompositions import cholesky_solve as cholesky_solve
from dtf.build.ops.decompositions import logdet as logdet
from dtf.build.ops.decompositions import matrix_determinant as matrix_determinant
from dtf.build.ops.decompositions import matrix_inverse as matrix_inverse
from dtf.build.ops.decompositions import matrix_solve as matrix_solve
from dtf.build.ops.decompositions import matrix_solve_ls as matrix_solve_ls
from dtf.build.ops.decompositions import matrix_triangular_solve as matrix_triangular_solve
from dtf.build.ops.decompositions import qr as qr
from dtf.build.ops.decompositions import self_adjoint_eig as self_adjoint_eig
from dtf.build.ops.decompositions import self_adjoint_eigvals as self_adjoint_eigvals
from dtf.build.ops.decompositions import slogdet as slogdet
from dtf.build.ops.decompositions import svd as svd
from dtf.build.ops.diagonals import diag as diag
from dtf.build.ops.diagonals import diag_part as diag_part
from dtf.build.ops.diagonals import matrix_band_part as matrix_band_part
from dtf.build.ops.diagonals import matrix_diag as matrix_diag
from dtf.build.ops.diagonals import matrix_diag_part as matrix_diag_part
from dtf.build.ops.diagonals import matrix_set_diag as matrix_set_diag
from dtf.build.ops.einsum import einsum as einsum
from dtf.build.ops.fake_quant import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from dtf.build.ops.fake_quant import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from dtf.build.ops.fake_quant import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from dtf.build.ops.fake_quant import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from dtf.build.ops.fake_quant import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from dtf.build.ops.fake_quant import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from dtf.build.ops.filling import fill as fill
from dtf.build.ops.filling import meshgrid as meshgrid
from dtf.build.ops.filling import one_hot as one_hot
from dtf.build.ops.filling import ones as ones
from dtf.build.ops.filling import ones_like as ones_like
from dtf.build.ops.filling import sequence_mask as sequence_mask
from dtf.build.ops.filling import zeros as zeros
from dtf.build.ops.filling import zeros_like as zeros_like
from dtf.build.ops.functional import foldl as foldl
from dtf.build.ops.functional import foldr as foldr
from dtf.build.ops.functional import map_fn as map_fn
from dtf.build.ops.functional import scan as scan
from dtf.build.ops.gathering import batch_gather as batch_gather
from dtf.build.ops.gathering import dynamic_partition as dynamic_partition
from dtf.build.ops.gathering import dynamic_stitch as dynamic_stitch
from dtf.build.ops.gathering import gather as gather
from dtf.build.ops.gathering import gather_nd as gather_nd
from dtf.build.ops.gathering import scatter_nd as scatter_nd
from dtf.build.ops.gathering import sparse_mask as sparse_mask
from dtf.build.ops.gathering import tensor_scatter_add as tensor_scatter_add
from dtf.build.ops.gathering import tensor_scatter_sub as tensor_scatter_sub
from dtf.build.ops.gathering import tensor_scatter_update as tensor_scatter_update
from dtf.build.ops.io import matching_files as matching_files
from dtf.build.ops.io import merge_v2_checkpoints as merge_v2_checkpoints
from dtf.build.ops.io import numpy_function as numpy_function
from dtf.build.ops.io import parse_tensor as parse_tensor
from dtf.build.ops.io import py_func as py_func
from dtf.build.ops.io import read_file as read_file
from dtf.build.ops.io import restore_v2 as restore_v2
from dtf.build.ops.io import save_v2 as save_v2
from dtf.build.ops.io import serialize_tensor as serialize_tensor
from dtf.build.ops.io import sharded_filename as sharded_filename
from dtf.build.ops.io import sharded_filespec as sharded_filespec
from dtf.build.ops.io import write_file as write_file
from dtf.build.ops.joining import concat as concat
from dtf.build.ops.joining import pad as pad
from dtf.build.ops.joining import parallel_stack as parallel_stack
from dtf.build.ops.joining import split as split
from dtf.build.ops.joining import stack as stack
from dtf.build.ops.joining import tile as tile
from dtf.build.ops.joining import unstack as unstack
from dtf.build.ops.linalg import adjoint as adjoint
from dtf.build.ops.linalg import cross as cross
from dtf.build.ops.linalg import eye as eye
from dtf.build.ops.linalg import matmul as matmul
from dtf.build.ops.linalg import matvec as matvec
from dtf.build.ops.linalg import norm as norm
from dtf.build.ops.linalg import normalize as normalize
from dtf.build.ops.linalg import sparse_matmul as sparse_matmul
from dtf.build.ops.linalg import tensordot as tensordot
from dtf.build.ops.linalg import trace as trace
from dtf.build.ops.logging_ops import Print as Print
from dtf.build.ops.logging_ops import timestamp as timestamp
from dtf.build.ops.lookup import initialize_all_tables as initialize_all_tables
from dtf.build.ops.lookup import tables_initializer as tables_initializer
from dtf.build.ops.math import abs as abs
from dtf.build.ops.math import accumulate_n as accumulate_n
from dtf.build.ops.math import add_n as add_n
from dtf.build.ops.math import angle as angle
from dtf.build.ops.math import cast as cast
from dtf.build.ops.math import complex as complex
from dtf.build.ops.math import conj as conj
from dtf.build.ops.math import div as div
from dtf.build.ops.math import div_no_nan as div_no_nan
from dtf.build.ops.math import divide as divide
from dtf.build.ops.math import divide_no_nan as divide_no_nan
from dtf.build.ops.math import floordiv as floordiv
from dtf.build.ops.math import imag as imag
from dtf.build.ops.math import lin_space as lin_space
from dtf.build.ops.math import linspace as linspace
from dtf.build.ops.math import log_sigmoid as log_sigmoid
from dtf.build.ops.math import logical_xor as logical_xor
from dtf.build.ops.math import polyval as polyval
from dtf.build.ops.math import range as range
from dtf.build.ops.math import real as real
from dtf.build.ops.math import reciprocal_no_nan as reciprocal_no_nan
from dtf.build.ops.math import round as round
from dtf.build.ops.math import saturate_cast as saturate_cast
from dtf.build.ops.math import scalar_mul as scalar_mul
from dtf.build.ops.math import to_bfloat16 as to_bfloat16
from dtf.build.ops.math import to_complex128 as to_complex128
from dtf.build.ops.math import to_complex64 as to_complex64
from dtf.build.ops.math import to_double as to_double
from dtf.build.ops.math import to_float as to_float
from dtf.build.ops.math import to_int32 as to_int32
from dtf.build.ops.math import to_int64 as to_int64
from dtf.build.ops.math import truediv as truediv
from dtf.build.ops.matrix_functions import matrix_square_root as matrix_square_root
from dtf.build.ops.newer_names import assert_all_finite as assert_all_finite
from dtf.build.ops.newer_names import control_flow_v2_enabled as control_flow_v2_enabled
from dtf.build.ops.newer_names import create_partitioned_variables as create_partitioned_variables
from dtf.build.ops.newer_names import dimension_at_index as dimension_at_index
from dtf.build.ops.newer_names import executing_eagerly_outside_functions as executing_eagerly_outside_functions
from dtf.build.ops.newer_names import extract_volume_patches as extract_volume_patches
from dtf.build.ops.newer_names import fingerprint as fingerprint
from dtf.build.ops.newer_names import get_static_value as get_static_value
from dtf.build.ops.newer_names import is_symbolic_tensor as is_symbolic_tensor
from dtf.build.ops.newer_names import is_tensor as is_tensor
from dtf.build.ops.newer_names import repeat as repeat
from dtf.build.ops.newer_names import sparse_merge as sparse_merge
from dtf.build.ops.newer_names import switch_case as switch_case
from dtf.build.ops.newer_names import tensor_scatter_nd_add as tensor_scatter_nd_add
from dtf.build.ops.newer_names import tensor_scatter_nd_max as tensor_scatter_nd_max
from dtf.build.ops.newer_names import tensor_scatter_nd_min as tensor_scatter_nd_min
from dtf.build.ops.newer_names import tensor_scatter_nd_sub as tensor_scatter_nd_sub
from dtf.build.ops.newer_names import tensor_scatter_nd_update as tensor_scatter_nd_update
from dtf.build.ops.newer_names import verify_tensor_all_finite as verify_tensor_all_finite
from dtf.build.ops.ordering import group as group
from dtf.build.ops.ordering import no_op as no_op
from dtf.build.ops.ordering import tuple as tuple
from dtf.build.ops.parsing import FixedLenFeature as FixedLenFeature
from dtf.build.ops.parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from dtf.build.ops.parsing import SparseFeature as SparseFeature
from dtf.build.ops.parsing import VarLenFeature as VarLenFeature
from dtf.build.ops.parsing import decode_json_example as decode_json_example
from dtf.build.ops.parsing import parse_example as parse_example
from dtf.build.ops.parsing import parse_sequence_example as parse_sequence_example
from dtf.build.ops.parsing import parse_single_example as parse_single_example
from dtf.build.ops.parsing import parse_single_sequence_example as parse_single_sequence_example
from dtf.build.ops.python_functions import function as function
from dtf.build.ops.python_functions import grad_pass_through as grad_pass_through
from dtf.build.ops.python_functions import print as print
from dtf.build.ops.python_functions import py_function as py_function
from dtf.build.ops.python_functions import recompute_grad as recompute_grad
from dtf.build.ops.python_functions import vectorized_map as vectorized_map
from dtf.build.ops.quantization import dequantize as dequantize
from dtf.build.ops.quantization import quantize as quantize
from dtf.build.ops.quantization import quantize_v2 as quantize_v2
from dtf.build.ops.quantization import quantized_concat as quantized_concat
from dtf.build.ops.random import categorical as categorical
from dtf.build.ops.random import get_seed as get_seed
from dtf.build.ops.random import multinomial as multinomial
from dtf.build.ops.random import random_crop as random_crop
from dtf.build.ops.random import random_gamma as random_gamma
from dtf.build.ops.random import random_normal as random_normal
from dtf.build.ops.random import random_poisson as random_poisson
from dtf.build.ops.random import random_shuffle as random_shuffle
from dtf.build.ops.random import random_uniform as random_uniform
from dtf.build.ops.random import set_random_seed as set_random_seed
from dtf.build.ops.random import stateless_multinomial as stateless_multinomial
from dtf.build.ops.random import stateless_normal as stateless_normal
from dtf.build.ops.random import stateless_truncated_normal as stateless_truncated_normal
from dtf.build.ops.random import stateless_uniform as stateless_uniform
from dtf.build.ops.random import truncated_normal as truncated_normal
from dtf.build.ops.readers import FixedLengthRecordReader as FixedLengthRecordReader
from dtf.build.ops.readers import IdentityReader as IdentityReader
from dtf.build.ops.readers import ReaderBase as ReaderBase
from dtf.build.ops.readers import TFRecordReader as TFRecordReader
from dtf.build.ops.readers import TextLineReader as TextLineReader
from dtf.build.ops.readers import WholeFileReader as WholeFileReader
from dtf.build.ops.rearranging import batch_to_space as batch_to_space
from dtf.build.ops.rearranging import batch_to_space_nd as batch_to_space_nd
from dtf.build.ops.rearranging import depth_to_space as depth_to_space
from dtf.build.ops.rearranging import extract_image_patches as extract_image_patches
from dtf.build.ops.rearranging import extract_patches as extract_patches
from dtf.build.ops.rearranging import invert_permutation as invert_permutation
from dtf.build.ops.rearranging import matrix_transpose as matrix_transpose
from dtf.build.ops.rearranging import required_space_to_batch_paddings as required_space_to_batch_paddings
from dtf.build.ops.rearranging import reverse as reverse
from dtf.build.ops.rearranging import reverse_sequence as reverse_sequence
from dtf.build.ops.rearranging import reverse_v2 as reverse_v2
from dtf.build.ops.rearranging import roll as roll
from dtf.build.ops.rearranging import space_to_batch as space_to_batch
from dtf.build.ops.rearranging import space_to_batch_nd as space_to_batch_nd
from dtf.build.ops.rearranging import space_to_depth as space_to_depth
from dtf.build.ops.rearranging import transpose as transpose
from dtf.build.ops.reductions import arg_max as arg_max
from dtf.build.ops.reductions import arg_min as arg_min
from dtf.build.ops.reductions import argmax as argmax
from dtf.build.ops.reductions import argmin as argmin
from dtf.build.ops.reductions import count_nonzero as count_nonzero
from dtf.build.ops.reductions import cumprod as cumprod
from dtf.build.ops.reductions import cumsum as cumsum
from dtf.build.ops.reductions import cumulative_logsumexp as cumulative_logsumexp
from dtf.build.ops.reductions import reduce_all as reduce_all
from dtf.build.ops.reductions import reduce_any as reduce_any
from dtf.build.ops.reductions import reduce_euclidean_norm as reduce_euclidean_norm
from dtf.build.ops.reductions import reduce_logsumexp as reduce_logsumexp
from dtf.build.ops.reductions import reduce_max as reduce_max
from dtf.build.ops.reductions import reduce_mean as reduce_mean
from dtf.build.ops.reductions import reduce_min as reduce_min
from dtf.build.ops.reductions import reduce_prod as reduce_prod
from dtf.build.ops.reductions import reduce_std as reduce_std
from dtf.build.ops.reductions import reduce_sum as reduce_sum
from dtf.build.ops.reductions import reduce_variance as reduce_variance
from dtf.build.ops.searching import argsort as argsort
from dtf.build.ops.searching import searchsorted as searchsorted
from dtf.build.ops.searching import setdiff1d as setdiff1d
from dtf.build.ops.searching import sort as sort
from dtf.build.ops.searching import unique as unique
from dtf.build.ops.searching import unique_with_counts as unique_with_counts
from dtf.build.ops.searching import where as where
from dtf.build.ops.searching import where_v2 as where_v2
from dtf.build.ops.segment import sparse_segment_mean as sparse_segment_mean
from dtf.build.ops.segment import sparse_segment_sqrt_n as sparse_segment_sqrt_n
from dtf.build.ops.segment import sparse_segment_sum as sparse_segment_sum
from dtf.build.ops.segment import unsorted_segment_mean as unsorted_segment_mean
from dtf.build.ops.segment import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from dtf.build.ops.slicing import boolean_mask as boolean_mask
from dtf.build.ops.slicing import slice as slice
from dtf.build.ops.slicing import strided_slice as strided_slice
from dtf.build.ops.sparse import sparse_concat as sparse_concat
from dtf.build.ops.sparse import sparse_fill_empty_rows as sparse_fill_empty_rows
from dtf.build.ops.sparse import sparse_reorder as sparse_reorder
from dtf.build.ops.sparse import sparse_reshape as sparse_reshape
from dtf.build.ops.sparse import sparse_retain as sparse_retain
from dtf.build.ops.sparse import sparse_tensor_dense_matmul as sparse_tensor_dense_matmul
from dtf.build.ops.sparse import sparse_tensor_to_dense as sparse_tensor_to_dense
from dtf.build.ops.sparse import sparse_to_dense as sparse_to_dense
from dtf.build.ops.sparse import sparse_to_indicator as sparse_to_indicator
from dtf.build.ops.sparse_arithmetic import sparse_add as sparse_add
from dtf.build.ops.sparse_arithmetic import sparse_maximum as sparse_maximum
from dtf.build.ops.sparse_arithmetic import sparse_minimum as sparse_minimum
from dtf.build.ops.sparse_arithmetic import sparse_reduce_max as sparse_reduce_max
from dtf.build.ops.sparse_arithmetic import sparse_reduce_max_sparse as sparse_reduce_max_sparse
from dtf.build.ops.sparse_arithmetic import sparse_reduce_sum as sparse_reduce_sum
from dtf.build.ops.sparse_arithmetic import sparse_reduce_sum_sparse as sparse_reduce_sum_sparse
from dtf.build.ops.sparse_arithmetic import sparse_reset_shape as sparse_reset_shape
from dtf.build.ops.sparse_arithmetic import sparse_slice as sparse_slice
from dtf.build.ops.sparse_arithmetic import sparse_softmax as sparse_softmax
from dtf.build.ops.sparse_arithmetic import sparse_split as sparse_split
from dtf.build.ops.sparse_arithmetic import sparse_transpose as sparse_transpose
from dtf.build.ops.sparse_messages import deserialize_many_sparse as deserialize_many_sparse
from dtf.build.ops.sparse_messages import serialize_many_sparse as serialize_many_sparse
from dtf.build.ops.sparse_messages import serialize_sparse as serialize_sparse
from dtf.build.ops.special import lbeta as lbeta
from dtf.build.ops.spectral import fft as fft
from dtf.build.ops.spectral import fft2d as fft2d
from dtf.build.ops.spectral import fft3d as fft3d
from dtf.build.ops.spectral import ifft as ifft
from dtf.build.ops.spectral import ifft2d as ifft2d
from dtf.build.ops.spectral import ifft3d as ifft3d
from dtf.build.ops.state import assign as assign
from dtf.build.ops.state import assign_add as assign_add
from dtf.build.ops.state import assign_sub as assign_sub
from dtf.build.ops.state import batch_scatter_update as batch_scatter_update
from dtf.build.ops.state import count_up_to as count_up_to
from dtf.build.ops.state import scatter_add as scatter_add
from dtf.build.ops.state import scatter_div as scatter_div
from dtf.build.ops.state import scatter_max as scatter_max
from dtf.build.ops.state import scatter_min as scatter_min
from dtf.build.ops.state import scatter_mul as scatter_mul
from dtf.build.ops.state import scatter_nd_add as scatter_nd_add
from dtf.build.ops.state import scatter_nd_sub as scatter_nd_sub
from dtf.build.ops.state import scatter_nd_update as scatter_nd_update
from dtf.build.ops.state import scatter_sub as scatter_sub
from dtf.build.ops.state import scatter_update as scatter_update
from dtf.build.ops.string import as_string as as_string
from dtf.build.ops.string import decode_base64 as decode_base64
from dtf.build.ops.string import decode_compressed as decode_compressed
from dtf.build.ops.string import decode_csv as decode_csv
from dtf.build.ops.string import decode_raw as decode_raw
from dtf.build.ops.string import encode_base64 as encode_base64
from dtf.build.ops.string import reduce_join as reduce_join
from dtf.build.ops.string import regex_full_match as regex_full_match
from dtf.build.ops.string import regex_replace as regex_replace
from dtf.build.ops.string import string_join as string_join
from dtf.build.ops.string import string_length as string_length
from dtf.build.ops.string import string_lower as string_lower
from dtf.build.ops.string import string_split as string_split
from dtf.build.ops.string import string_split_v2 as string_split_v2
from dtf.build.ops.string import string_strip as string_strip
from dtf.build.ops.string import string_to_hash_bucket as string_to_hash_bucket
from dtf.build.ops.string import string_to_hash_bucket_fast as string_to_hash_bucket_fast
from dtf.build.ops.string import string_to_hash_bucket_strong as string_to_hash_bucket_strong
from dtf.build.ops.string import string_to_number as string_to_number
from dtf.build.ops.string import string_upper as string_upper
from dtf.build.ops.string import substr as substr
from dtf.build.ops.tensor_array import TensorArray as TensorArray
from dtf.build.partitioned import fixed_size_partitioner as fixed_size_partitioner
from dtf.build.partitioned import min_max_variable_partitioner as min_max_variable_partitioner
from dtf.build.partitioned import variable_axis_size_partitioner as variable_axis_size_partitioner
from dtf.build.ragged import RaggedTensor as RaggedTensor
from dtf.build.sparse import IndexedSlices as IndexedSlices
from dtf.build.sparse import SparseTensor as SparseTensor
from dtf.build.sparse import SparseTensorValue as SparseTensorValue
from dtf.build.sparse import convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices
from dtf.build.sparse import convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor
from dtf.build.tape import GradientTape as GradientTape
from dtf.build.template import make_template as make_template
from dtf.build.tensor import Operation as Operation
from dtf.build.tensor import Tensor as Tensor
from dtf.build.tensor_spec import IndexedSlicesSpec as IndexedSlicesSpec
from dtf.build.tensor_spec import NoneTensorSpec as NoneTensorSpec
from dtf.build.tensor_spec import OptionalSpec as OptionalSpec
from dtf.build.tensor_spec import RaggedTensorSpec as RaggedTensorSpec
from dtf.build.tensor_spec import SparseTensorSpec as SparseTensorSpec
from dtf.build.tensor_spec import TensorArraySpec as TensorArraySpec
from dtf.build.tensor_spec import TensorSpec as TensorSpec
from dtf.build.tensor_spec import TypeSpec as TypeSpec
from dtf.build.tensor_spec import type_spec_from_value as type_spec_from_value
from dtf.build.variable_collections import all_variables as all_variables
from dtf.build.variable_collections import assert_variables_initialized as assert_variables_initialized
from dtf.build.variable_collections import global_variables as global_variables
from dtf.build.variable_collections import global_variables_initializer as global_variables_initializer
from dtf.build.variable_collections import initialize_all_variables as initialize_all_variables
from dtf.build.variable_collections import initialize_local_variables as initialize_local_variables
from dtf.build.variable_collections import initialize_variables as initialize_variables
from dtf.build.variable_collections import local_variables as local_variables
from dtf.build.variable_collections import local_variables_initializer as local_variables_initializer
from dtf.build.variable_collections import model_variables as model_variables
from dtf.build.variable_collections import moving_average_variables as moving_average_variables
from dtf.build.variable_collections import report_uninitialized_variables as report_uninitialized_variables
from dtf.build.variable_collections import trainable_variables as trainable_variables
from dtf.build.variable_collections import variables_initializer as variables_initializer
from dtf.build.variable_scope import VariableScope as VariableScope
from dtf.build.variable_scope import get_local_variable as get_local_variable
from dtf.build.variable_scope import get_variable as get_variable
from dtf.build.variable_scope import get_variable_scope as get_variable_scope
from dtf.build.variable_scope import no_regularizer as no_regularizer
from dtf.build.variable_scope import op_scope as op_scope
from dtf.build.variable_scope import variable_creator_scope as variable_creator_scope
from dtf.build.variable_scope import variable_op_scope as variable_op_scope
from dtf.build.variable_scope import variable_scope as variable_scope
from dtf.build.variable_store import AUTO_REUSE as AUTO_REUSE
from dtf.build.variables import Variable as Variable
from dtf.build.variables import VariableAggregation as VariableAggregation
from dtf.build.variables import VariableSynchronization as VariableSynchronization
from dtf.build.variables import disable_resource_variables as disable_resource_variables
from dtf.build.variables import enable_resource_variables as enable_resource_variables
from dtf.build.variables import is_variable_initialized as is_variable_initialized
from dtf.build.variables import resource_variables_enabled as resource_variables_enabled
from dtf.logging import get_logger as get_logger
from dtf.notebook import load_ipython_extension as load_ipython_extension
from dtf.session import InteractiveSession as InteractiveSession
from dtf.session import Session as Session
from dtf.sysconfig import CXX11_ABI_FLAG as CXX11_ABI_FLAG
from dtf.sysconfig import CXX_VERSION as CXX_VERSION
from dtf.sysconfig import MONOLITHIC_BUILD as MONOLITHIC_BUILD
from dtf.version import COMPILER_VERSION as COMPILER_VERSION
from dtf.version import GIT_VERSION as GIT_VERSION
from dtf.version import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
from dtf.version import GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER
from dtf.version import GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER
from dtf.version import VERSION as VERSION
from dtf.wire import errors as errors
from dtf.wire.cluster import ClusterSpec as ClusterSpec
from dtf.wire.device import DeviceSpec as DeviceSpec
from dtf.wire.dtypes import DType as DType
from dtf.wire.dtypes import QUANTIZED_DTYPES as QUANTIZED_DTYPES
from dtf.wire.dtypes import as_dtype as as_dtype
from dtf.wire.dtypes import bfloat16 as bfloat16
from dtf.wire.dtypes import bool as bool
from dtf.wire.dtypes import bool_ref as bool_ref
from dtf.wire.dtypes import complex128 as complex128
from dtf.wire.dtypes import complex128_ref as complex128_ref
from dtf.wire.dtypes import complex64 as complex64
from dtf.wire.dtypes import complex64_ref as complex64_ref
from dtf.wire.dtypes import double as double
from dtf.wire.dtypes import double_ref as double_ref
from dtf.wire.dtypes import float16 as float16
from dtf.wire.dtypes import float32 as float32
from dtf.wire.dtypes import float32_ref as float32_ref
from dtf.wire.dtypes import float64 as float64
from dtf.wire.dtypes import float64_ref as float64_ref
from dtf.wire.dtypes import half as half
from dtf.wire.dtypes import int16 as int16
from dtf.wire.dtypes import int16_ref as int16_ref
from dtf.wire.dtypes import int32 as int32
from dtf.wire.dtypes import int32_ref as int32_ref
from dtf.wire.dtypes import int64 as int64
from dtf.wire.dtypes import int64_ref as int64_ref
from dtf.wire.dtypes import int8 as int8
from dtf.wire.dtypes import int8_ref as int8_ref
from dtf.wire.dtypes import qint16 as qint16
from dtf.wire.dtypes import qint32 as qint32
from dtf.wire.dtypes import qint8 as qint8
from dtf.wire.dtypes import quint16 as quint16
from dtf.wire.dtypes import quint8 as quint8
from dtf.wire.dtypes import resource as resource
from dtf.wire.dtypes import string as string
from dtf.wire.dtypes import string_ref as string_ref
from dtf.wire.dtypes import uint16 as uint16
from dtf.wire.dtypes import uint16_ref as uint16_ref
from dtf.wire.dtypes import uint32 as uint32
from dtf.wire.dtypes import uint64 as uint64
from dtf.wire.dtypes import uint8 as uint8
from dtf.wire.dtypes import uint8_ref as uint8_ref
from dtf.wire.dtypes import variant as variant
from dtf.wire.errors import OpError as OpError
from dtf.wire.pb.attr_value_pb2 import AttrValue as AttrValue
from dtf.wire.pb.attr_value_pb2 import NameAttrList as NameAttrList
from dtf.wire.pb.config_pb2 import ConfigProto as ConfigProto
from dtf.wire.pb.config_pb2 import GPUOptions as GPUOptions
from dtf.wire.pb.config_pb2 import GraphOptions as GraphOptions
from dtf.wire.pb.config_pb2 import OptimizerOptions as OptimizerOptions
from dtf.wire.pb.config_pb2 import RunMetadata as RunMetadata
from dtf.wire.pb.config_pb2 import RunOptions as RunOptions
from dtf.wire.pb.event_pb2 import Event as Event
from dtf.wire.pb.event_pb2 import LogMessage as LogMessage
from dtf.wire.pb.event_pb2 import SessionLog as SessionLog
from dtf.wire.pb.graph_pb2 import GraphDef as GraphDef
from dtf.wire.pb.histogram_pb2 import HistogramProto as HistogramProto
from dtf.wire.pb.meta_graph_pb2 import MetaGraphDef as MetaGraphDef
from dtf.wire.pb.meta_graph_pb2 import TensorInfo as TensorInfo
from dtf.wire.pb.node_def_pb2 import NodeDef as NodeDef
from dtf.wire.pb.summary_pb2 import Summary as Summary
from dtf.wire.pb.summary_pb2 import SummaryMetadata as SummaryMetadata
from dtf.wire.tensor_proto import make_ndarray as make_ndarray
from dtf.wire.tensor_proto import make_tensor_proto as make_tensor_proto
from dtf.wire.tensor_shape import Dimension as Dimension
from dtf.wire.tensor_shape import TensorShape as TensorShape
from dtf.wire.tensor_shape import dimension_value as dimension_value
newaxis: None
