"""Made by `python -m tests.public`: where each public name of this package is defined."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtf.build.tensor import Tensor
from dtf.build.tensor_like import DTypeLike, TensorLike
from dtf.layers.choices import Activation
from dtf.wire.dtypes import DType

def average_pooling1d(inputs: TensorLike, pool_size: Any, strides: Any, padding: str = ..., data_format: str = ..., name: str | None = ...) -> Tensor: ...
def average_pooling2d(inputs: TensorLike, pool_size: Any, strides: Any, padding: str = ..., data_format: str = ..., name: str | None = ...) -> Tensor: ...
def average_pooling3d(inputs: TensorLike, pool_size: Any, strides: Any, padding: str = ..., data_format: str = ..., name: str | None = ...) -> Tensor: ...
def conv1d(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., dilation_rate: Any = ..., activation: Activation | None = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def conv2d(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., dilation_rate: Any = ..., activation: Activation | None = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def conv2d_transpose(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., activation: Activation | None = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def conv3d(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., dilation_rate: Any = ..., activation: Activation | None = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def conv3d_transpose(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., activation: Activation | None = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def dense(inputs: TensorLike, units: int, activation: Activation | None = ..., use_bias: bool = ..., kernel_initializer: Any = ..., bias_initializer: Any = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., kernel_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def max_pooling1d(inputs: TensorLike, pool_size: Any, strides: Any, padding: str = ..., data_format: str = ..., name: str | None = ...) -> Tensor: ...
def max_pooling2d(inputs: TensorLike, pool_size: Any, strides: Any, padding: str = ..., data_format: str = ..., name: str | None = ...) -> Tensor: ...
def max_pooling3d(inputs: TensorLike, pool_size: Any, strides: Any, padding: str = ..., data_format: str = ..., name: str | None = ...) -> Tensor: ...
def separable_conv1d(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., dilation_rate: Any = ..., depth_multiplier: int = ..., activation: Activation | None = ..., use_bias: bool = ..., depthwise_initializer: Any = ..., pointwise_initializer: Any = ..., bias_initializer: Any = ..., depthwise_regularizer: Any = ..., pointwise_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., depthwise_constraint: Any = ..., pointwise_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
def separable_conv2d(inputs: TensorLike, filters: int, kernel_size: Any, strides: Any = ..., padding: str = ..., data_format: str = ..., dilation_rate: Any = ..., depth_multiplier: int = ..., activation: Activation | None = ..., use_bias: bool = ..., depthwise_initializer: Any = ..., pointwise_initializer: Any = ..., bias_initializer: Any = ..., depthwise_regularizer: Any = ..., pointwise_regularizer: Any = ..., bias_regularizer: Any = ..., activity_regularizer: Any = ..., depthwise_constraint: Any = ..., pointwise_constraint: Any = ..., bias_constraint: Any = ..., trainable: bool = ..., name: str | None = ..., reuse: bool | None = ...) -> Tensor: ...
from dtf.layers import base as base
from dtf.layers import batch_corrections as batch_corrections
from dtf.layers import choices as choices
from dtf.layers import convolutional as convolutional
from dtf.layers import core as core
from dtf.layers import inspection as inspection
from dtf.layers import normalization as normalization
from dtf.layers import pooling as pooling
from dtf.layers.base import InputSpec as InputSpec
from dtf.layers.base import Layer as Layer
from dtf.layers.convolutional import Conv1D as Conv1D
from dtf.layers.convolutional import Conv2D as Conv2D
from dtf.layers.convolutional import Conv2DTranspose as Conv2DTranspose
from dtf.layers.convolutional import Conv3D as Conv3D
from dtf.layers.convolutional import Conv3DTranspose as Conv3DTranspose
from dtf.layers.convolutional import SeparableConv1D as SeparableConv1D
from dtf.layers.convolutional import SeparableConv2D as SeparableConv2D
from dtf.layers.core import Dense as Dense
from dtf.layers.core import Dropout as Dropout
from dtf.layers.core import Flatten as Flatten
from dtf.layers.core import dropout as dropout
from dtf.layers.core import flatten as flatten
from dtf.layers.normalization import BatchNormalization as BatchNormalization
from dtf.layers.normalization import batch_normalization as batch_normalization
from dtf.layers.pooling import AveragePooling1D as AveragePooling1D
from dtf.layers.pooling import AveragePooling2D as AveragePooling2D
from dtf.layers.pooling import AveragePooling3D as AveragePooling3D
from dtf.layers.pooling import MaxPooling1D as MaxPooling1D
from dtf.layers.pooling import MaxPooling2D as MaxPooling2D
from dtf.layers.pooling import MaxPooling3D as MaxPooling3D
