"""The demos: the network learns, the photograph equals NumPy's, and the images are written."""

from pathlib import Path

import numpy as np
import pytest

import accnp

pytest.importorskip("sklearn", reason="the demos read their data from scikit-learn")
pytest.importorskip("matplotlib", reason="the demos draw with matplotlib")

from demos import digits, photo


def is_picture(path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_digits_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(digits, "OUT", tmp_path)
    params, losses, accuracies = digits.train(12)
    assert losses[-1] < losses[0] / 5
    assert accuracies[-1] > 0.93
    curve, misread = digits.plot(params, losses, accuracies)
    assert is_picture(curve)
    assert is_picture(misread)


def test_digits_step_is_the_step_derived_by_hand():
    x, _, labels, _ = digits.load()
    params = accnp.tree.map(np.asarray, digits.initial(accnp.random.PRNGKey(3)))
    expected, want_loss = digits.numpy_sgd(params, x[:64], labels[:64])
    for step in (digits.sgd, accnp.jit(digits.sgd)):
        ours = accnp.tree.map(accnp.asarray, params)
        new, loss = step(ours, accnp.asarray(x[:64]), accnp.asarray(labels[:64]))
        assert float(loss) == pytest.approx(float(want_loss), rel=1e-5)
        for layer in ("hidden", "out"):
            for name in ("w", "b"):
                mine = np.asarray(new[layer][name])
                np.testing.assert_allclose(mine, expected[layer][name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_photo_matches_numpy(mode):
    image = photo.load()[100:260, 200:420]

    def develop(x):
        return photo.develop(accnp, x)

    ours = (accnp.jit(develop) if mode == "jit" else develop)(accnp.asarray(image))
    for mine, expected in zip(ours, photo.develop(np, image)):
        assert mine.dtype == expected.dtype == np.float32
        np.testing.assert_allclose(np.asarray(mine), expected, atol=2e-3)


def test_photo_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(photo, "OUT", tmp_path)
    photo.main([])
    assert is_picture(tmp_path / "photo_before_after.png")
    assert "largest difference from NumPy" in capsys.readouterr().out


def test_demos_use_no_other_array_library():
    for module in (digits, photo):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        assert "import accnp" in source
        assert not any(f"import {name}" in source for name in ("jax", "torch", "numba", "cupy"))
