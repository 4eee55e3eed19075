"""The promise on the real parts: a real API server, a real engine, a host that can die."""
