"""Control flow as operations (loops and branches), and solvers that are built on loops."""
