"""Detours: calls go round while one is on; otherwise the function is what it was, to the object."""

import functools

import pytest

from accnp.runtime.detour import Detour


def plain(a, b=2, *, c=3):
    """Some function with defaults of each kind."""
    return a, b, c


kept_elsewhere = plain


class Thing:
    def method(self, x):
        return self, x

    def __call__(self, x):
        return "called", x


def test_every_name_of_the_function_goes_round_and_back():
    seen = []

    def around(original, *args, **kwargs):
        seen.append((args, kwargs))
        return "round", original(*args, **kwargs)

    code = plain.__code__
    detour = Detour(plain, around)
    assert plain(1) == (1, 2, 3)
    detour.start()
    assert kept_elsewhere(1) == ("round", (1, 2, 3))
    assert plain(1, c=5) == ("round", (1, 2, 5))
    assert functools.partial(plain, 4)(b=6) == ("round", (4, 6, 3))
    detour.stop()
    assert plain.__code__ is code
    assert plain(7, 8, c=9) == (7, 8, 9)
    assert seen == [((1,), {}), ((1,), {"c": 5}), ((4,), {"b": 6})]


def test_methods_and_calls_of_objects():
    thing = Thing()
    detours = [
        Detour(Thing.method, lambda f, self, x: (f(self, x), "method")),
        Detour(Thing.__call__, lambda f, self, x: (f(self, x), "call")),
    ]
    for d in detours:
        d.start()
    assert thing.method(1) == ((thing, 1), "method")
    assert thing(2) == (("called", 2), "call")
    for d in detours:
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
    detour = Detour(plain, around)
    detour.start()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        plain()
    detour.stop()
    assert ended == [1]


def test_closures_and_builtins_are_refused():
    value = 1

    def closing():
        return value

    for f in (closing, len):
        with pytest.raises(TypeError, match="without closure"):
            Detour(f, lambda f: None)
