"""A patched function calls the wrapper while the patch is active, and stays the same object."""

import functools

import pytest

from accnp.runtime.function_patch import FunctionPatch


def plain(a, b=2, *, c=3):
    """A function with defaults of each kind."""
    return a, b, c


kept_elsewhere = plain


class Thing:
    def method(self, x):
        return self, x

    def __call__(self, x):
        return "called", x


def test_every_reference_to_the_function_is_patched():
    seen = []

    def around(original, *args, **kwargs):
        seen.append((args, kwargs))
        return "patched", original(*args, **kwargs)

    code = plain.__code__
    patch = FunctionPatch(plain, around)
    assert plain(1) == (1, 2, 3)
    patch.start()
    assert kept_elsewhere(1) == ("patched", (1, 2, 3))
    assert plain(1, c=5) == ("patched", (1, 2, 5))
    assert functools.partial(plain, 4)(b=6) == ("patched", (4, 6, 3))
    patch.stop()
    assert plain.__code__ is code
    assert plain(7, 8, c=9) == (7, 8, 9)
    assert seen == [((1,), {}), ((1,), {"c": 5}), ((4,), {"b": 6})]


def test_methods_and_calls_of_objects():
    thing = Thing()
    patches = [
        FunctionPatch(Thing.method, lambda f, self, x: (f(self, x), "method")),
        FunctionPatch(Thing.__call__, lambda f, self, x: (f(self, x), "call")),
    ]
    for d in patches:
        d.start()
    assert thing.method(1) == ((thing, 1), "method")
    assert thing(2) == (("called", 2), "call")
    for d in patches:
        d.stop()
    assert thing.method(1) == (thing, 1)
    assert thing(2) == ("called", 2)


def test_errors_come_through():
    def around(original, *args):
        try:
            return original(*args)
        finally:
            ended.append(1)

    ended = []
    patch = FunctionPatch(plain, around)
    patch.start()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        plain()
    patch.stop()
    assert ended == [1]


def test_closures_and_builtins_are_refused():
    value = 1

    def closing():
        return value

    for f in (closing, len):
        with pytest.raises(TypeError, match="without closure"):
            FunctionPatch(f, lambda f: None)
