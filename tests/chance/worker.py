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

# What is checked: programs by two ways of the processor, lives of arrays; the same of a GPU, with
# marks around its memory or not, and memory that runs out.
CPU = ["eager", "threads", "lives"]
GPU = ["gpu", "gpu-lives", "gpu-marks", "gpu-shortage"]
Check = Callable[[int], "dict[str, Any] | None"]


def check_of(kind: str, fake: bool) -> Check:
    """Return the function that checks a seed. GPUs, real or `fake`, must already be available."""
    from chance import marks
    from chance.lives import absent, lives
    from chance.shortage import shortage
    from chance.ways import check

    import accnp

    device: Any = accnp.devices("gpu" if kind in GPU else "cpu")[0]
    look = marks.nothing
    if kind == "gpu-marks":
        from accnp.runtime.device_buffer import driver_of

        look = marks.guard_gpu(driver_of(device))
    elif kind in CPU:
        look = marks.guard_cpu()

    if kind.endswith("lives"):
        for why in absent(device):
            _say("note", f"{kind} go without a library: {why}")

    def one(seed: int) -> dict[str, Any] | None:
        if kind.endswith(("lives", "shortage")):
            fault = (shortage if kind.endswith("shortage") else lives)(seed, device, fake)
            failure = None if fault is None else {"what": fault}
        else:
            mismatch = check(kind.removesuffix("-marks"), seed, fake, _refused)
            failure = (
                None
                if mismatch is None
                else {"what": f"{mismatch.way}: {mismatch.what}", "text": mismatch.text}
            )
        if failure is None and (damage := look()):
            failure = {"what": damage}
            if not kind.endswith("lives"):
                from chance.programs import program

                failure["text"] = program(seed, fake).reproducer()
        return failure

    return one


def work(kind: str, seeds: range, seconds: float, fake: bool) -> None:
    faulthandler.enable()
    with contextlib.suppress(AttributeError, ValueError):  # the runner asks so where all stand
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    warnings.simplefilter("ignore")
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        if fake:
            from cuda.fake import gpus

            stack.enter_context(gpus())
        check = check_of(kind, fake)
        for seed in seeds:
            _say("at", seed)
            failure = check(seed)
            if failure is not None:
                _say("found", {"seed": seed, **failure})
                if any(
                    word in failure["what"] for word in ("illegal", "CUDA_ERROR_LAUNCH", "hangs")
                ):
                    os._exit(7)  # nothing can be done in this process any more
            if time.monotonic() > end:
                break


def _refused(what: str) -> None:
    _say("refused", what)


def _say(word: str, value: Any) -> None:
    print("@" + json.dumps([word, value], default=str), flush=True)
