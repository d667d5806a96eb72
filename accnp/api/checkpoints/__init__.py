"""Arrays and pytrees in files, whole or in shards that several processes write and read."""
