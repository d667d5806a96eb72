"""Text that docstrings share: descriptions of parameters, errors and differences from NumPy.

The input is a docstring in NumPy style with lines such as `{axis}`; the output has the block of
that name from `BLOCKS` in its place. `errors.api_boundary` fills in the docstrings of public
functions; classes and generated functions use `filled`.
"""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

__all__ = ["BLOCKS", "NOT_GIVEN", "Sentinel", "fill", "filled"]


class Documented(Protocol):
    __doc__: str | None


T = TypeVar("T", bound=Documented)


class Sentinel:
    """Default of a parameter for which None is a valid argument; `help` shows its text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


NOT_GIVEN = Sentinel("<not given>")

# Name of a block -> its text, without indentation.
BLOCKS: dict[str, str] = {
    # --- parameters
    "a": """\
a : array_like
    Input array or number. Lists and tuples are not accepted.""",
    "axes_reduced": """\
axis : None, int, str or tuple of these, optional
    Axis or axes along which to reduce. None, the default, reduces all axes, and a negative number
    counts from the last axis. A string names a mapped axis of an enclosing `vmap` or `pmap`.""",
    "keepdims": """\
keepdims : bool, optional
    If True, the reduced axes stay in the result with length 1, so that it broadcasts against the
    input. The default is False.""",
    "out": """\
out : None, optional
    Not supported, since arrays are immutable; present for compatibility with NumPy.""",
    "where": """\
where : array_like of bool, optional
    Elements to include; it broadcasts against the input. The default includes all elements.""",
    "dtype_mean": """\
dtype : dtype_like, optional
    Floating or complex dtype of the result. The default is the dtype of `a`, or the default float
    dtype if `a` holds integers or bools.""",
    "ddof": """\
ddof : number, optional
    Delta degrees of freedom: the sum of squares is divided by N - ddof, where N is the number of
    elements. The default, 0, gives the variance of a whole population, and 1 the unbiased estimate
    from a sample.""",
    "correction": """\
correction : number, optional
    Name of `ddof` in the array API standard. Give one of the two.""",
    "known_mean": """\
mean : array_like, optional
    Precomputed mean, of a shape that broadcasts against `a`; `keepdims=True` gives such a mean.""",
    "shape": """\
shape : int or sequence of int
    Static lengths of the axes; an int makes a single axis.""",
    "dtype_default_float": """\
dtype : dtype_like, optional
    Dtype of the result. The default is float32 (float64 with `jax_enable_x64`).""",
    "dtype_converted": """\
dtype : dtype_like, optional
    Dtype to convert to. The default follows from the values: Python numbers give int32, float32 or
    complex64 (64-bit with `jax_enable_x64`), and arrays keep their dtype.""",
    "device": """\
device : Device or Sharding, optional
    Where to put the array. The default is the default device.""",
    "like_shape": """\
shape : int or sequence of int, optional
    Shape of the result, static. By default it is inherited from the given array.""",
    "like_dtype": """\
dtype : dtype_like, optional
    Dtype of the result. By default it is inherited from the given array.""",
    "order_kc": """\
order : {'K', 'C'}, optional
    Has no effect, since the memory layout of an array cannot be seen. Other orders are errors.""",
    "order_cf": """\
order : {'C', 'F'}, optional
    Whether the last index varies fastest ('C', the default) or the first one ('F').""",
    "dtype_joined": """\
dtype : dtype_like, optional
    Dtype of the result. The default is the promoted dtype of the arrays.""",
    "arrays_joined": """\
arrays : sequence of array_like
    Arrays to join. Elements that are lists are not accepted.""",
    "tup_joined": """\
tup : sequence of array_like
    Arrays to join. Elements that are lists are not accepted.""",
    "ary_split": """\
ary : array_like
    Array to split. Lists and tuples are not accepted.""",
    "sections": """\
indices_or_sections : int or sequence of int
    Number of equal parts, or rising indices before which to split. Both are static.""",
    "diagonal_k": """\
k : int, optional
    Number of the diagonal: 0, the default, is the main diagonal, positive numbers count to the
    right of it, and negative ones below it.""",
    "index_hints": """\
indices_are_sorted : bool, optional
    Promise that the indices are in rising order. The default is False.
unique_indices : bool, optional
    Promise that no element is indexed twice. The default is False.
mode : {'drop', 'fill', 'clip', 'promise_in_bounds'} or GatherScatterMode, optional
    What happens to updates out of bounds: 'drop' (also named 'fill'), the default, leaves them out,
    and 'clip' moves them to the nearest element.
wrap_negative_indices : bool, optional
    If True, the default, negative indices count from the end of the axis.""",
    "at_values": """\
values : array_like
    Operand for the indexed elements, which broadcasts to their shape.""",
    "returns_updated": """\
Array
    Updated copy, with the shape and dtype of the array, or the array itself if `inplace` is True.\
""",
    "size_results": """\
size : int, optional
    Static number of results, which is required under `jit`. Surplus results are dropped. The
    default, None, returns all of them and waits for the values.""",
    "searchsorted_method": """\
