"""Networks that are known by name."""

from gnomon.gluon.model_zoo import model_store, vision
from gnomon.gluon.model_zoo.vision import get_model

__all__ = ["get_model", "model_store", "vision"]
