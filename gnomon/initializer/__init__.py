"""Initial values of parameters, chosen by their names and attributes.

An initializer is one file of this folder, or a family of them: it is public once it is there.
"""

from gnomon.ground.folder_registry import public
from gnomon.initializer.base import INITIALIZERS, InitDesc, Initializer, alias, create, register
from gnomon.initializer.fill import Load, Mixed

__all__ = ["InitDesc", "Initializer", "Load", "Mixed", "alias", "create", "register"]

__getattr__, __dir__ = public(INITIALIZERS, __all__)
