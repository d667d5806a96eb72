import jax
from functools import partial

def f(x):
  if x > 0:
    return x
  else:
    return 2 * x

def g(x, n):
  i = 0
  while i < n:
    i += 1
  return x + i

f_jit_correct = jax.jit(f, static_argnums=0)
print(f_jit_correct(10))

g_jit_correct = jax.jit(g, static_argnums=1)
print(g_jit_correct(10, 20))

g_jit_named = jax.jit(g, static_argnames=['n'])
print(g_jit_named(10, 20))
print(g_jit_named(10, n=20))

@partial(jax.jit, static_argnames=['n'])
def g_jit_decorated(x, n):
  i = 0
  while i < n:
    i += 1
  return x + i

print(g_jit_decorated(10, 20))
