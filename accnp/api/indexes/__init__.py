"""Reading and writing by index: `x[key]`, `x.at[key]`, taking and slicing."""
