"""Graph to graph: forward derivatives, transposition, reverse derivatives, batching."""
