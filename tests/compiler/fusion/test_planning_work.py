"""Planning does work in proportion to the program: counted, not timed."""

import sys
from itertools import pairwise

import numpy as np

import accnp as jnp
from accnp.array_type import from_numpy, wrap
from accnp.compiler.fusion.clusters import Cluster, reaches
from accnp.compiler.fusion.fuse import fuse
from accnp.compiler.fusion.program import from_graph
from accnp.ir.graph import build


def mixed(n):
    """The gradient of n rounds of maps, folds, transposes and scans: (loss's value, program)."""

    def loss(w, x):
        a = w[:, None] * x
        for i in range(n):
            a = jnp.tanh(a * w + a.mean(1, keepdims=True))
            b = jnp.exp(a - a.max(0)) * 0.1
            a = a + b.T if i % 2 else a + b / b.sum(1, keepdims=True)
            if i % 7 == 0:
                a = jnp.cumsum(a, 0) * 0.1
        return a.sum()

    aval = from_numpy(np.ones(32, np.float32))._node.aval
    return from_graph(build(lambda xs: [jnp.grad(loss)(*map(wrap, xs))._node], [aval, aval]))[0]


def calls_of(f, *args):
    """How many calls of functions, of Python's own too, one call makes."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        f(*args)
    finally:
        sys.setprofile(before)
    return count


def test_fusion_of_long_gradients_is_linear():
    small, large = mixed(14), mixed(112)
    ops = len(large.values) / len(small.values)
    assert ops > 7
    assert calls_of(fuse, large) < 1.3 * ops * calls_of(fuse, small)


def test_reachability_search_stays_between_levels():
    chain = [Cluster(i, (4,)) for i in range(500)]
    for a, b in pairwise(chain):
        a.need(b)
    assert reaches(chain[0], chain[-1])
    assert reaches(chain[3], chain[4])
    assert not reaches(chain[4], chain[3])
    assert not reaches(chain[7], chain[7])
    assert calls_of(reaches, chain[200], chain[202]) < 30
    assert calls_of(reaches, chain[202], chain[200]) < 5
    aside = Cluster(500, (4,))
    chain[250].need(aside)
    assert reaches(chain[0], aside)
    assert not reaches(chain[251], aside)
    assert not reaches(aside, chain[499])
    chain[251].absorb_cluster(aside)
    assert aside.resolve_merged() is chain[251]
    assert reaches(chain[250], chain[251])
    assert all(n.level > c.level for c in chain for n in c.needs)
