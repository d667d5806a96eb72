# isort: skip_file
"""`accnp.core`: types of values, tracers, evaluation of jaxprs, re-exported one by one."""

from typing import Any

from accnp.api.evaluation import eval_jaxpr
from accnp.api.tracing import Tracer, ensure_compile_time_eval
from accnp.ir.aval import Aval as AbstractValue
from accnp.ir.aval import Aval as ShapedArray
from accnp.ir.equations import Atom
from accnp.missing import nearest

ParamDict = dict[str, Any]
Value = Any
eval_context = ensure_compile_time_eval

__all__ = [
    "AbstractValue", "Atom", "ParamDict", "ShapedArray", "Tracer", "Value",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr",
]  # fmt: skip

__getattr__ = nearest(__name__, __all__)
