"""User-defined kernels as operations, and generated kernels that users edit."""
