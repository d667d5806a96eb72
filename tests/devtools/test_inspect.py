"""`accnp.inspect`: the information that it shows, and that it neither computes anything nor changes
caches.
"""

import functools
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import accnp as jnp
from accnp import engine
from accnp.compiler.kernel_cache import clear_kernels, counters
from accnp.config import cache_dir, config, scope

BOTH_TIERS = True  # the disk cache holds optimized code only; see tests/conftest.py

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def no_kernels(tmp_path):
    """Start without cached kernels, and with an empty disk cache."""
    with scope("cache_dir", str(tmp_path / "kernels")):
        clear_kernels()
        yield
        clear_kernels()


def softmax(x):
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def with_library(x):
    return jnp.sum(jnp.fft.rfft(x * 2.0, axis=-1).real + 1.0)


def test_a_function_that_is_not_jitted():
    i = jnp.inspect(softmax)(jnp.ones((5, 7)))
    assert len(i.kernels) == 1
    assert i.kernels[0].operations == ["reduce_max", "sub", "exp", "reduce_sum", "div"]
    assert i.kernels[0].number_of_ops == 5
    assert i.kernels[0].signature[:2] == ("f4*", "f4*")
    assert i.kernels[0].text.startswith("def kernel(lo, hi, ")
    # What runs is recorded without the named calls that make_jaxpr shows.
    names = [e.primitive.name for e in i.jaxpr.eqns]
    assert [n for n in names if n != "broadcast_in_dim"] == i.kernels[0].operations
    assert [v.op.name for v in i.program.values] == [n.op.name for n in i.graph.nodes]
    assert len(i.plan.steps) == 1


def test_the_text_has_every_part():
    x = jnp.ones((5, 7))
    i = jnp.inspect(jnp.jit(softmax))(x)
    text = str(i)
    assert repr(i) == text
    assert text.startswith("softmax(x: float32[5,7])\n")
    titles = [line for line in text.splitlines() if line.startswith("-- ")]
    headings = [t.strip("- ").split()[0].strip(":") for t in titles]
    assert headings == ["graph", "program", "fusion", "plan", "kernel", "launches"]
    assert str(i.jaxpr) in text
    assert i.kernels[0].text.rstrip() in text
    assert "%1: float32[5] = reduce_max %0 [axes=(1,)]" in text
    assert f"# {__file__}:" in text  # the line that recorded an operation
    assert "b0: %0 argument x, float32[5,7], 140 B" in text
    assert "allocates b1 140 B" in text


def test_inspect_computes_nothing_and_fills_no_cache(no_kernels):
    f = jnp.jit(softmax)
    x = jnp.ones((5, 7))
    x.block_until_ready()
    y = x * 3.0 + 1.0
    before = (counters.as_dict(), len(engine._plans), dict(engine.counters))
    i, j = jnp.inspect(f)(x), jnp.inspect(y)
    str(i), str(j), i.svg(), j.svg()
    assert (counters.as_dict(), len(engine._plans), dict(engine.counters)) == before
    assert f._cache_size() == 0
    assert not y.is_ready()
    np.testing.assert_array_equal(y, np.full((5, 7), 4.0, np.float32))


def test_machine_code_is_generated_on_demand_and_not_cached(no_kernels):
    i = jnp.inspect(lambda x: jnp.exp(x) * 2.0)(jnp.ones(10))
    before = counters.as_dict()
    assert "define" in i.kernels[0].llvm()
    assert "ret" in i.kernels[0].assembly()
    assert counters.as_dict() == before
    assert jnp.inspect(lambda x: jnp.exp(x) * 2.0)(jnp.ones(10)).kernels[0].origin == "not compiled"


def test_source_of_machine_code_is_shown(by_llvm, no_kernels):
    def f(x):
        return jnp.sin(x) * 2.0 - 1.0

    x = jnp.ones(10)
    x.block_until_ready()

    def origin(g):
        return jnp.inspect(g)(x).kernels[0].origin

    first = jnp.jit(f)
    assert origin(first) == "not compiled"
    first(x).block_until_ready()
    assert origin(first) == "compiled"
    kernel = jnp.inspect(first)(x).kernels[0]
    assert kernel.compile_ms > 0
    assert "compiling took" in kernel.came
    other = jnp.jit(lambda x: f(x))
    assert origin(other) == "memory"
    clear_kernels()
    again = jnp.jit(lambda x: f(x))
    assert origin(again) == "on disk"
    again(x).block_until_ready()
    assert origin(again) == "disk"
    assert jnp.inspect(again)(x).kernels[0].compile_ms is None


def test_status_of_the_jit_cache():
    f = jnp.jit(lambda x: x + 1.0)
    assert "is not in the jit cache" in jnp.inspect(f)(jnp.ones(3)).status
    f(jnp.ones(3))
    assert "is in the jit cache" in jnp.inspect(f)(jnp.ones(3)).status
    assert "is not in the jit cache" in jnp.inspect(f)(jnp.ones(4)).status


