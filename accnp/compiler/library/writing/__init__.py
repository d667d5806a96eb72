"""What all writers of kernels use: lines of source, loop nests, and conversions."""
