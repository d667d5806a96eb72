# isort: skip_file
"""`accnp.profiler`: timelines of programs for Perfetto, with the names of jax.profiler.

>>> import accnp as jax
>>> with jax.profiler.profile() as timeline, jax.profiler.TraceAnnotation("load"):
...     pass
>>> [e.name for e in timeline.events]
['load']
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.devtools.profiler.profile_data import ProfileData, ProfileEvent, ProfilePlane
    from accnp.devtools.profiler.profiling import (
        ProfileOptions, StepTraceAnnotation, TraceAnnotation, annotate_function,
        device_memory_profile, save_device_memory_profile, start_trace, stop_trace, trace,
    )  # fmt: skip
    from accnp.devtools.profiler.trace_server import register_subprocess, start_server, stop_server
    from accnp.devtools.profiler.timeline import Timeline as profile

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation",
    "TraceAnnotation", "annotate_function", "device_memory_profile", "profile",
    "register_subprocess", "save_device_memory_profile", "start_server", "start_trace",
    "stop_server", "stop_trace", "trace",
]  # fmt: skip

_install_getattr(__name__, __all__)
