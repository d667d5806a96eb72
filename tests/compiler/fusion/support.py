"""Plans of functions of arrays, without running them."""

from accnp import engine
from accnp.array_type import from_numpy, wrap
from accnp.ir.graph import build
from accnp.pytree import tree_flatten


def plan_of(f, *arrays):
    """The plan of f at these NumPy arrays' shapes and dtypes."""
    avals = [from_numpy(x)._node.aval for x in arrays]
    graph = build(lambda xs: [x._node for x in tree_flatten(f(*map(wrap, xs)))[0]], avals)
    return engine.plan_of_graph(graph)[0]


def steps_of(f, *arrays):
    """What the plan's steps are: the form of a kernel, "rest" for the second stage of a split fold,
    or the name of an op with a kernel or a library function of its own."""
    return [_kind(step) for step in plan_of(f, *arrays).steps]


def _kind(step):
    if not hasattr(step, "text"):
        return step.op.name
    if not step.cluster:
        return "rest"
    return step.cluster.roots[0].op.name if step.cluster.form == "own" else step.cluster.form
