"""What a program is: avals, ops, nodes, traces, graphs."""
