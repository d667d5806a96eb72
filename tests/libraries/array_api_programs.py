"""Functions of SciPy and estimators of scikit-learn on accnp arrays, compared with NumPy arrays.

    python tests/libraries/array_api_programs.py scipy|sklearn

Both libraries call the functions of the array API standard, of `x.__array_namespace__()`, if the
variable SCIPY_ARRAY_API is set before they are imported. Prints JSON: by program, an empty text, or
what is wrong.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402

import accnp  # noqa: E402

Convert = Callable[[Any], Any]
Program = Callable[[Convert], Any]

_random = np.random.default_rng(0)
X, Y = _random.uniform(0.1, 2, (2, 4, 6))
N = _random.normal(size=30)
M = _random.normal(size=30) + 0.3 * N
P = np.array([0.1, 0.02, 0.3, 0.7])
COUNTS = _random.integers(0, 5, 20)


def scipy_programs() -> dict[str, Program]:
    """Return the programs, each a function of the conversion from NumPy."""
    from scipy import cluster, constants, fft, integrate, ndimage, optimize, signal, special, stats
    from scipy.spatial.transform import Rotation

    return {
        "special.logsumexp": lambda a: special.logsumexp(a(X), axis=1),
        "special.softmax": lambda a: special.softmax(a(X), axis=1),
        "special.log_softmax": lambda a: special.log_softmax(a(X), axis=1),
        "special.expit": lambda a: special.expit(a(X)),
        "special.logit": lambda a: special.logit(a(X / 3)),
        "special.erf": lambda a: special.erf(a(X)),
        "special.gammaln": lambda a: special.gammaln(a(X)),
        "special.xlogy": lambda a: special.xlogy(a(X), a(Y)),
        "special.entr": lambda a: special.entr(a(X)),
        "special.rel_entr": lambda a: special.rel_entr(a(X), a(Y)),
        "special.ndtr": lambda a: special.ndtr(a(X)),
        "special.betainc": lambda a: special.betainc(a(X), a(Y), a(X / 3)),
        "stats.zscore": lambda a: stats.zscore(a(X), axis=1),
        "stats.gzscore": lambda a: stats.gzscore(a(X), axis=1),
        "stats.zmap": lambda a: stats.zmap(a(X), a(Y)),
        "stats.pearsonr": lambda a: stats.pearsonr(a(N), a(M)),
        "stats.skew": lambda a: stats.skew(a(N)),
        "stats.kurtosis": lambda a: stats.kurtosis(a(N)),
        "stats.moment": lambda a: stats.moment(a(N), 3),
        "stats.skewtest": lambda a: stats.skewtest(a(N)),
        "stats.jarque_bera": lambda a: stats.jarque_bera(a(N)),
        "stats.ttest_1samp": lambda a: stats.ttest_1samp(a(N), 0.0),
        "stats.ttest_ind": lambda a: stats.ttest_ind(a(N), a(M)),
        "stats.ttest_rel": lambda a: stats.ttest_rel(a(N), a(M)),
        "stats.gmean": lambda a: stats.gmean(a(X)),
        "stats.hmean": lambda a: stats.hmean(a(X)),
        "stats.pmean": lambda a: stats.pmean(a(X), 2),
        "stats.tmean": lambda a: stats.tmean(a(N), (-1, 1)),
        "stats.tvar": lambda a: stats.tvar(a(N), (-1, 1)),
        "stats.tmin": lambda a: stats.tmin(a(N), -1),
        "stats.tmax": lambda a: stats.tmax(a(N), 1),
        "stats.sem": lambda a: stats.sem(a(N)),
        "stats.variation": lambda a: stats.variation(a(X)),
        "stats.entropy": lambda a: stats.entropy(a(X)),
        "stats.bartlett": lambda a: stats.bartlett(a(N), a(M)),
        "stats.chisquare": lambda a: stats.chisquare(a(X)),
        "stats.combine_pvalues": lambda a: stats.combine_pvalues(a(P)),
        "stats.false_discovery_control": lambda a: stats.false_discovery_control(a(P)),
        "stats.directional_stats": lambda a: stats.directional_stats(a(X)).mean_direction,
        "stats.circmean": lambda a: stats.circmean(a(X)),
        "stats.rankdata": lambda a: stats.rankdata(a(N)),
        "stats.quantile": lambda a: stats.quantile(a(N), a(np.array([0.2, 0.5]))),
        "stats.mode": lambda a: list(stats.mode(a(COUNTS))),
        "fft.fft": lambda a: fft.fft(a(X)),
        "fft.irfft": lambda a: fft.irfft(a(X + 0j)),
        "fft.fftn": lambda a: fft.fftn(a(X)),
        "fft.dct": lambda a: fft.dct(a(X)),
        "signal.convolve": lambda a: signal.convolve(a(N), a(P)),
        "signal.detrend": lambda a: signal.detrend(a(N)),
        "signal.hilbert": lambda a: signal.hilbert(a(N)),
        "ndimage.gaussian_filter": lambda a: ndimage.gaussian_filter(a(X), 1.0),
        "integrate.trapezoid": lambda a: integrate.trapezoid(a(N)),
        "integrate.cumulative_trapezoid": lambda a: integrate.cumulative_trapezoid(a(N)),
        "optimize.rosen": lambda a: optimize.rosen(a(N)),
        "constants.convert_temperature": lambda a: constants.convert_temperature(a(X), "C", "K"),
        "cluster.vq.whiten": lambda a: cluster.vq.whiten(a(X)),
        "spatial.transform.Rotation": lambda a: Rotation.from_quat(a(X[:, :4])).as_matrix(),
    }


FEATURES = _random.normal(size=(60, 5))
FEATURES[:30] += 1.5
LABELS = np.repeat([0, 1], 30)
TARGET = FEATURES @ np.arange(1.0, 6.0) + 0.1 * _random.normal(size=60)
GUESSED = (LABELS + (_random.uniform(size=60) < 0.2)) % 2
POSITIVE = np.abs(FEATURES)


def sklearn_programs() -> dict[str, Program]:
    """Return the programs, each a function of the conversion from NumPy."""
    import sklearn
    from sklearn import (
        calibration,
        decomposition,
        discriminant_analysis,
        kernel_approximation,
        linear_model,
        metrics,
        mixture,
        model_selection,
        naive_bayes,
        pipeline,
        preprocessing,
    )  # fmt: skip
    from sklearn.metrics import pairwise

    sklearn.set_config(array_api_dispatch=True)
    lda = discriminant_analysis.LinearDiscriminantAnalysis
    ridge = linear_model.Ridge(solver="svd")
    stages = preprocessing.StandardScaler(), decomposition.PCA(2), lda()
    estimators: dict[str, tuple[Any, str, Any]] = {
        "PCA": (decomposition.PCA(3, svd_solver="full"), "transform", None),
        "PCA, randomized": (
            decomposition.PCA(2, svd_solver="randomized", random_state=0), "transform", None,
        ),
        "LinearRegression": (linear_model.LinearRegression(), "predict", TARGET),
        "Ridge": (ridge, "predict", TARGET),
        "RidgeCV": (linear_model.RidgeCV(), "predict", TARGET),
        "RidgeClassifier": (linear_model.RidgeClassifier(solver="svd"), "predict", LABELS),
        "LogisticRegression": (linear_model.LogisticRegression(), "predict_proba", LABELS),
        "PoissonRegressor": (linear_model.PoissonRegressor(), "predict", np.abs(TARGET)),
        "LinearDiscriminantAnalysis": (lda(), "predict_proba", LABELS),
        "StandardScaler": (preprocessing.StandardScaler(), "transform", None),
        "MinMaxScaler": (preprocessing.MinMaxScaler(), "transform", None),
        "MaxAbsScaler": (preprocessing.MaxAbsScaler(), "transform", None),
        "Normalizer": (preprocessing.Normalizer(), "transform", None),
        "Binarizer": (preprocessing.Binarizer(), "transform", None),
        "PolynomialFeatures": (preprocessing.PolynomialFeatures(), "transform", None),
        "GaussianMixture": (
            mixture.GaussianMixture(
                2, covariance_type="diag", random_state=0, init_params="random_from_data"
            ), "predict_proba", None,
        ),
        "GaussianNB": (naive_bayes.GaussianNB(), "predict_proba", LABELS),
        "Nystroem": (
            kernel_approximation.Nystroem(n_components=5, random_state=0), "transform", None,
        ),
        "CalibratedClassifierCV": (
            calibration.CalibratedClassifierCV(lda(), method="temperature", cv=3),
            "predict_proba", LABELS,
        ),
        "GridSearchCV": (
            model_selection.GridSearchCV(ridge, {"alpha": [0.1, 1.0]}, cv=3), "predict", TARGET,
        ),
        "pipeline": (pipeline.make_pipeline(*stages), "predict_proba", LABELS),
    }  # fmt: skip

    def fitted(estimator: Any, method: str, target: Any) -> Program:
        def program(a: Convert) -> Any:
            fitted_estimator: Any = sklearn.clone(estimator)
            fitted_estimator.fit(a(FEATURES), *([] if target is None else [a(target)]))
            return getattr(fitted_estimator, method)(a(FEATURES))

        return program

    programs = {name: fitted(*parts) for name, parts in estimators.items()}
    gram = FEATURES @ FEATURES.T
    programs["KernelCenterer"] = lambda a: preprocessing.KernelCenterer().fit_transform(a(gram))
    programs["LabelEncoder"] = lambda a: preprocessing.LabelEncoder().fit_transform(a(LABELS + 3))

    def scored(function: Callable[..., Any], *arrays: np.ndarray) -> Program:
        return lambda a: function(*map(a, arrays))

    for name in ("accuracy_score", "f1_score", "confusion_matrix", "zero_one_loss", "roc_curve"):
        programs[name] = scored(getattr(metrics, name), LABELS, GUESSED)
    for name in (
        "r2_score", "mean_squared_error", "mean_absolute_error", "max_error",
        "explained_variance_score",
    ):  # fmt: skip
        programs[name] = scored(getattr(metrics, name), TARGET, TARGET + 0.1 * TARGET**2)
    for name in (
        "euclidean_distances", "cosine_similarity", "rbf_kernel", "laplacian_kernel",
        "linear_kernel", "polynomial_kernel", "sigmoid_kernel", "chi2_kernel", "pairwise_kernels",
    ):  # fmt: skip
        programs[name] = scored(getattr(pairwise, name), POSITIVE, POSITIVE[::-1] + 0.5)
    return programs


def parts(result: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result."""
    if hasattr(result, "pvalue"):
        result = [result.statistic, result.pvalue]
    if isinstance(result, tuple | list):
        for x in result:
            yield from parts(x)
    else:
        yield result


def fault(program: Program) -> str:
    """Return what is wrong with a program; an empty text if nothing is."""
    expected = list(parts(program(np.asarray)))
    try:
        actual = list(parts(program(accnp.asarray)))
        for g, w in zip(actual, expected, strict=True):
            if type(g) is not accnp.Array and not isinstance(g, float | int):
                return f"a result of type {type(g).__name__}"
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6, atol=1e-9)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(library: str) -> None:
    """Run the programs of a library."""
    accnp.config.update("jax_enable_x64", True)
    accnp.config.update("item_assignment", True)
    programs = scipy_programs() if library == "scipy" else sklearn_programs()
    print(json.dumps({name: fault(program) for name, program in programs.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
