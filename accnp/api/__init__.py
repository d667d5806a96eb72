"""The implementation of the public functions.

They check, promote and broadcast their arguments, then record ops. Importing this package registers
the ops of all families: those that most programs use at once, the others on first use."""

# Importing a family registers its ops in the op table.
import accnp.primitives.call
import accnp.primitives.control
import accnp.primitives.conversion
import accnp.primitives.custom
import accnp.primitives.elementwise
import accnp.primitives.reduce
import accnp.primitives.views  # noqa: F401
from accnp.ir.op import OPS

# Families that are imported when one of their ops is first used, with their ops. Importing all of
# them would take a quarter of the time of `import accnp`.
_LATER = {
    "assemble": "concatenate pad",
    "callback": "pure_callback io_callback debug_callback debug_print",
    "check": "check",
    "checkpoint": "remat2 name optimization_barrier",
    "collective": "table psum psum_invariant pvary pmax pmin all_gather all_gather_invariant "
    "reduce_scatter all_to_all ppermute pbroadcast axis_index mesh_gather mesh_exchange mesh_sum",
    "convolution": "conv_general_dilated",
    "cumulative": "cumsum cumprod cummax cummin cumlogsumexp",
    "custom_batching": "custom_vmap_call",
    "decompositions": "svd qr lu",
    "determinants": "adjugate_tangent adjugate det slogdet",
    "eigen": "eigh eig schur hessenberg tridiagonal eigh_tridiagonal",
    "factor_updates": "cholesky_update symmetric_product lu_pivots_to_permutation",
    "fft": "fft fft_mirror",
    "gamma": "igamma igammac regularized_incomplete_beta igamma_grad_a random_gamma_grad",
    "gauss": "hyp2f1_grad_a hyp2f1_grad_b hyp2f1_grad_c",
    "kummer": "hyp1f1_grad_a hyp1f1_grad_b",
    "index": "gather dynamic_slice dynamic_update_slice",
    "linalg": "dot_general linear_solve triangular_solve cholesky",
    "loops": "while",
    "placement": "device_put",
    "pooling": "reduce_window_sum reduce_window_max reduce_window_min select_and_gather_add "
    "select_and_scatter_add",
    "precision": "reduce_precision",
    "random": "threefry_0 threefry_1 threefry_xor fma",
    "reflectors": "geqrf geqp3 householder_product ormqr",
    "scan": "scan",
    "scatter": "scatter scatter_add scatter_mul scatter_min scatter_max",
    "shards": "take_as_same to_global to_local",
    "solve": "custom_linear_solve custom_root",
    "sort": "sort partition top_k searchsorted",
    "special": "gcd bessel_i0e bessel_i1e zeta polygamma stop_gradient view_bytes swap_bytes",
    "tridiagonal": "tridiagonal_solve",
    "special_functions": "beta betaln binom bessel_i0 bessel_i1 bessel_j dawsn erfcx exp1 expi "
    "expn gamma hyp1f1 hyp2f1 log_ndtr ndtri owens_t poch spence sici fresnel wofz",
}
OPS.later |= {
    name: f"accnp.primitives.{family}" for family, names in _LATER.items() for name in names.split()
}
