"""sessionkeeper: sessions that survive their host."""

__version__ = "0.1.0"
