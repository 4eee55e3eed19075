"""Where sessions run: one protocol, one module for each kind of backend."""
