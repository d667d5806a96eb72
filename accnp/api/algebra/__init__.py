"""Products, convolutions, Fourier transforms, polynomials, norms and linear systems."""
