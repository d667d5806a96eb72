"""`inspect`: how a function or a pending array would be computed, without computing it."""
