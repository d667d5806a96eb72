"""Making arrays, laying them out anew, joining and placing them; the methods of `Array`."""
