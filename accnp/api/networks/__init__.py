"""`nn`: activations, initializers and attention; optimizers and layers."""
