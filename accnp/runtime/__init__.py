"""From kernel source and bytes to results: buffers, compiled kernels, streams, devices."""
