"""Running machine code: linking, programs, threads, storage, libraries and devices.

`Features` and `feature_list` are what users call `mx.runtime` for; they load what they tell of.
"""

from gnomon.compatibility.absent import resolving

_FILES = {"features": "Feature Features feature_list"}

__getattr__, __dir__ = resolving(__name__, _FILES)
