"""Products, convolutions, Fourier transforms, polynomials, norms, solving."""
