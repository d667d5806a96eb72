"""`nn`: activations, initialisers, attention; optimizers."""
