"""One process of `python -m tests.chance`. It checks one seed after the other and writes its
results as lines of JSON: `["at", seed]`, `["found", {...}]`, `["refused", error]`, `["note",
text]`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

# What is checked. CPU: programs against their statements (`eager`), kernels with one and several
# threads, and lifetimes of arrays. GPU: programs against the CPU and lifetimes, programs with guard
# bytes around memory, and failures of memory allocation.
CPU = ["eager", "threads", "lifetimes"]
GPU = ["gpu", "gpu-lifetimes", "gpu-guards", "gpu-failures"]
Check = Callable[[int], "dict[str, Any] | None"]


def make_check(kind: str, fake: bool) -> Check:
    """Return the function that checks a seed. GPUs, real or `fake`, must already be available."""
    from chance import guard_bytes
    from chance.allocation_failures import check_allocation_failures
    from chance.array_lifetimes import check_lifetimes, missing_libraries
    from chance.execution_modes import check_program

    import accnp

    device: Any = accnp.devices("gpu" if kind in GPU else "cpu")[0]
    describe_damage = guard_bytes.report_no_damage
    if kind == "gpu-guards":
        from accnp.runtime.device_buffer import driver_of

        describe_damage = guard_bytes.guard_gpu(driver_of(device))
    elif kind in CPU:
        describe_damage = guard_bytes.guard_cpu()

    if kind.endswith("lifetimes"):
        for why in missing_libraries(device):
            _report("note", f"{kind} go without a library: {why}")

    def check_seed(seed: int) -> dict[str, Any] | None:
        if kind.endswith(("lifetimes", "failures")):
            fault = (check_allocation_failures if kind.endswith("failures") else check_lifetimes)(
                seed, device, fake
            )
            failure = None if fault is None else {"what": fault}
        else:
            mismatch = check_program(kind.removesuffix("-guards"), seed, fake, _report_refusal)
            failure = (
                None
                if mismatch is None
                else {"what": f"{mismatch.way}: {mismatch.what}", "text": mismatch.text}
            )
        if failure is None and (damage := describe_damage()):
            failure = {"what": damage}
            if not kind.endswith("lifetimes"):
                from chance.programs import generate_program

                failure["text"] = generate_program(seed, fake).reproducer()
        return failure

    return check_seed


def check_seeds(kind: str, seeds: range, seconds: float, fake: bool) -> None:
    faulthandler.enable()
    with contextlib.suppress(
        AttributeError, ValueError
    ):  # the runner sends this signal to get the stacks of all threads
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    warnings.simplefilter("ignore")
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        if fake:
            from cuda.fake import gpus

            stack.enter_context(gpus())
        check = make_check(kind, fake)
        for seed in seeds:
            _report("at", seed)
            failure = check(seed)
            if failure is not None:
                _report("found", {"seed": seed, **failure})
                if any(
                    word in failure["what"] for word in ("illegal", "CUDA_ERROR_LAUNCH", "hangs")
                ):
                    os._exit(7)  # nothing can be done in this process any more
            if time.monotonic() > end:
                break


def _report_refusal(what: str) -> None:
    _report("refused", what)


def _report(word: str, value: Any) -> None:
    print("@" + json.dumps([word, value], default=str), flush=True)
