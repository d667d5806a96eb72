"""Random numbers: keys, bits, distributions."""
