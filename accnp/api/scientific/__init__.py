"""What SciPy and images need besides: grids, cosine transforms, rotations, codes of vectors."""
