"""The runtime: specialising, caching, launching and tuning kernels. Names live in its modules."""
