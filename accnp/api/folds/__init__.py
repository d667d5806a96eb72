"""From many elements to few, or to an order of them: sums, counts, quantiles, sorts, sets."""
