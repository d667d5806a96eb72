"""Random numbers: keys, bit generators and distributions."""
