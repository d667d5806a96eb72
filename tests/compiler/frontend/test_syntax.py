"""Syntax trees of kernels."""

import ast
import gc
import threading
import time

from accnp.compiler.frontend.syntax import functions_of


def test_concurrent_parsing():
    """A collection in the middle lets another thread go on; Python's own count of depths would
    then be that thread's."""
    lines = [f"{' ' * (i + 1)}if x > {i}:" for i in range(20)]
    text = "\n".join(["def f(x):", *lines, " " * 22 + "x = ((x + 1) * 2) - x"])
    failed = []

    def parse():
        try:
            for _ in range(20):
                assert list(functions_of(text)) == ["f"]
        except Exception as error:
            failed.append(error)

    def wait(*_):
        time.sleep(0.0005)

    before = gc.get_threshold()
    gc.callbacks.append(wait)
    gc.set_threshold(20)
    try:
        threads = [threading.Thread(target=parse) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(wait)
    assert not failed


def test_parsing_retries_after_recursion_count_error(monkeypatch):
    parse, calls = ast.parse, []

    def disturbed(source):
        calls.append(source)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=90, after=93)")
        return parse(source)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert list(functions_of("def f(x):\n    return x\n")) == ["f"]
    assert len(calls) == 3
