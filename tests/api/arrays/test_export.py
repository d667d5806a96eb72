"""Memory that accnp arrays share with NumPy and other libraries: exported buffers are read-only,
later writes to the source do not change the array, and DLPack, pickle and copies preserve the
values.
"""

from __future__ import annotations

import base64
import copy
import pickle
import pickletools
import sys
import zlib

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp


def test_exported_memory_is_read_only() -> None:
    x = jnp.arange(4.0) * 2
    for view in (np.asarray(x), np.from_dlpack(x), memoryview(np.asarray(x))):
        assert not np.asarray(view).flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.asarray(x).setflags(write=True)
    assert np.array(x).flags.writeable
    assert bytes(x) == np.asarray(x).tobytes()


def test_exported_buffer_is_read_only() -> None:
    x = jnp.arange(4.0)
    view = memoryview(x) if sys.version_info >= (3, 12) else x.__buffer__(0)
    assert view.readonly
    assert view.shape == (4,)


@pytest.mark.parametrize(
    "give", [jnp.asarray, jnp.array, jnp.from_dlpack, lambda a: jnp.zeros(4) + a]
)
def test_later_writes_to_source_do_not_change_array(give) -> None:
    a = np.ones(4, np.float32)
    x = give(a)
    y = x + 1
    a[:] = 9
    assert (float(x.max()), float(y.max())) == (1, 2)


def test_equality_hash_and_none() -> None:
    x = jnp.arange(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert (x == x).shape == (3,)
    assert (x == None) is False  # noqa: E711
    assert 2 in x
    assert 7 not in x


@pytest.mark.parametrize(
    "call",
    [
        np.sin, np.sum, np.mean, np.sort, np.unique, np.median, np.transpose, np.max,
        lambda x: np.concatenate([x, x]), lambda x: np.add(x, x), lambda x: np.where(x > 1, x, 0),
        lambda x: np.dot(x, x.T), np.linalg.norm, lambda x: np.ones((2, 3), np.float32) * x,
    ],
)  # fmt: skip
def test_numpy_functions_take_arrays(call) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(np.asarray(call(jnp.asarray(data))), call(data), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "complex64", "bool"])
def test_pickles_and_copies(dtype: str) -> None:
    x = jnp.asarray(np.arange(3), dtype)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.dtype == x.dtype
        assert (y == x).all()
    assert pickle.loads(pickle.dumps(jnp.asarray(1.0))).weak_type
    assert copy.copy(jnp.asarray(1.0)).weak_type


# Values of all types with a pickle of their own, pickled by version 0.1.0.
_PICKLED = (
    "c-nPS%WB&|6!k-{?PBNyC(A;2&PGrOT@{>?LZAX+l4U7kB#onK^kOthsztzE*p6W~MYsRiKWOjFNOqs22Q!*;b?!O$"
    "&dT~Wv^sj+!%Pkc=cEGplmtPV+j`}RDyJYv9;bfE;t*<($7z}5mF)!?r*=}tf;E8?L<Lz|2wnz4AqN@>a+rn&QiIc3"
    "!+F<-EnLFP={o&2L?bx}H4ldLmZz|LFuQ%(eFLuRzW;$kznqQ$e|J7HNw4PkIs^4-g8_2nFXN1eSFa(mqG9w{aYd7s"
    "sfUYaa-77TCM$l$*9Xq%2pOFoUT2!iTFqDU1BZ1-$<4q1e-cd*+$Qv(!TlSG>Yo@taqhK7EiT;)hgNSJQ~sZBuRQ%D"
    "wZF_5b((QV^0{F&I_;DsO6^!Bu=lyY<Q1$DY*d*tzicX>Gy4-0Hu15PBoH3GC2>gv%Tnx)tBB<EoeH>W3w`nhT-`zD"
    "_t8`i3WWltLXL3GLzZ5HE62({(^R{113ofyip<A`Ij_{xHXT%Q+&J>~3vbD@#7naf)zt72X0D4R#I6)9Em{pVxJs4l"
    "bhZ$EkXFnJl_6HttV3p6vrF*tQN7xrYi&Z2(*WcPlS-Skof9sY((b8!BpT?6D%;ZC!0fBKRfXg@$Np!9wy6;mlg~EA"
    "Q$V@4PnBV@2i4ji415&QTNa?&sfprcDp*48_Vdt-v+SnKb>V`%#8afpHq^P17;XB^KTfYvHsy#|G>BRqvwp!8tKytR"
    "+l%>k(>QCm2N#>Cw0{ESIGO4"
)


