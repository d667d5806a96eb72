"""Information about the process, and waiting for pending computations."""
