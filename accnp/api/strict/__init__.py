"""`lax`: functions that neither promote nor broadcast."""