def test_inspect_accepts_shape_dtype_structs():
    i = jnp.inspect(softmax)(jnp.ShapeDtypeStruct((4, 3), jnp.float32))
    assert len(i.kernels) == 1


def test_static_arguments_are_shown():
    def power(x, n):
        for _ in range(n):
            x = x * x
        return x

    i = jnp.inspect(power, static_argnums=1)(jnp.ones(3), 2)
    assert i.title == "power(x: float32[3], n=2 (static))"
    assert i.kernels[0].operations == ["mul", "mul"]
    j = jnp.inspect(jnp.jit(power, static_argnames="n"))(jnp.ones(3), n=3)
    assert j.kernels[0].number_of_ops == 3


def test_methods_and_partials():
    i = jnp.inspect(functools.partial(jnp.add, jnp.ones(3)))(jnp.ones(3))
    assert i.kernels[0].operations == ["add"]


def test_library_calls_and_fusion_barriers():
    i = jnp.inspect(with_library)(jnp.ones((3, 4000)))
    text = str(i)
    assert [type(s).__name__ for s in i.plan.steps].count("HostStep") == 1
    assert "no kernel: fft is a library call" in text
    assert "fft is a library call: it reads its operands from memory" in text


def test_own_kernels_and_in_place_updates():
    def f(x):
        return jnp.cumsum(x).at[2].set(0.0).at[3].add(x[0])

    i = jnp.inspect(f)(jnp.ones(5))
    text = str(i)
    assert "library" not in text
    assert re.search(r"step 1: dynamic_update_slice %\d+, a separate kernel", text)
    assert "update_slice is a separate kernel: it reads its operands from memory" in text
    assert text.count("updated in place") == 2
    assert [k.operations for k in i.kernels][-2:] == [["dynamic_update_slice"], ["scatter_add"]]
    assert "def kernel(lo, hi, a0, a1, a2, n0" in i.kernels[-1].source
    assert "separate kernel" in i.svg()
    alone = jnp.inspect(lambda x: x.at[2].set(0.0))(jnp.ones(5))
    assert "b3 is a copy of b0, updated, 20 B" in str(alone)


def test_pending_updates_report_copies():
    x = jnp.zeros(5).block_until_ready()
    x = x.at[2].set(1.0)
    assert "updated in place" in str(jnp.inspect(x))
    old = jnp.zeros(5).block_until_ready()
    new = old.at[2].set(1.0)
    assert "is a copy of b0, updated, 20 B" in str(jnp.inspect(new))
    assert [float(a[2]) for a in (x, new, old)] == [1.0, 1.0, 0.0]


def test_other_index_space_is_named():
    def f(x):
        h = jnp.exp(x)
        return h, jnp.sum(h, axis=0)[:, None] * jnp.ones((1, 3))

    assert "other index space" in str(jnp.inspect(f)(jnp.ones((6, 4))))


def test_size_limit_is_named():
    def f(x):
        for i in range(150):
            x = x * float(i) + jnp.sin(x)
        return x

    assert "size limit: a kernel computes" in str(jnp.inspect(f)(jnp.ones(8)))


def test_values_held_by_the_user_are_named():
    x = jnp.ones(6)
    x.block_until_ready()
    y = x + 1.0
    z = jnp.sin(y) * y
    assert "1 more value is referenced elsewhere and stored with it" in jnp.inspect(z).status
    assert len(jnp.inspect(z).plan.output_slots) == 2
    del y
    assert "referenced elsewhere" not in jnp.inspect(z).status


def test_eager_arrays():
    x = jnp.ones(6)
    x.block_until_ready()
    y = jnp.cos(x) + 0.5
    i = jnp.inspect(y)
    assert i.status.startswith("pending, last operation add at ")
    assert f"{__file__}:" in i.status
    assert [v.op.name for v in i.program.values] == ["cos", "add"]
    assert "cos a" in str(i.jaxpr)
    y.block_until_ready()
    i = jnp.inspect(y)
    assert i.status.startswith("computed: 24 B in memory")
    assert i.kernels == []
    assert i.program is None
    with pytest.raises(ValueError, match="there is no graph to draw"):
        i.svg()


def test_cached_plan_is_reported():
    x = jnp.ones(6)
    x.block_until_ready()
    (jnp.tan(x) - 0.25).block_until_ready()
    y = jnp.tan(x) - 0.25
    i = jnp.inspect(y)
    assert "a plan of this structure is cached" in i.status
    assert i.kernels[0].origin in ("compiled", "disk")


def test_deleted_and_scalars():
    x = jnp.ones(3) + 1.0
    x.delete()
    assert "deleted" in jnp.inspect(x).status


def test_loops_show_the_kernels_of_their_bodies():
    def f(x):
        return jnp.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * 2.0, x)

    i = jnp.inspect(f)(jnp.ones(5))
    assert "sin" in [name for k in i.kernels for name in k.operations]
    assert len(i.kernels) == 1
    assert "def kernel(" in i.kernels[0].source


