"""Code that exists because JAX has it: jaxprs as objects, primitives, Pallas, export."""
