"""Reshaping, joining, splitting and padding, compared with JAX: values, weak types, gradients and
errors.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from api.tables import compare_expression, compare_gradients, split_cases

import accnp
import accnp.numpy as jnp
from accnp.errors import ConcretizationTypeError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
Y = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)

SHAPES = """
reshape(X,(4,-1)) | reshape(X,-1) | reshape(X,(3,8),order='F') | ravel(X) | ravel(X,order='F')
transpose(X) | transpose(X,(1,0,2)) | swapaxes(X,0,-1) | moveaxis(X,0,-1)
moveaxis(X,(0,1),(2,0)) | rollaxis(X,2) | rollaxis(X,0,3) | expand_dims(X,(0,-1))
squeeze(X[:1]) | squeeze(X[:1],0) | broadcast_to(X[0],(5,3,4)) | broadcast_arrays(X[0],X)
atleast_1d(1.0) | atleast_2d(X[0,0]) | atleast_3d(X[0],1) | flip(X) | flip(X,1) | fliplr(X)
flipud(X) | rot90(X) | rot90(X,2) | rot90(X,3,(1,2)) | rot90(X,-1) | roll(X,2)
roll(X,(1,-2),(0,2)) | roll(X,jnp.asarray(3),1) | roll(X,jnp.asarray(-3))
roll(X,jnp.asarray([1,2]),(0,1)) | concatenate([X,X],1) | concatenate([X,X],None)
concatenate([X,X.astype('int32')],-1) | stack([X,X],1) | stack([1,2])
stack([1.,np.float16(2)]) | stack(X) | hstack([X,X]) | hstack([1,2]) | vstack([X[0,0],X[0,0]])
dstack([X,X]) | dstack([X[0,0],X[0,0]]) | column_stack([X[0,0],X[0,0]]) | append(X,X[0])
append(X,X,0) | block([[X[0],X[0]],[X[1],X[1]]]) | split(X,2,2) | split(X,[1,3],2)
array_split(X,3,2) | hsplit(X,3) | vsplit(X,2) | dsplit(X,2) | tile(X,2) | tile(X,(2,1,1,2))
tile(X[0,0],(2,2)) | repeat(X,2) | repeat(X,2,1) | repeat(X,np.array([1,0,2]),1)
repeat(X,np.array([1,0,2]),1,total_repeat_length=5)
repeat(X,np.array([1,0,2]),1,total_repeat_length=2) | resize(X,(5,7)) | delete(X,1,1)
delete(X,np.array([0, 2]),2) | delete(X,slice(0,2),1) | insert(X,1,0.,1)
insert(X[0,0],np.array([1, 3]),np.array([9.,8.],'f'))
insert(X[0],1,X[0,0],0) | insert(X[0],1,X[0,:,0],1) | unstack(X,axis=1)
trim_zeros(np.array([0,0,1,2,0])) | concatenate([X[0],X[1]],dtype='int32') | concatenate(X)
"""

PADS = """
pad(X,1) | pad(X,(1,2)) | pad(X,((1,0),(2,3)),constant_values=((1,2),(3,4))) | pad(X,2,'edge')
pad(X,2,'reflect') | pad(X,(7,5),'reflect') | pad(X,2,'symmetric') | pad(X,(7,9),'symmetric')
pad(X,2,'wrap') | pad(X,(7,9),'wrap') | pad(X,2,'reflect',reflect_type='odd')
pad(X,(5,6),'symmetric',reflect_type='odd') | pad(X,(2,3),'linear_ramp')
pad(X,2,'linear_ramp',end_values=((1,2),(3,4)))
pad(jnp.asarray(X, int),2,'linear_ramp',end_values=9) | pad(X,2,'maximum')
pad(X,2,'minimum',stat_length=2) | pad(X,2,'mean') | pad(jnp.asarray(X, int),2,'mean')
pad(X,(1,2),'median',stat_length=3) | pad(X,0) | pad(X[:1],2,'reflect')
pad(X,1,constant_values=7) | pad(jnp.asarray(X, int),1,constant_values=2.7) | pad(X>3,1)
"""

SMOOTH = """
reshape(Y, (4, 3)) | reshape(Y, (2, 6), order="F") | Y.T | moveaxis(Y, 0, 1) | flip(Y, 0)
roll(Y, 2) | roll(Y, (1, -1), (0, 1)) | rot90(Y) | concatenate([Y, Y * 2], 1)
stack([Y, Y * Y]) | split(Y, 2, 1)[1] | tile(Y, (2, 1)) | repeat(Y, 2, 1)
repeat(Y, np.array([1, 0, 2]), 0) | pad(Y, 1) | pad(Y, 2, "edge") | pad(Y, 2, "reflect")
pad(Y, (5, 6), "wrap") | pad(Y, 1, "mean") | broadcast_to(Y, (2, 3, 4)) | expand_dims(Y, 1)
diag(Y) | diagonal(Y, 1) | tril(Y) | triu(Y, 1) | kron(Y, Y) | delete(Y, 1, 0)
insert(Y, 1, Y[0], 0) | resize(Y, (5, 3)) | block([[Y, Y], [Y, Y]]) | meshgrid(Y[0], Y[:, 0])[0]
append(Y, Y[0])
"""


@pytest.mark.parametrize("text", split_cases(SHAPES))
def test_shapes_as_jax(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, X=X)


@pytest.mark.parametrize("text", split_cases(PADS))
def test_pad_as_jax(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, X=X[0] ** 1.5)


@pytest.mark.parametrize("text", split_cases(SMOOTH))
def test_gradients(text: str) -> None:
    compare_gradients(text, Y=Y)


REFUSED = [
    (lambda x: jnp.reshape(x, (5, -1)), TypeError, "cannot reshape array of shape"),
    (lambda x: jnp.reshape(x, (-1, -1)), TypeError, "can only specify one unknown axis size"),
    (lambda x: jnp.reshape(x, (5, 2)), TypeError, "cannot reshape array of shape"),
    (lambda x: jnp.reshape(x, (2, -2)), TypeError, "negative"),
    (lambda x: jnp.reshape(x, 24, order="X"), ValueError, "order"),
    (lambda x: jnp.expand_dims(x, 5), ValueError, "axis 5 is out of bounds"),
    (lambda x: jnp.squeeze(x, 0), ValueError, "cannot select an axis to squeeze out"),
    (lambda x: jnp.swapaxes(x, 0, 7), ValueError, "axis 7 is out of bounds"),
    (lambda x: jnp.transpose(x, (0, 1)), TypeError, "each of the 3 axes"),
    (lambda x: jnp.transpose(x, (0, 0, 1)), TypeError, "each of the 3 axes"),
    (lambda x: jnp.moveaxis(x, (0, 1), 2), ValueError, "equally many"),
    (lambda x: jnp.broadcast_to(x, (2, 4)), ValueError, "broadcast"),
    (lambda x: jnp.broadcast_to(x, (-1, 2, 3, 4)), ValueError, "negative"),
    (lambda x: jnp.concatenate([]), ValueError, "Need at least one array to concatenate"),
    (lambda x: jnp.concatenate([x, x[0]]), TypeError, "different numbers of dimensions"),
    (
        lambda x: jnp.concatenate([x, x[:, :1]], 0),
        TypeError,
        "other than the one being concatenated",
    ),
    (
        lambda x: jnp.concatenate([1, 2]),
        ValueError,
        "Zero-dimensional arrays cannot be concatenated",
    ),
    (lambda x: jnp.concatenate(5), TypeError, "sequence"),
    (lambda x: jnp.stack([x, x[0]]), ValueError, "All input arrays must have the same shape"),
    (lambda x: jnp.split(x, 5, 2), ValueError, "does not result in an equal division"),
    (lambda x: jnp.split(x, 0), ZeroDivisionError, "1 or more"),
    (lambda x: jnp.flip(x, 3), ValueError, "axis 3"),
    (lambda x: jnp.roll(x, (1, 2), (0, 1, 2)), ValueError, "must have the same length"),
    (lambda x: jnp.tile(x, -1), ValueError, "negative"),
    (lambda x: jnp.repeat(x, np.array([1, 2]), 1), ValueError, "repeats"),
    (lambda x: jnp.repeat(x, 1.5), TypeError, "integers"),
    (lambda x: jnp.pad(x, -1), ValueError, "negative"),
    (lambda x: jnp.pad(x, 1, "nothing"), NotImplementedError, "mode"),
    (lambda x: jnp.pad(x, 1, "edge", constant_values=1), ValueError, "does not accept"),
    (lambda x: jnp.pad(x, ((1, 2), (3, 4))), ValueError, "pad_width"),
    (lambda x: jnp.ravel("abc"), TypeError, "str"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_invalid_arguments_raise(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(jnp.asarray(X))


def test_traced_shape_names_reshape_and_the_operation() -> None:
    def bad(x: Any) -> Any:
        return x.reshape(jnp.array(x.shape).prod())

    with pytest.raises(ConcretizationTypeError) as caught:
        accnp.jit(bad)(jnp.ones((2, 3)))
    text = str(caught.value)
    assert "reshape" in text
    assert "reduce_prod" in text
    assert "test_manipulation.py" in text
    assert bad(jnp.ones((2, 3))).shape == (6,)


def test_traced_axis_is_refused() -> None:
    with pytest.raises(TypeError, match="used as an axis"):
        accnp.jit(lambda x, axis: jnp.flip(x, axis))(jnp.ones(3), 0)


def test_traced_shift_of_roll() -> None:
    for shift in (-7, -1, 0, 2, 9):
        out = accnp.jit(lambda x, k: jnp.roll(x, k, 2))(X, shift)
        np.testing.assert_array_equal(np.asarray(out), np.roll(X, shift, 2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_a_shift_of_roll_whose_dtype_does_not_hold_the_length(dtype) -> None:
    x = np.arange(665)
    for shift in np.array([-128, -127, -1, 0, 2, 126, 127]).astype(dtype):
        out = accnp.jit(jnp.roll)(x, shift)
        np.testing.assert_array_equal(np.asarray(out), np.roll(x, int(shift)))


def test_traced_repeats_need_a_length() -> None:
    counts = np.array([1, 0, 2])
    with pytest.raises(TypeError, match="repeat"):
        accnp.jit(lambda c: jnp.repeat(jnp.arange(3), c))(counts)
    out = accnp.jit(lambda c: jnp.repeat(jnp.arange(3), c, total_repeat_length=3))(counts)
    assert np.asarray(out).tolist() == [0, 2, 2]


@pytest.mark.parametrize("call", ["stack([X])", "outer(X, X)", "trace(M)", "take(X, 0)",
    "compress(X > 0, X)", "choose(I, [I])", "einsum('i,i', X, X)"])  # fmt: skip
def test_out_is_refused(call):
    names = {"X": jnp.ones(2), "M": jnp.ones((2, 2)), "I": jnp.array([0])}
    with pytest.raises(NotImplementedError, match="arrays are immutable"):
        eval(f"jnp.{call[:-1]}, out=X)", {"jnp": jnp, **names})


@pytest.mark.parametrize("place", [0, 3, -1, 9, np.array([4, 1, 1]), np.arange(10), slice(2, 7)])
def test_few_insertions_concatenate_slices(place):
    """No index array of all positions is computed, which takes a tenth of the time."""
    x = np.arange(20).reshape(2, 10)
    program = str(accnp.make_jaxpr(lambda x: jnp.delete(x, place, 1))(x))
    assert ("gather" in program) == (np.size(place) > 8)
    np.testing.assert_array_equal(jnp.delete(x, place, 1), np.delete(x, place, 1))
    np.testing.assert_array_equal(jnp.insert(x, place, 7, 1), np.insert(x, place, 7, 1))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.bool_, np.int32])
def test_insert_without_indices(kind: type) -> None:
    none = np.array([], kind)
    np.testing.assert_array_equal(jnp.insert(X, none, none), X.ravel())
    np.testing.assert_array_equal(jnp.insert(X, jnp.asarray(none), 3), X.ravel())
    np.testing.assert_array_equal(accnp.jit(jnp.insert)(X, none, none), X.ravel())
    np.testing.assert_array_equal(jnp.insert(X, none, 3, axis=1), X)
