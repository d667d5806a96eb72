"""Train a two-layer network that classifies scikit-learn's digits, 8x8 grey images.

The data set is included in scikit-learn. The demo prints the test accuracy, and writes
`digits_curve.png` (loss and accuracy per epoch) and `digits_misread.png` (images that the network
misclassifies).
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import accnp as anp
from accnp import random

HIDDEN = 128
BATCH = 64
RATE = 0.2
OUT = Path(__file__).parent / "out"

Params = dict[str, dict[str, Any]]


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images, test images, training labels and test labels."""
    pictures, labels = load_digits(return_X_y=True)
    scaled = (pictures / 16.0).astype(np.float32)
    labels = labels.astype(np.int32)
    parts: Any = train_test_split(scaled, labels, test_size=0.25, random_state=0)
    return tuple(parts)


def initial(key: Any) -> Params:
    """Return random weights, scaled so that each layer keeps the variance of its input."""
    first, second = random.split(key)
    return {
        "hidden": {
            "w": random.normal(first, (64, HIDDEN)) * (2.0 / 64) ** 0.5,
            "b": anp.zeros(HIDDEN),
        },
        "out": {
            "w": random.normal(second, (HIDDEN, 10)) * (1.0 / HIDDEN) ** 0.5,
            "b": anp.zeros(10),
        },
    }


def forward(params: Params, x: Any) -> Any:
    """Return the unnormalized scores of the ten digits."""
    hidden = anp.maximum(x @ params["hidden"]["w"] + params["hidden"]["b"], 0.0)
    return hidden @ params["out"]["w"] + params["out"]["b"]


def loss(params: Params, x: Any, labels: Any) -> Any:
    """Return the mean cross entropy."""
    scores = forward(params, x)
    peak = scores.max(axis=1, keepdims=True)
    log_total = peak[:, 0] + anp.log(anp.exp(scores - peak).sum(axis=1))
    hit = labels[:, None] == anp.arange(10)
    return (log_total - anp.where(hit, scores, 0.0).sum(axis=1)).mean()


def sgd(params: Params, x: Any, labels: Any, rate: float = RATE) -> tuple[Params, Any]:
    """Take one step of gradient descent; return new parameters and the loss before the step."""
    value, gradient = anp.value_and_grad(loss)(params, x, labels)
    return anp.tree.map(lambda p, g: p - rate * g, params, gradient), value


@anp.jit
def accuracy(params: Params, x: Any, labels: Any) -> Any:
    """Return the fraction of images whose highest score is the right digit."""
    return (forward(params, x).argmax(axis=1) == labels).mean()


def epoch(step: Any, params: Params, x: Any, labels: Any, order: Any) -> tuple[Params, list]:
    """Make one pass over the data in the given order, in whole minibatches."""
    losses = []
    for start in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        params, value = step(params, x[rows], labels[rows])
        losses.append(value)
    return params, losses


def train(epochs: int) -> tuple[Params, list[float], list[float]]:
    """Train from scratch; return the mean loss and the test accuracy of each epoch."""
    x, x_test, labels, labels_test = map(anp.asarray, load())
    key, init_key = random.split(random.PRNGKey(0))
    params = initial(init_key)
    step = anp.jit(sgd)
    mean_losses, accuracies = [], []
    bar = tqdm(range(epochs), desc="digits", unit="epoch")
    for _ in bar:
        key, shuffle_key = random.split(key)
        order = random.permutation(shuffle_key, x.shape[0])
        params, losses = epoch(step, params, x, labels, order)
        mean_losses.append(float(anp.stack(losses).mean()))
        accuracies.append(float(accuracy(params, x_test, labels_test)))
        bar.set_postfix(loss=f"{mean_losses[-1]:.4f}", test=f"{accuracies[-1]:.1%}")
    return params, mean_losses, accuracies


def plot(params: Params, losses: list[float], accuracies: list[float]) -> list[Path]:
    """Write the two images and return their paths."""
    OUT.mkdir(exist_ok=True)
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.subplots()
    left.semilogy(losses, color="tab:blue")
    left.set(xlabel="epoch", ylabel="training loss")
    right = left.twinx()
    right.plot(accuracies, color="tab:orange")
    right.set(ylabel="test accuracy", ylim=(min(0.8, *accuracies), 1.0))
    left.set_title(f"digits: test accuracy {accuracies[-1]:.2%}")
    curve = OUT / "digits_curve.png"
    figure.savefig(curve, dpi=120)

    _, x_test, _, labels_test = load()
    read = np.asarray(forward(params, anp.asarray(x_test)).argmax(axis=1))
    wrong = np.flatnonzero(read != labels_test)[:12]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(2, 6)
    for axis in axes.flat:
        axis.axis("off")
    for axis, i in zip(axes.flat, wrong):
        axis.imshow(x_test[i].reshape(8, 8), cmap="gray_r")
        axis.set_title(f"is {labels_test[i]}, read {read[i]}")
    misread = OUT / "digits_misread.png"
    figure.savefig(misread, dpi=120)
    return [curve, misread]


def numpy_sgd(params: Params, x: Any, labels: Any, rate: float = RATE) -> tuple[Params, Any]:
    """The same step in NumPy, with a gradient derived by hand."""
    w1, b1 = params["hidden"]["w"], params["hidden"]["b"]
    w2, b2 = params["out"]["w"], params["out"]["b"]
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    peak = scores.max(axis=1, keepdims=True)
    share = np.exp(scores - peak)
    total = share.sum(axis=1, keepdims=True)
    hit = labels[:, None] == np.arange(10)
    value = (peak + np.log(total) - scores[hit][:, None]).mean()
    d_scores = (share / total - hit) / np.float32(len(x))
    d_hidden = (d_scores @ w2.T) * (hidden > 0)
    new = {
        "hidden": {"w": w1 - rate * (x.T @ d_hidden), "b": b1 - rate * d_hidden.sum(axis=0)},
        "out": {"w": w2 - rate * (hidden.T @ d_scores), "b": b2 - rate * d_scores.sum(axis=0)},
    }
    return new, value


def timed_call(mode: str) -> Any:
    """Return a function without arguments that runs one epoch in `mode` and waits for
    the result."""
    x, _, labels, _ = load()
    params = anp.tree.map(np.asarray, initial(random.PRNGKey(0)))
    order = np.random.default_rng(0).permutation(len(x))
    if mode == "numpy":
        return partial(epoch, numpy_sgd, params, x, labels, order)
    step = anp.jit(sgd) if mode == "jit" else sgd
    params = anp.tree.map(anp.asarray, params)
    x, labels, order = anp.asarray(x), anp.asarray(labels), anp.asarray(order)
    return lambda: anp.block_until_ready(epoch(step, params, x, labels, order))


def main(argv: list[str] | None = None) -> None:
    """Train, print the accuracy and write the images."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    params, losses, accuracies = train(parser.parse_args(argv).epochs)
    for path in plot(params, losses, accuracies):
        print(f"wrote {path}")
    print(f"digits: test accuracy {accuracies[-1]:.2%}")
    if accuracies[-1] < 0.95:
        raise SystemExit("digits: the accuracy is below 95 %")


if __name__ == "__main__":
    main()
