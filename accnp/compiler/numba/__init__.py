"""All uses of Numba: the back end that prints kernels of the loop IR as Python source and compiles
it, the front end of kernels for GPUs that are still text, and users' functions and CUDA kernels.
"""