method : str, optional
    Algorithm in JAX: 'scan', 'scan_unrolled', 'sort' or 'compare_all'. It has no effect.""",
    "inplace": """\
inplace : bool
    Whether to change the array, which needs the option `item_assignment`, since arrays are
    immutable otherwise. True is the default, as in NumPy.""",
    "ar12": """\
ar1, ar2 : array_like
    Arrays of any shape, which are flattened. Lists and tuples are not accepted.""",
    "assume_unique": """\
assume_unique : bool, optional
    Promise that neither array holds a value twice. The default is False.""",
    "size_values": """\
size : int, optional
    Static number of values to return, which is required under `jit`. Surplus values are dropped.
    The default, None, returns all of them and waits for the values.""",
    "fill_values": """\
fill_value : array_like, optional
    Value that stands for missing ones if there are fewer than `size`. The default is the smallest
    of the values.""",
    "stable": """\
stable : bool, optional
    If True, the default, equal elements keep their order.""",
    "descending": """\
descending : bool, optional
    If True, the order is falling. The default, False, is rising.""",
    "kind_order": """\
kind, order : None, optional
    Not supported; present for compatibility with NumPy.""",
    "kth": """\
kth : int
    Position along the axis, static. Negative numbers count from the end.""",
    "axis_last": """\
axis : int, optional
    Axis along which to compute. The default is the last axis.""",
    "bins_range": """\
bins : int or array_like, optional
    Number of bins of equal width, or the vector of their edges. The default is 10 bins.
range : pair of numbers, optional
    First and last edge, if `bins` is a number. The default is the smallest and largest value.""",
    "density": """\
density : bool, optional
    If True, the counts are divided by their sum and the sizes of the bins, so that the integral is
    1. The default is False.""",
    "quantile_axis": """\
axis : int or sequence of int, optional
    Axis or axes along which to compute. None, the default, uses all elements.""",
    "quantile_out": """\
out : None, optional
    Not supported, since arrays are immutable; present for compatibility with NumPy.
overwrite_input : bool, optional
    Not supported; has to be False, the default.""",
    "quantile_method": """\
method : str, optional
    What is between two elements: 'linear' (the default) interpolates, 'lower', 'higher' and
    'nearest' take one of the two, and 'midpoint' their mean. 'inverted_cdf' takes the first element
    that reaches the share.""",
    "quantile_weights": """\
weights : array_like, optional
    Weights of the elements for the method 'inverted_cdf', with the shape of `a` or of the reduced
    axes.""",
    "window_points": """\
M : int
    Number of points, static.""",
    "trim_leading_zeros": """\
trim_leading_zeros : bool, optional
    If True, leading zeros are dropped, as in NumPy, which needs concrete values. The default is
    False, which works under `jit`.""",
    "a12": """\
a1, a2 : array_like
    Coefficients of the polynomials, along the first axis, highest degree first.""",
    "samples": """\
num : int, optional
    Number of samples, static. The default is 50.
endpoint : bool, optional
    If True, the default, `stop` is the last sample. If False, it is left out.""",
    "samples_axis": """\
axis : int, optional
    Position of the samples in the result if `start` or `stop` is an array. The default is 0.""",
    "dtype_samples_spaced": """\
dtype : dtype_like, optional
    Dtype of the result. By default integers give the default float dtype, float32 (float64 with
    `jax_enable_x64`).""",
    "count_read": """\
count : int, optional
    Number of elements to read. The default, -1, means all.""",
    "printing": """\
max_line_width, precision, suppress_small : optional
    Not used; the options are those of `set_printoptions`.""",
    "conv_mode": """\
mode : {'full', 'same', 'valid'}, optional
    Which positions to return: all at which the vectors overlap ('full'), as many as the longer
    vector has elements ('same'), or those at which the shorter one lies inside ('valid').""",
    "samples_ends": """\
start : array_like
    First sample, or an array of them. Lists are not accepted.
stop : array_like
    Last sample, or the end of the interval if `endpoint` is False.""",
    # --- parameters of transformations
    "argnums": """\
argnums : int or sequence of int, optional
    Positions of the arguments to differentiate with respect to. The default is 0.""",
    "has_aux": """\
has_aux : bool, optional
    Whether `fun` returns a pair `(value, aux)`, of which only the value is differentiated. The
    default is False.""",
    "holomorphic": """\
holomorphic : bool, optional
    Whether `fun` is holomorphic, which the caller guarantees. If True, the arguments must be
    complex. The default is False.""",
    "allow_int": """\
allow_int : bool, optional
    Whether to allow differentiation with respect to integers and bools, whose gradients have dtype
    `float0`. The default is False.""",
    "reduce_axes": """\
reduce_axes : sequence, optional
    Ignored; present for compatibility with JAX.""",
    "nondiff_argnums": """\
nondiff_argnums : sequence of int, optional
    Positions of arguments that are not differentiated, such as functions.
nondiff_argnames : sequence of str, optional
    Names of arguments that are not differentiated.""",
    "static_argnums": """\
static_argnums : int or sequence of int, optional
    Positions of arguments that are passed to the function as Python values. They must be hashable;
    there is one trace for each value.
