"""Interfaces of JAX that accnp itself does not need: jaxpr objects, primitives, Pallas, export."""
