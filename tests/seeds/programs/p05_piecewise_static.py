import jax

def f(x):
    if x < 3:
        return 3. * x ** 2
    else:
        return -4 * x

static_f = jax.jit(f, static_argnums=(0,))
print(jax.make_jaxpr(static_f, static_argnums=(0,))(2))
print(jax.make_jaxpr(static_f, static_argnums=(0,))(4))
jax.make_jaxpr(f)(2) 
