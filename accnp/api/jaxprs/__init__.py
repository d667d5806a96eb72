"""Programs as jaxprs: making, reading, evaluating and transforming them."""
