"""Convolutions whose windows are deformed."""

from gnomon.gluon.contrib.cnn.conv_layers import (
    DeformableConvolution,
    ModulatedDeformableConvolution,
)

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]
