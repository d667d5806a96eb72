"""The primitives of built-in ops under the names of JAX, and lowerings of user primitives."""
