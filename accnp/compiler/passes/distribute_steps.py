"""Pass that distributes the steps of a kernel over the threads of a GPU, one by one."""

from __future__ import annotations

from accnp.compiler.loops.builder import affine
from accnp.compiler.loops.ir import Const, For, Kernel, Let, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import fresh_name
from accnp.compiler.unsupported import Unsupported

__all__ = ["distribute_steps"]


def distribute_steps(kernel: Kernel) -> Kernel:
    """Return the kernel whose thread k does the steps k, k + all threads, ... of 0..last.

    Parameters
    ----------
    kernel : Kernel
        A kernel for GPUs with a first and a last step, which may be done in any order.

    Raises
    ------
    Unsupported
        If the kernel has pointers after integers.
    """
    if kernel.arguments != (*kernel.buffers, *kernel.integers):
        raise Unsupported("a pointer after an integer")
    step, last = (Var(fresh_name(name, kernel)) for name in ("step", "steps"))
    own = (Let(kernel.first, affine((step, 1))), Let(kernel.last, affine((step, 1), constant=1)))
    loop = For(step, Const(0, I8), last, 1, (*own, *kernel.body), spread="grid")
    first = Var(fresh_name("none", kernel))
    return kernel._replace(first=first, last=last, body=(loop,), order=())
