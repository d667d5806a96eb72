"""The loop IR: its nodes, and what builds, prints, parses, verifies and interprets them."""
