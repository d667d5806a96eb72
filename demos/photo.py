"""An image pipeline on a real photograph, written as plain NumPy code and run eagerly.

It reads the photograph `china.jpg` from scikit-learn and writes `photo_before_after.png`. Each
function takes the array module `xp`; the same lines run on NumPy (the peer in the table) and on
accnp.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

import accnp as anp

OUT = Path(__file__).parent / "out"
LEVELS = 256


def load() -> np.ndarray:
    """Return the photograph as float32 in [0, 1], with shape height x width x 3."""
    return load_sample_image("china.jpg").astype(np.float32) / np.float32(255)


def blur(xp: Any, image: Any, sigma: float) -> Any:
    """Blur the first two axes with a Gaussian, one axis after the other."""
    radius = round(3 * sigma)
    bell = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights = (bell / bell.sum()).tolist()
    for axis in (0, 1):
        size = image.shape[axis]
        width = [(radius, radius) if i == axis else (0, 0) for i in range(image.ndim)]
        padded = xp.moveaxis(xp.pad(image, width, mode="edge"), axis, 0)
        smooth = sum(w * padded[i : i + size] for i, w in enumerate(weights))
        image = xp.moveaxis(smooth, 0, axis)
    return image


def sobel(xp: Any, grey: Any) -> Any:
    """Return the edge strength, the length of the gradient."""
    p = xp.pad(grey, 1, mode="edge")
    left, right = p[:, :-2], p[:, 2:]
    dx = (right - left)[:-2] + 2 * (right - left)[1:-1] + (right - left)[2:]
    up, down = p[:-2], p[2:]
    dy = (down - up)[:, :-2] + 2 * (down - up)[:, 1:-1] + (down - up)[:, 2:]
    return xp.sqrt(dx * dx + dy * dy) / 4


def equalise(xp: Any, grey: Any) -> Any:
    """Equalize the histogram: map each gray level to the fraction of pixels not above it."""
    levels = xp.clip(xp.round(grey * (LEVELS - 1)), 0, LEVELS - 1).astype(xp.int32)
    ordered = xp.sort(levels.ravel())
    not_above = xp.searchsorted(ordered, xp.arange(LEVELS, dtype=xp.int32), side="right")
    share = not_above.astype(xp.float32) / levels.size
    return share[levels]


def tone_curve(xp: Any, x: Any, alpha: float = 1.67, scale: float = 1.05) -> Any:
    """Apply a SELU around middle gray: highlights stay linear, shadows roll off smoothly."""
    t = 2 * x - 1
    bent = scale * xp.where(t > 0, t, alpha * xp.exp(t) - alpha)
    low = scale * alpha * (np.exp(-1).item() - 1)
    return (bent - low) / (scale - low)


def develop(xp: Any, image: Any) -> tuple[Any, Any, Any]:
    """Return the finished image, its edges and the equalized gray image."""
    grey = 0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2]
    edges = sobel(xp, blur(xp, grey, 1.0))
    equal = equalise(xp, grey)
    soft = blur(xp, image, 2.0)
    sharp = image + 0.7 * (image - soft)
    gain = (0.4 * grey + 0.6 * equal + 0.02) / (grey + 0.02)
    toned = tone_curve(xp, xp.clip(sharp * gain[..., None], 0, 1))
    ink = 1 - 0.8 * xp.clip(4 * edges - 0.3, 0, 1)
    return xp.clip(toned * ink[..., None], 0, 1), edges, equal


def plot(image: np.ndarray, finished: Any, edges: Any, equal: Any) -> Path:
    """Write the image before and after, and the two intermediate images."""
    OUT.mkdir(exist_ok=True)
    figure = Figure(figsize=(11, 7.8), layout="constrained")
    axes = figure.subplots(2, 2)
    panels = [
        ("before", image),
        ("after", finished),
        ("Sobel edges", edges / edges.max()),
        ("equalised grey", equal),
    ]
    for axis, (title, picture) in zip(axes.flat, panels):
        axis.imshow(np.asarray(picture), cmap="gray", vmin=0, vmax=1)
        axis.set_title(title)
        axis.axis("off")
    path = OUT / "photo_before_after.png"
    figure.savefig(path, dpi=110)
    return path


def timed_call(mode: str) -> Any:
    """Return a function without arguments that develops the photograph in `mode` and
    waits for it."""
    image = load()
    if mode == "numpy":
        return partial(develop, np, image)
    run = partial(develop, anp)
    if mode == "jit":
        run = anp.jit(run)
    picture = anp.asarray(image)
    return lambda: anp.block_until_ready(run(picture))


def main(argv: list[str] | None = None) -> None:
    """Develop the photograph eagerly, compare with NumPy and write the image."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(argv)
    image = load()
    finished, edges, equal = develop(anp, anp.asarray(image))
    path = plot(image, finished, edges, equal)
    print(f"wrote {path}")
    distance = float(np.abs(np.asarray(finished) - develop(np, image)[0]).max())
    print(f"photo: largest difference from NumPy {distance:.1e}")
    if not distance < 1e-2:  # one grey level at a rounding boundary moves a pixel by less
        raise SystemExit("photo: the picture differs from NumPy's")


if __name__ == "__main__":
    main()
