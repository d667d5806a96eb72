"""Arrays over several devices: meshes of devices, how an array is cut over one, and its parts.

`mesh.py`: devices as a grid with named axes. `specs.py`: how dimensions go along these axes.
`placing.py`: putting values there. `shards.py`: the parts. `mapped.py`: a function of one part.
"""