def test_host_loop_reports_the_reason():
    def f(x):
        return jnp.lax.fori_loop(0, 3, lambda i, c: jnp.fft.fft(c).real, x)

    assert "a loop on the host over these plans, because fft is a library call" in str(
        jnp.inspect(f)(jnp.ones((3, 3)))
    )


def test_wrong_targets():
    with pytest.raises(TypeError, match=r"inspect: target must be a function or an array; got 3"):
        jnp.inspect(3)
    with pytest.raises(TypeError, match="options are for functions"):
        jnp.inspect(jnp.ones(3), static_argnums=0)
    with pytest.raises(TypeError, match="the function is jitted already"):
        jnp.inspect(jnp.jit(softmax), static_argnums=0)

    def traced(x):
        with pytest.raises(TypeError, match="is being traced"):
            jnp.inspect(x)
        return x

    jnp.jit(traced)(1.0)


# --- pictures ---


def rectangles(svg, inside):
    """Return the frames (inside=False) or boxes of a picture as (left, top, right, bottom)."""
    root = ElementTree.fromstring(svg)
    parents = root.iter(f"{SVG}g") if inside else [root]
    out = []
    for parent in parents:
        for r in parent.findall(f"{SVG}rect"):
            if r.get("width") == "100%":
                continue
            x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
            out.append((x, y, x + w, y + h))
    return out


def overlap(a, b):
    return a[0] < b[2] - 0.2 and b[0] < a[2] - 0.2 and a[1] < b[3] - 0.2 and b[1] < a[3] - 0.2


@pytest.mark.parametrize("f", [softmax, with_library, lambda x: (jnp.sin(x), jnp.sum(x), x.T * 2)])
def test_pictures_have_a_frame_for_each_kernel_and_nothing_overlaps(f):
    i = jnp.inspect(f)(jnp.ones((4, 4)))
    svg = i.svg()
    frames, boxes = rectangles(svg, False), rectangles(svg, True)
    assert len(frames) == len({id(s.cluster) for s in i.plan.steps if hasattr(s, "cluster")}) + sum(
        not hasattr(s, "cluster") for s in i.plan.steps
    )
    for kind in (frames, boxes):
        for k, a in enumerate(kind):
            assert not any(overlap(a, b) for b in kind[k + 1 :])
    texts = [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    for v in i.program.values:
        assert any(t.startswith(v.op.name) for t in texts)


def test_pictures_are_saved_and_shown_in_notebooks(tmp_path):
    i = jnp.inspect(lambda x: x < 2.0)(jnp.ones(3))
    path = i.save_svg(tmp_path / "graph.svg")
    assert path.read_text() == i.svg() == i._repr_svg_()
    page = i._repr_html_()
    assert i.svg() in page
    assert "&lt;lambda&gt;" in page
    assert "<summary>plan</summary>" in page
    y = jnp.ones(3) + 1.0
    y.block_until_ready()
    assert jnp.inspect(y)._repr_svg_() is None
    assert "computed" in jnp.inspect(y)._repr_html_()


def test_cache_folder_switch_is_respected(tmp_path):
    with cache_dir(str(tmp_path)):
        assert config.cache_dir == str(tmp_path)
        assert jnp.inspect(lambda x: x * 1.5)(jnp.ones(3)).kernels[0].origin != "on disk"


def test_steps_of_a_combined_launch_are_named():
    def f(x, y):
        return x @ x.T, y @ y.T, (x @ x.T).sum(0)

    text = str(jnp.inspect(f)(jnp.ones((4, 3)), jnp.ones((5, 3))))
    assert "steps 0 to 1 need nothing of each other: one launch" in text
    large = jnp.ones((3000, 3000))
    text = str(jnp.inspect(f)(large, large))
    assert "one launch" not in text


def test_texts_of_kernels_run_outside_of_accnp(tmp_path):
    """Kernels of loop IR, and kernels written in restricted Python, are printed as runnable
    source.
    """
    x = jnp.arange(12, dtype="float32").reshape(3, 4)
    kernels = [
        jnp.inspect(f)(x).kernels[-1]
        for f in (
            lambda x: jnp.cumsum(x, 1),
            lambda x: jnp.sort(x, 1),
            lambda x: jnp.searchsorted(x[0], x[1]),
            softmax,
        )
    ]
    assert "select(" in kernels[0].text  # of `s = t if n2 == 0 else acc + t`
    assert " if n2 == 0 else " in kernels[0].source
    parts = [
        f"{k.text}\nkinds = [kind(t) for t in {k.signature}]\n"
        "made.append(numba.njit(numba.void(numba.int64, numba.int64, *kinds))(kernel))\n"
        for k in kernels
    ]
    program = """
import numba
import numpy as np
from accnp.compiler.numba.functions import *
from accnp.compiler.numba.functions import NUMBA_TYPES

def kind(token):
    found = NUMBA_TYPES[token.removesuffix("*")]
    return numba.types.CPointer(found) if token.endswith("*") else found

made = []
"""
    program += "\n".join(parts) + "\nprint([len(f.signatures) for f in made])\n"
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert done.stdout == "[1, 1, 1, 1]\n", done.stderr[-2000:]
