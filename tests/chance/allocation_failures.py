"""Random failures of memory allocation on a GPU: which error is raised, what memory remains
allocated, and whether everything works afterwards.

A seed gives a description of what went wrong, or None.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from chance.array_lifetimes import in_use

import accnp
import accnp.numpy as jnp
from accnp import lax, nn

UNITS_OF_MEMORY = 10  # arrays of a unit that there is memory for


def limit_memory(gpu: Any, unit: int, fake: bool) -> None:
    """Limit the memory of the GPU to a few times `unit` bytes."""
    if fake:
        from accnp.runtime.device_buffer import driver_of

        driver: Any = driver_of(gpu)
        driver.total = UNITS_OF_MEMORY * unit
    else:
        __import__("cupy").get_default_memory_pool().set_limit(size=UNITS_OF_MEMORY * unit)


_many_results = accnp.jit(lambda x: [x * i for i in range(20)])
_loop = accnp.jit(
    lambda x: lax.fori_loop(
        0, 3, lambda i, c: nn.softmax(c.reshape(20, -1), 1).reshape(-1) + c, jnp.tile(x, 20)
    )
)
_stacked_scan = accnp.jit(lambda x: lax.scan(lambda c, _: (c + 1, c), x, None, length=20))
_gradient_of_loop = accnp.jit(
    accnp.grad(lambda x: lax.scan(lambda c, _: (jnp.sin(c) * c, None), x, None, length=30)[0].sum())
)
_branch = accnp.jit(
    lambda x: lax.cond(x[0] > 5, lambda x: jnp.tile(x, 20), lambda x: jnp.tile(x, 21)[x.size :], x)
)
_scale_and_add_sum = accnp.jit(lambda x: x * 2 + x.sum())
_tile_donated = accnp.jit(lambda x: jnp.tile(x, 30), donate_argnums=0)
CASES: dict[str, Callable[[Any], Any]] = {
    "computed arrays": lambda x: [(x * i).block_until_ready() for i in range(20)],
    "pending": lambda x: [x * i for i in range(20)],
    "one": lambda x: jnp.tile(x, 20) + 1,
    "many of a program": _many_results, "a loop": _loop,
    "stacked": _stacked_scan, "kept for a gradient": _gradient_of_loop,
    "a branch": _branch, "donated": _tile_donated,
    "sort": lambda x: jnp.sort(jnp.tile(x, 8)),
    "gather": lambda x: x[jnp.tile(jnp.arange(x.size), 15)],
    "concatenate": lambda x: jnp.concatenate([x] * 15),
    "fft": lambda x: jnp.fft.fft(jnp.tile(x, 8)),
    "product": lambda x: jnp.outer(x, x[: 30]),
}  # fmt: skip


def check_allocation_failures(seed: int, gpu: Any, small: bool = False) -> str | None:
    r, n = random.Random(seed), 1 << (13 if small else 24)
    limit_memory(gpu, 4 * n, small)
    one = np.sin(np.arange(n, dtype="f4"))
    before = in_use(gpu)
    for name in r.sample(list(CASES), 3):
        for _ in range(r.randint(1, 2)):
            if fault := _memory_error(CASES[name], one, gpu):
                return f"{name}: {fault}"
        used = in_use(gpu)
        if used > before + n // 4:
            return f"{name}: {used} bytes in use after it, {before} before"
        actual = np.asarray(_scale_and_add_sum(accnp.device_put(one[:5000], gpu)))
        if not np.allclose(actual, one[:5000] * 2 + one[:5000].sum(), atol=1e-2):
            return f"{name}: wrong values afterwards"
    return None


def _memory_error(run: Callable[[Any], Any], one: np.ndarray, gpu: Any) -> str | None:
    try:
        accnp.block_until_ready(run(accnp.device_put(one, gpu)))
    except MemoryError as error:
        return None if "not enough memory" in str(error) else f"says {str(error)[:300]}"
    except Exception as error:
        return f"raised {type(error).__name__}: {str(error)[:300]}"
    return None