static_argnames : str or iterable of str, optional
    Names of arguments that are passed as Python values.""",
    "backend": """\
backend : str, optional
    Name of a platform, "cpu" or "gpu". The default is the default backend.""",
    # --- parameters of networks
    "x_activation": """\
x : array_like
    Values of any shape. Floating dtypes are kept, and integers become the default float dtype.""",
    "returns_activation": """\
Array
    Result of the shape of `x` and the same floating dtype.""",
    "alpha_activation": """\
alpha : array_like, optional
    Limit for x towards minus infinity, with the opposite sign. It broadcasts against `x`. The
    default is 1.""",
    "axis_normalized": """\
axis : None, int or tuple of int, optional
    Axis or axes along which the function is computed; None is all of them. The default is the
    last.""",
    "init_shape": """\
shape : sequence of int
    Lengths of the axes of the weights.""",
    "init_dtype": """\
dtype : dtype_like, optional
    Type of the weights. The default is the default float dtype.""",
    "init_sharding": """\
out_sharding : Sharding, optional
    Layout of the weights over devices.""",
    "dtype_weights": """\
dtype : dtype_like, optional
    Dtype of the weights if the initializer is called without one. The default is the default
    float dtype.""",
    "returns_init": """\
callable
    Initializer: a function `(key, shape, dtype=None)` that returns the weights.""",
    "fan_axes": """\
in_axis : int or sequence of int, optional
    Axis or axes of the inputs. The default is -2.
out_axis : int or sequence of int, optional
    Axis or axes of the outputs. The default is -1.
batch_axis : int or sequence of int, optional
    Axes that count as neither inputs nor outputs. The remaining axes are a receptive field,
    whose size multiplies both numbers. The default is ().""",
    "returns_layer": """\
(init_fun, apply_fun)
    Layer: `init_fun(key, input_shape)` returns the shape of the output and the parameters, and
    `apply_fun(params, inputs)` the output.""",
    "step_size": """\
step_size : float or callable
    Length of a step, or a function from the number of the step to it.""",
    "mass": """\
mass : float
    Part of the last velocity that is kept.""",
    "returns_optimizer": """\
Optimizer
    Functions `(init_fn, update_fn, params_fn)`: from parameters to a state, from the number of
    the step, the gradient and a state to the next state, and from a state to the
    parameters.""",
    "schedule_size": """\
step_size : array_like
    First step size, a number or scalar array of a float or integer dtype.""",
    "decay_steps": """\
decay_steps : array_like
    Length of a period of the decay, in steps.""",
    "returns_schedule": """\
callable
    Function from the number of the step to the step size.""",
    # --- parameters of monitoring
    "event": """\
event : str
    Name of the event, such as "/my/event".""",
    "event_metadata": """\
**kwargs : str or int
    Metadata that listeners get as keyword arguments.""",
    "listener": """\
callback : callable
    Function that was registered.""",
    # --- parameters of sharding and profiles
    "sharding": """\
sharding : Sharding
    Layout of the array over devices.""",
    "mesh_axes": """\
axes : str or sequence of str, optional
    Names of the axes of the mesh. The default is all of them.""",
    "log_dir": """\
log_dir : str or Path
    Folder below which the files are written.
create_perfetto_link : bool, optional
    Whether to print where the file is and where to open it; nothing is sent. The default is
    False.
create_perfetto_trace : bool, optional
    Whether to write `perfetto_trace.json.gz`, too. The default is False.