def test_stored_pickles_load() -> None:
    """Pickles refer to modules and functions of accnp, so those must stay importable."""
    values = pickle.loads(zlib.decompress(base64.b85decode(_PICKLED)))
    expected = {
        "array": jnp.arange(3.0, dtype=jnp.float32), "bfloat16": jnp.ones(2, jnp.bfloat16),
        "weak": jnp.asarray(2.0), "key": accnp.random.key(0),
        "type": accnp.ShapeDtypeStruct((2,), np.float32),
        "tree": accnp.tree.structure({"a": 1, "b": [2, None]}),
        "spec": accnp.sharding.PartitionSpec("a", None),
        "precision": accnp.lax.Precision.HIGHEST, "device": accnp.devices()[0],
        "partial": accnp.tree_util.Partial(np.sin, 1.0),
    }  # fmt: skip
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        assert repr(values[name]) == repr(value), name
    assert values["weak"].weak_type
    # Modules that pickles written now refer to are those of the stored ones.
    references = [
        {a for _, a, _ in pickletools.genops(data) if isinstance(a, str) and "accnp" in a}
        for data in (zlib.decompress(base64.b85decode(_PICKLED)), pickle.dumps(expected, 4))
    ]
    assert references[0] == references[1]


def test_copies_survive_donation_of_the_array() -> None:
    step = accnp.jit(lambda a: a + 1, donate_argnums=0)
    for make in (copy.copy, copy.deepcopy, jnp.copy, lambda x: x.copy(), lambda x: x.clone()):
        x = jnp.arange(3.0) * 2
        y = make(x)
        step(x)
        assert y.tolist() == [0, 2, 4]
        x = jnp.asarray(np.arange(3.0))
        y = make(x)
        x.delete()
        assert y.tolist() == [0, 1, 2]
    assert accnp.jit(lambda a: copy.deepcopy({"w": a})["w"] * 2)(3.0) == 6


def test_operators_refuse_lists_and_a_modulus() -> None:
    x, listed = jnp.arange(3), [0, 1, 2]
    for refused in (
        lambda: x == listed,
        lambda: x != tuple(listed),
        lambda: listed == x,
        lambda: x < listed,
        lambda: x - listed,
        lambda: (x**2, pow(x, 2, 3)),
        lambda: pow(x, x, 3),
    ):
        with pytest.raises(TypeError, match=r"unsupported operand|not supported between"):
            refused()
    assert (x == "a") is False
    assert (x == None) is False  # noqa: E711


def test_recorded_operations_outlive_their_operands() -> None:
    step = accnp.jit(lambda a: a.at[0].set(9.0), donate_argnums=0)
    for first in (lambda: jnp.arange(3.0) * 2, lambda: (jnp.arange(3.0) * 2).block_until_ready()):
        x = first()
        double, rest = x * 2, x[1:]
        assert step(x).tolist() == [9, 2, 4]
        assert x.is_deleted()
        assert double.tolist() == [0, 4, 8]
        assert rest.tolist() == [2, 4]
        x = first()
        double = x * 2
        x.delete()
        assert double.tolist() == [0, 4, 8]
    with pytest.raises(RuntimeError, match="deleted"):
        step(x)


def test_dlpack_both_ways() -> None:
    x = jnp.arange(3.0)
    assert jax.numpy.from_dlpack(x).tolist() == [0, 1, 2]
    assert jnp.from_dlpack(jax.numpy.arange(3.0)).tolist() == [0, 1, 2]
    torch = sys.modules.get("torch")
    if torch is not None:
        assert torch.from_dlpack(x).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", "float8_e4m3fn", "complex64"])
def test_dlpack_types_that_numpy_lacks(dtype: str) -> None:
    x = jnp.array([0, 1, 2], dtype)
    there = jax.numpy.from_dlpack(x)
    assert there.dtype == x.dtype
    back = jnp.from_dlpack(there)
    assert back.dtype == x.dtype
    assert (back == x).all()
    for kw in ({"max_version": (1, 0)}, {"copy": True}, {"dl_device": (1, 0), "stream": None}):
        assert "dltensor" in repr(x.__dlpack__(**kw))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


def test_namespace_info() -> None:
    x = jnp.ones(1)
    theirs = jax.numpy.ones(1)
    assert x.__array_namespace__() is jnp
    assert x.__array_namespace__(api_version="2024.12") is jnp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999")
    assert jnp.__array_api_version__ >= jax.numpy.__array_api_version__
    ours = jnp.__array_namespace_info__()
    other = theirs.__array_namespace__().__array_namespace_info__()
    assert ours.capabilities() == other.capabilities()
    assert ours.default_dtypes() == other.default_dtypes()
    for kind in (None, "bool", "integral", ("real floating", "signed integer")):
        assert ours.dtypes(kind=kind) == other.dtypes(kind=kind)
    with accnp.enable_x64(True):
        assert "float64" in ours.dtypes()
    with pytest.raises(ValueError, match="nonsense"):
        ours.dtypes(kind="nonsense")
