"""slim.nets: networks of images as functions: AlexNet, OverFeat, VGG, Inception, residual networks. Only re-exports."""

from __future__ import annotations

from dtf import late

_NAMES = "alexnet inception inception_v1 inception_v2 inception_v3 overfeat resnet_utils resnet_v1 resnet_v2 vgg"
_NAMESPACES = {name: f"dtf.contrib.slim.nets.{name}" for name in _NAMES.split()}
__getattr__, __dir__ = late.names(globals(), {}, _NAMESPACES)
