"""`nn`: activations, initializers, attention; optimizers."""
