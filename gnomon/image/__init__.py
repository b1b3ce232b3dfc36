"""Images: decoding and augmentation."""

from gnomon.absent import refusing

__all__: list[str] = []

__getattr__ = refusing(__name__, __all__)
