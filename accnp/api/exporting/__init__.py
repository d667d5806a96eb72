"""Programs as bytes: sizes that are symbols, programs as data, and what is exported."""
