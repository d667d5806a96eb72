"""The names of Numba that are not public, which another version may have changed."""

import threading
from importlib.metadata import version

from accnp.compiler.numba import private

NUMBA = f"numba {version('numba')}"


def test_the_lock_of_the_compiler_is_reentrant():
    """A fork takes it, and asks whether this thread has it."""
    lock = private.COMPILER_LOCK
    assert isinstance(lock, type(threading.RLock())), NUMBA
    with lock:
        assert lock._is_owned(), NUMBA
    assert not lock._is_owned(), NUMBA


def test_conversions_have_an_order():
    kinds = private.Conversion
    assert kinds.promote < kinds.safe < kinds.unsafe, NUMBA
