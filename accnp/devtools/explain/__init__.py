"""`explain`: reports of fusion, kernels and traces, from sessions that record events."""
