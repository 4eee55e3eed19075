"""The laws held against a simulated world that does everything that real ones do, in any order."""
