"""`mx.profiler`: what ran when, and how much memory there was, as a trace and as a table.

>>> import gnomon as mx
>>> mx.profiler.set_config(profile_all=True, aggregate_stats=True)
>>> mx.profiler.set_state("run")
>>> mx.nd.ones((3,)).asnumpy().sum()
np.float32(3.0)
>>> mx.profiler.set_state("stop")
>>> "_ones" in mx.profiler.dumps(reset=True)
True
"""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving

if TYPE_CHECKING:
    from gnomon.profiler.control import (
        dump as dump,
        dump_profile as dump_profile,
        dumps as dumps,
        pause as pause,
        profiler_set_config as profiler_set_config,
        profiler_set_state as profiler_set_state,
        resume as resume,
        set_config as set_config,
        set_kvstore_handle as set_kvstore_handle,
        set_state as set_state,
    )
    from gnomon.profiler.objects import (
        Counter as Counter,
        Domain as Domain,
        Event as Event,
        Frame as Frame,
        Marker as Marker,
        Task as Task,
        scope as scope,
    )


_FILES = {
    "control": "dump dump_profile dumps pause profiler_set_config profiler_set_state resume"
    " set_config set_kvstore_handle set_state",
    "objects": "Counter Domain Event Frame Marker Task scope",
}

__getattr__, __dir__ = resolving(__name__, _FILES)