profiler_options : ProfileOptions, optional
    Options of JAX's profiler; ignored.""",
    # --- parameters of reductions of segments
    "data_segments": """\
data : array_like
    Rows of shape (n, ...).
segment_ids : array_like of int
    Number of the segment of each row, of shape (n,). Rows with a number outside of 0 to
    `num_segments` are dropped.
num_segments : int, optional
    Number of segments. The default is the largest number plus one, which is not possible under
    `jit`.
indices_are_sorted : bool, optional
    Whether the caller guarantees that `segment_ids` is sorted. The default is False.
unique_indices : bool, optional
    Whether the caller guarantees that each number occurs once. The default is False.
bucket_size : int, optional
    Number of rows to reduce at a time before the results are reduced, which makes rounding
    errors smaller. The default is all rows.
mode : str, optional
    What happens to numbers out of range: "fill" or "drop" (the default) ignores the row, and
    "clip" uses the nearest segment.
out_sharding : NamedSharding or PartitionSpec, optional
    How the result lies on the devices of a mesh. By default, it follows from the operands.""",
    "check_tolerances": """\
atol, rtol : float or dict, optional
    Absolute and relative tolerance, for all dtypes or a dictionary by dtype. The default is
    2e-3 for float32 and 1e-5 for float64.
eps : float, optional
    Step of the finite differences.
err_msg : str, optional
    Text before the message of the error.""",
    # --- parameters of functions of sparse arrays
    "bcoo": """\
mat : BCOO
    Sparse array in coordinate format.""",
    "nse_nonzero": """\
nse : int, optional
    Static number of elements to store. The default is the number of nonzero elements, which is
    not possible under `jit`.""",
    "dot_dimensions": """\
dimension_numbers : tuple
    Pair of the contracted axes of both operands and the batch axes of both, as for
    `lax.dot_general`.""",
    "broadcast_in_dim": """\
shape : sequence of int
    Lengths of the axes of the result.
broadcast_dimensions : sequence of int
    Axis of the result for each axis of the operand.
sharding : None, optional
    Not supported: sparse arrays have no sharding.""",
    "sparse_format": """\
sparse_format : str, optional
    "bcoo" (the default), "bcsr", "coo", "csr" or "csc".""",
    "sparse_derivative": """\
fun : callable
    Function to differentiate, of sparse and dense arrays.
argnums : int or sequence of int, optional
    Positions of the arguments to differentiate with respect to. The default is 0.
has_aux : bool, optional
    Whether `fun` returns a pair `(value, aux)`. The default is False.
**kwargs : object
    Further options of the function for dense arguments.""",
    "atomic": """\
x_ref_or_view : Ref
    Reference, or part of one, to modify.
idx : index
    Elements to modify.
val : array_like
    Value of the dtype of the reference, which broadcasts to the part.
mask : array_like of bool, optional
    Elements to modify; it broadcasts to the shape of the part.""",
    "returns_atomic": """\
Array
    Previous content of the elements.""",
    # --- parameters of functions of pytrees
    "pytree": """\
tree : pytree
    Nested containers (tuples, lists, dictionaries, None, registered classes) of leaves.""",
    "is_leaf": """\
is_leaf : callable, optional
    Function that is called with each node; where it returns True, the node counts as a leaf.""",
    "is_leaf_takes_path": """\
is_leaf_takes_path : bool, optional
    Whether `is_leaf` is called with the path and the node. The default is False.""",
    "nodetype": """\
nodetype : type
    Class to register. Subclasses must be registered separately.""",
    "unflatten_func": """\
unflatten_func : callable
    Function from the static data and the children to an instance.""",
    "axis_or_flat": """\
axis : int, optional
    Axis along which to compute. None, the default, uses the flattened array.""",
    "dtype_sum": """\
dtype : dtype_like, optional
    Dtype of the result, in which the computation is done. The default depends on the dtype of `a`;
    see the notes.""",
    "dtype_cumulative": """\
dtype : dtype_like, optional
    Dtype of the result. The default widens bools and narrow integers to the default integer dtype,
    int32 or uint32 (64-bit with `jax_enable_x64`), and keeps other dtypes.""",
    "initial": """\
initial : scalar, optional
    Value to start with, which is combined with the elements.""",
    "promote_integers": """\
promote_integers : bool, optional
    If True, the default, narrow integers are widened to the default integer dtype. If False, they
    keep their dtype, in which the result may overflow.""",
    "tolerances": """\
rtol : array_like, optional
    Relative tolerance, which is multiplied by the magnitude of `b`. The default is 1e-5.
atol : array_like, optional
    Absolute tolerance, which matters where `b` is close to zero. The default is 1e-8.
equal_nan : bool, optional
    If True, two nan compare equal. The default is False.""",
    "bitorder": """\
bitorder : {'big', 'little'}, optional
    Whether the first of eight bits is the highest one of the byte ('big', the default) or the
    lowest one.""",
    "size_nonzero": """\
size : int, optional
    Static number of indices to return, which is required under `jit`. Surplus indices are dropped.
    The default, None, returns all of them and waits for the values.""",
    "fill_nonzero": """\
fill_value : array_like, optional
    Index that stands for missing ones if there are fewer than `size`. The default is 0.""",
    # --- errors
    "raises_not_array": """\
TypeError
    If `a` is neither an array nor a number. Lists and tuples are not accepted.""",
    "raises_no_complex": """\
TypeError
    If `a` is complex, or neither an array nor a number.""",
    "raises_operand": """\
TypeError
    If an operand is neither an array nor a number. Lists and tuples are not accepted.""",
    "raises_broadcast": """\
IncompatibleShapesError
    If the shapes do not broadcast. It is a TypeError and a ValueError.""",
    "raises_out": """\
NotImplementedError
    If `out` is given.""",
    "raises_backend": """\
RuntimeError
    If the backend is unknown, or it cannot be used.""",
    "raises_x": """\
TypeError
    If `x` is neither an array nor a number. Lists and tuples are not accepted.""",
    "raises_init_shape": """\
TypeError
    If a size is negative or not an integer.""",
    "raises_init": """\
TypeError
    From the initializer, if the first argument is not a PRNG key.
ValueError
    From the initializer, if the dtype is neither floating nor complex.""",
    "raises_init_floating": """\
TypeError
    From the initializer, if the first argument is not a PRNG key.
ValueError
    From the initializer, if the dtype is not floating.""",
    "raises_axis_array": """\
TypeError
    If an argument is neither an array nor a number.
ValueError
    If an axis is out of range.""",
    "raises_optimizer": """\
TypeError
    If `step_size` is neither a number nor a function, or the gradient that `update_fn` gets has
    another pytree structure than the parameters.""",
    "raises_leaf": """\
TypeError
    If a leaf is neither an array nor a number.""",
    "raises_listener": """\
AssertionError
    If the function is not registered.""",
    "raises_mesh": """\
ValueError
    If no mesh is in use, or it lacks an axis.""",
    "raises_mesh_spec": """\
TypeError
    If the mesh is not a `Mesh`.
ValueError
    If a spec does not match the mesh.""",
    "raises_segments": """\
ValueError
    If `num_segments` is negative, the number of ids is not the number of rows, or the mode is
    unknown.
TypeError
    If `segment_ids` is not of an integer dtype, `num_segments` is not an integer, or `data` is
    a list.""",
    "raises_grid": """\
ValueError
    If it is called outside of a kernel, or the grid has no such axis.""",
    "raises_bcoo": """\
AttributeError
    If the operand is not a `BCOO`.""",
    "raises_sparse": """\
AttributeError
    If the operand is not a sparse matrix of this format.""",
    "raises_matrix": """\
ValueError
    If the operand is not a matrix.
ConcretizationTypeError
    If it is traced and `nse` is not given.""",
    "raises_dot": """\
TypeError
    If contracted or batch axes differ in length.""",
    "raises_format": """\
ValueError
    If the format is unknown.""",
    "raises_atomic": """\
ValueError
    If it is not a reference, or the dtype differs.""",
    "raises_keys": """\
ValueError
    If the keys of a dictionary cannot be sorted.""",
    "raises_register": """\
TypeError
    If the argument is not a class.
ValueError
    If the class is already registered.""",
    "raises_grad": """\
TypeError
    If `fun` is not callable, its result is not a real scalar (a complex one needs `holomorphic`),
    an argument is neither floating nor, with `allow_int`, an integer, or `argnums` is out of
    range.""",
    # --- random numbers
    "key": """\
key : Array
    PRNG key, typed or raw. Use each key only once: `split` makes new keys from a key.""",
    "key_to_split": """\
key : Array
    PRNG key, typed or raw. Use the new keys instead of it from now on.""",
    "note_weak_carry": """\
A leaf of the initial carry that is weakly typed, such as a Python number, takes the dtype that the
function returns for it if that dtype is the result of promoting both. For example, the carry 0
becomes a float32 array if the function adds a float32 array to it. Other leaves must keep their
dtype.""",
    "sample_shape": """\
shape : int or sequence of int, optional
    Shape of the samples. The default, (), gives a single number.""",
    "sample_shape_params": """\
shape : int or sequence of int, optional
    Shape of the samples, to which the parameters broadcast. The default, None, is the shape to
    which the parameters broadcast together.""",
    "dtype_samples": """\
dtype : dtype_like, optional
    Floating dtype of the samples. The default is float32 (float64 with `jax_enable_x64`).""",
    "out_sharding": """\
out_sharding : NamedSharding or PartitionSpec, optional
    How the result lies on the devices of a mesh, which decides operations that are ambiguous
    otherwise. By default, it follows from the operands.""",
    "out_sharding_samples": """\
out_sharding : NamedSharding or PartitionSpec, optional
    How the samples lie on the devices of a mesh. The numbers do not depend on it.""",
    "prng_impl": """\
impl : str or key dtype, optional
    Generator: "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg" or "unsafe_rbg".
    The default is `config.default_prng_impl`.""",
    "prng_dtype": """\
dtype : str or key dtype, optional
    Another name of `impl`. Give one of the two.""",
    "returns_samples": """\
Array
    Samples of the given shape and dtype.""",
    "raises_key": """\
TypeError
    If `key` is not a PRNG key, or a size is negative.""",
    "raises_samples": """\
ValueError
    If `dtype` is not floating, or `key` is an array of several keys.""",
    "raises_samples_params": """\
ValueError
    If `dtype` is not floating, the parameters do not broadcast to the shape, or `key` is an array
    of several keys.""",
    # --- lax
    "accuracy": """\
accuracy : AccuracyMode or Tolerance, optional
    Requested accuracy of elementary functions in JAX. It is checked and has no effect.""",
    "raises_accuracy": """\
NotImplementedError
    If `accuracy` is neither None nor an AccuracyMode or a Tolerance.""",
    # --- shapes, products and mapped axes
    "dtype_filled": """\
dtype : dtype_like, optional
    Dtype of the array. The default is that of the value, weak for a Python number.""",
    "precision": """\
precision : Precision or str, optional
    Precision of products in JAX. It has no effect on a CPU, where products have the precision of
    their operands.""",
    "preferred_element_type": """\
preferred_element_type : dtype_like, optional
    Dtype of the result, in which products are also summed up. The default is the promoted dtype of
    the operands.""",
    "axis_name": """\
axis_name : hashable
    Name of the mapped axis, given to `vmap`, `pmap` or `shard_map`.""",
    "raises_axes": """\
ValueError
    If an axis is out of bounds or given twice.""",
    "raises_shape": """\
TypeError
    If a size is negative, traced or not an integer, or the dtype is unknown.""",
    "raises_values": """\
TypeError
    If a value is a string or another object without numbers, or nested lists differ in length.
ValueError
    If the argument is None.
OverflowError
    If an integer is out of the range of the dtype.
NotImplementedError
    If `order` is 'F'.""",
    "raises_joined": """\
TypeError
    If the argument is not a sequence, an element is neither an array nor a number, or the shapes
    differ in other axes.
ValueError
    If no array is given, or the axis is out of bounds.""",
    "raises_split": """\
TypeError
    If `ary` is neither an array nor a number, or the indices are traced.
ValueError
    If the parts are not equal, the number of parts is negative, the indices do not rise within the
    bounds, or the axis is out of bounds.
ZeroDivisionError
    If the number of parts is 0.""",
    "raises_index": """\
IndexError, TypeError
    If the index is not valid for the array.
ValueError
    If the values do not broadcast to the indexed elements, or the mode is unknown.""",
    "raises_traced_size": """\
ConcretizationTypeError
    If values are traced and `size` is not given. It is a TypeError.""",
    "raises_quantile": """\
TypeError
    If `a` is neither an array nor a number, or `q` does not have a floating dtype.
ValueError
    If the array is empty, the method is unknown, a value is complex, `q` has more than one
    axis, the weights do not fit, an axis is out of bounds, or `out` or `overwrite_input` is given.
NotImplementedError
    If weights are given with another method than 'inverted_cdf'.""",
    "raises_median": """\
TypeError
    If `a` is neither an array nor a number.
ValueError
    If `a` is complex or has no elements, an axis is out of bounds, or `out` or `overwrite_input` is
    given.""",
    "note_sizes": """\
Under `jit` the number of values is not known, so that `size` is required. The result is then padded
with `fill_value`.""",
    "raises_ar12": """\
TypeError
    If an array is a list, or is traced and `size` is not given.""",
    "raises_window": """\
TypeError
    If `M` is negative, traced or not an integer.""",
    "note_narrow": """\
Integers keep their dtype, so that sums of narrow integers may overflow.""",
    "note_32": """\
64-bit dtypes give 32-bit arrays unless `jax_enable_x64` is set.""",
    # --- differences from NumPy
    "note_inexact": """\
Integers and bools of any width give the default float dtype, float32 (float64 with
`jax_enable_x64`), where NumPy depends on the width. There are no `out`, `where` and `dtype`
parameters.""",
    "note_promotion": """\
Dtypes are promoted as in JAX: int32 and float32 give float32, where NumPy gives float64. There are
no `out`, `where` and `dtype` parameters.""",
    "note_ufunc": """\
Unlike in NumPy, there are no `out`, `where` and `dtype` parameters.""",
    # --- collectives
    "axis_name_or_names": """\
axis_name : hashable or tuple of hashables
    Name of the mapped axis, given to `vmap`, `pmap` or `shard_map`, or several names, of which the
    first one is the slowest.""",
    "x_mapped": """\
x : pytree
    Array, number or tree of them: the value of this example, of any shapes and dtypes.""",
    "axis_index_groups": """\
axis_index_groups : sequence of sequences of int, optional
    Groups of positions along the axis; each group is processed separately. By default there is one
    group of all.""",
    "raises_axis_name": """\
NameError
    If no mapped axis has this name.""",
    # --- indices of lax
    "unique_indices": """\
unique_indices : bool, optional
    Promise that no index occurs twice, which is not checked. The default is False.""",
    "indices_are_sorted": """\
indices_are_sorted : bool, optional
    Promise that indices are in ascending order, which is not checked. The default is False.""",
    "mode_gather": """\
mode : str or GatherScatterMode, optional
    What windows that are not inside of the operand read: "clip" moves them inside, "fill" reads
    `fill_value`, and "promise_in_bounds", the default, guarantees that there are none.""",
    "mode_scatter": """\
mode : str or GatherScatterMode, optional
    What happens to windows that are not inside of the operand: "clip" moves them inside, "drop"
    ignores them, and "promise_in_bounds" guarantees that there are none. By default they are
    ignored.""",
    "returns_scatter": """\
Array
    Changed copy, of the shape and dtype of `operand`.""",
    "allow_negative": """\
allow_negative_indices : bool, optional
    Whether a negative position counts from the end. The default is True.""",
    "approx_k": """\
operand : array_like
    Array of floating dtype to search.
k : int
    Number of elements to return.
reduction_dimension : int, optional
    Axis to search along. The default is the last one.
recall_target : float, optional
    Expected share of these elements that is found. It has no effect, since all are found.
reduction_input_size_override : int, optional
    Length of the whole axis, if `operand` is a part of it.
aggregate_to_topk : bool, optional
    Whether to return exactly `k` elements. The default is True.""",
    "scatter_params": """\
operand : array_like
    Array to change a copy of, of any shape and numeric dtype.
scatter_indices : array_like of int
    Starts of the windows; the last axis holds the coordinates of one window.
updates : array_like
    Contents of the windows to write or to combine, of the dtype of `operand`.
dimension_numbers : ScatterDimensionNumbers
    Roles of the axes of operand, indices and updates.
indices_are_sorted : bool, optional
    Promise that indices are in ascending order, which is not checked. The default is False.
unique_indices : bool, optional
    Promise that no index occurs twice, which is not checked. The default is False.
mode : str or GatherScatterMode, optional
    What happens to windows that are not inside of the operand: "clip" moves them inside, "drop"
    ignores them, and "promise_in_bounds" guarantees that there are none. By default they are
    ignored.""",
    "raises_scatter": """\
TypeError
    If indices are not integers, or updates have another dtype or do not fit.
ValueError
    If the mode is unknown.""",
    # --- linear algebra and Fourier transforms
    "a_square": """\
a : array_like
    Square matrices of shape (..., n, n).""",
    "hermitian_svd": """\
hermitian : bool, optional
    Whether the matrices are symmetric or Hermitian, so that eigenvalues can be used. The default is
    False.""",
    "norm_fft": """\
norm : {"backward", "ortho", "forward"}, optional
    Scaling. "backward", the default, divides inverse transforms by the number of elements n,
    "forward" divides the other transforms, and "ortho" divides both by sqrt(n).""",
    # --- convolutions and factorizations
    "window_strides": """\
window_strides : sequence of int
    Distance between windows along each spatial axis.""",
    "conv_dimension_numbers": """\
dimension_numbers : None, tuple of str or ConvDimensionNumbers, optional
    Roles of the axes, as in `conv_general_dilated`.""",
    "x_square": """\
x : array_like
    Square matrices of shape (..., n, n), of floating or complex dtype.""",
    "raises_square": """\
ValueError
    If the matrices are not square.""",
    "conv_dilations": """\
lhs_dilation : sequence of int, optional
    Distance between the elements of the array along each spatial axis. The default is 1.
rhs_dilation : sequence of int, optional
    Distance between the taps of the kernel along each spatial axis. The default is 1.""",
    "conv_shapes": """\
lhs_shape : sequence of int
    Lengths of the axes of the array.
rhs_shape : sequence of int
    Lengths of the axes of the kernel.
window_strides : sequence of int
    Distance between windows along each spatial axis.
padding : str or sequence of (int, int)
    Name of a padding, or how many places to add before and after each spatial axis.
dimension_numbers : None, tuple of str or ConvDimensionNumbers
    Roles of the axes, as in `conv_general_dilated`.""",
    # --- statistics
    "dirichlet_params": """\
x : array_like
    Points of the simplex, of shape (k, ...), or (k - 1, ...) without the last coordinate.
alpha : array_like
    Concentrations, positive, of shape (k,).""",
    "multinomial_params": """\
x : array_like of int
    Counts of the outcomes, of shape (..., k).
n : array_like of int
    Number of trials, the sum of the counts.
p : array_like
    Probabilities of the outcomes, of shape (..., k).""",
    "multivariate_normal_params": """\
x : array_like
    Points to evaluate it at, of shape (..., k).
mean : array_like
    Mean of shape (k,), or a number for k = 1.
cov : array_like
    Covariance matrix of shape (k, k), or a number, which is multiplied by the identity.""",
    "raises_dirichlet": """\
ValueError
    If `alpha` is not a vector, or `x` does not have k or k - 1 coordinates.
TypeError
    If an argument is a list or complex.""",
    "raises_multinomial": """\
ValueError
    If `x` or `n` does not have an integer dtype.
TypeError
    If shapes do not broadcast, or an argument is a list.""",
    "raises_multivariate_normal": """\
ValueError
    If `x` or `cov` does not fit the mean.
TypeError
    If an argument is a list.""",
    "raises_samples_axis": """\
ValueError
    If `axis` is out of bounds, or an option is unknown.
TypeError
    If `a` is a list.""",
    # --- special functions
    "returns_special": """\
Array
    Values of the function, with the shape to which the arguments broadcast. The dtype is floating
    or complex: integers give float32 (float64 with `jax_enable_x64`).""",
    "raises_special": """\
TypeError
    If an argument is not an array or a number, or shapes do not broadcast.""",
    "raises_real": """\
TypeError
    If the argument is not an array or a number, or is complex.""",
    "raises_real_broadcast": """\
TypeError
    If an argument is not an array or a number, or is complex, or shapes do not broadcast.""",
    "raises_lpmn": """\
TypeError
    If `z` has another dtype.
ValueError
    If `z` is not a vector.
NotImplementedError
    If `m` and `n` differ.""",
    # --- SciPy
    "raises_lists": """\
TypeError
    If an argument is not an array or a number.""",
    "n_square": """\
n : int
    Number of rows and of columns, not negative.""",
    "overwrite_a": """\
overwrite_a : bool, optional
    Accepted for compatibility with SciPy; it has no effect.""",
    "overwrite_b": """\
overwrite_b : bool, optional
    Accepted for compatibility with SciPy; it has no effect.""",
    "check_finite": """\
check_finite : bool, optional
    Accepted for compatibility with SciPy; it has no effect, since values are not checked.""",
    "lower_factor": """\
lower : bool, optional
    Whether to read the lower triangle and return the lower factor. The default, False, is the upper
    one.""",
    "b_system": """\
b : array_like
    Right-hand sides, of shape (n,) or (..., n, k).""",
    "krylov_m": """\
M : array_like or callable, optional
    Preconditioner, an approximate inverse of A: a matrix or a function.""",
    "mode_convolve": """\
mode : {"full", "same", "valid"}, optional
    "full", the default, gives every place where the arrays overlap, "same" as many from the middle
    as `in1` has, and "valid" those where one array is inside of the other.""",
    "fs": """\
fs : array_like, optional
    Sampling frequency: samples per unit of time. The default is 1.""",
    "window": """\
window : str, tuple or array_like, optional
    Name of a window, or its values. Windows other than "hann", the default, come from SciPy's
    `get_window`.""",
    "noverlap": """\
noverlap : int, optional
    Number of elements that two segments share. The default is half a segment.""",
    "nfft_padded": """\
nfft : int, optional
    Number of elements to transform; segments are padded with zeros. The default is no padding.""",
    "axis_time": """\
axis : int, optional
    Axis of time. The default is the last one.""",
    "norm_cosine": """\
norm : {"backward", "ortho"}, optional
    Scaling: "backward", the default, keeps sums as they are, and "ortho" makes the transform
    orthogonal.""",
    "raises_n_square": """\
TypeError
    If `n` is not an integer.
ValueError
    If `n` is negative.""",
    "raises_square_array": """\
TypeError
    If `a` is not an array.
ValueError
    If the matrices are not square.""",
    "raises_system": """\
TypeError
    If an argument is not an array or a number, or batch axes do not broadcast.
ValueError
    If the matrices are not square, or the right-hand side has another number of rows.""",
    "krylov_params": """\
A : array_like or callable
    Matrix, or a linear function of trees of the structure of `b`.
b : pytree
    Right-hand side, an array or a tree of arrays of floating or complex dtype.
x0 : pytree, optional
    Initial guess, of the structure of `b`. The default is zeros.
tol : float, optional
    Relative tolerance: the residual is at most `tol` times the norm of `b`. The default is 1e-5.
atol : float, optional
    Absolute tolerance of the residual. The default is 0.""",
    "raises_krylov": """\
TypeError
    If `A` is neither a function nor a matrix, or does not fit `b`.
ValueError
    If `x0` does not have the structure and shapes of `b`.""",
    "in1_in2": """\
in1 : array_like
    First array, of floating or complex dtype; others are promoted.
in2 : array_like
    Second array, of the same rank.""",
    "boundary_2d": """\
boundary : {"fill"}, optional
    Values outside of `in1`. Only "fill" is supported.
fillvalue : scalar, optional
    Value outside of `in1`. Only 0 is supported.""",
    "raises_2d": """\
TypeError
    If an operand is not an array.
ValueError
    If an array does not have two axes, or `mode` is unknown.
NotImplementedError
    If `boundary` or `fillvalue` is another one.""",
    "spectra_params": """\
fs : array_like, optional
    Sampling frequency: samples per unit of time. The default is 1.
window : str, tuple or array_like, optional
    Name of a window, or its values. Windows other than "hann", the default, come from SciPy's
    `get_window`.
nperseg : int, optional
    Number of elements of a segment, static. The default is the length of the signal, where SciPy
    uses at most 256.
noverlap : int, optional
    Number of elements that two segments share. The default is half a segment.
nfft : int, optional
    Number of elements to transform; segments are padded with zeros. The default is no padding.
detrend : str, callable or False, optional
    Trend to subtract from each segment: "constant", the default, "linear", or False for none. A
    function of segments returns them without their trend.
return_onesided : bool, optional
    Whether to return only frequencies that are not negative, for real signals. The default is
    True.
scaling : {"density", "spectrum"}, optional
    Whether to return power per frequency, the default, or power.
axis : int, optional
    Axis of time. The default is the last one.
average : {"mean", "median"}, optional
    How to average the segments. The default is "mean".""",
    "raises_spectra": """\
ValueError
    If signals do not broadcast, an axis is out of bounds, an option is unknown, or `nperseg`,
    `noverlap` and `nfft` do not fit each other.
TypeError
    If a signal is a list, or a number of elements is not an integer.""",
    "cosine_x": """\
x : array_like
    Array to transform. Real and imaginary part of complex numbers are transformed separately.
type : int, optional
    Type of the transform. Only 2 is supported.""",
    "cosine_axes": """\
s : sequence of int, optional
    Lengths to which the axes are cut or padded with zeros. The default is their own.
axes : sequence of int, optional
    Axes to transform. The default is as many of the last axes as `s` has, or all axes.""",
    "raises_cosine": """\
NotImplementedError
    If `type` is not 2.
ValueError
    If `norm` is unknown, or lengths and axes do not fit.""",
}
_LINE = re.compile(r"(\n *)\{(\w+)\}(?=\n)")  # faster than with ^ and $, which imports notice


def fill(text: str) -> str:
    """Return a docstring with each line `{name}` replaced by the block of that name."""
    return _LINE.sub(_block, text)


def _block(match: re.Match[str]) -> str:
    indent, name = match.groups()
    return indent + BLOCKS[name].replace("\n", indent)


def filled(documented: T) -> T:
    """Fill in the shared text of a class or function, as a decorator."""
    if documented.__doc__ is not None:  # under `python -OO` there are no docstrings
        documented.__doc__ = fill(documented.__doc__)
    return documented
