"""Run programs that use libraries written for JAX, and write their results.

    python -m accnp.as_jax tests/libraries/run.py OUT [NAME ...]    with accnp
    python tests/libraries/run.py OUT [NAME ...]                    with JAX

OUT is a JSON file with the results or the error of each program, and the seconds that it took.
"""

import json
import os
import sys
import time
import traceback
import warnings

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from programs import PROGRAMS  # noqa: E402


def plain(x):
    x = np.asarray(x)
    return x.astype(np.float64).tolist() if x.dtype.kind in "fc" else x.tolist()


def main(out, *names):
    outcomes = {}
    for name in names or PROGRAMS:
        begin = time.perf_counter()
        try:
            results = {key: plain(x) for key, x in PROGRAMS[name]().items()}
            outcomes[name] = {"results": results}
        except Exception:
            outcomes[name] = {"error": traceback.format_exc()}
        outcomes[name]["seconds"] = round(time.perf_counter() - begin, 2)
        print(name, outcomes[name]["seconds"], "error" in outcomes[name], flush=True)
    with open(out, "w") as file:
        json.dump(outcomes, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
