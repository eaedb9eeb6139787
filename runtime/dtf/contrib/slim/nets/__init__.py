"""slim.nets: networks of images as functions: AlexNet, VGG, and residual networks. Only re-exports names."""

from __future__ import annotations

from dtf import late

_NAMESPACES = {name: f"dtf.contrib.slim.nets.{name}" for name in "alexnet resnet_utils resnet_v1 resnet_v2 vgg".split()}
__getattr__, __dir__ = late.names(globals(), {}, _NAMESPACES)
