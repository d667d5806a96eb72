"""Jaxprs: making, inspecting, evaluating and transforming them."""
