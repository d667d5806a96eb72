"""Creating, reshaping, joining and placing arrays; the methods of `Array`."""
