"""The directories of sessions on this host, and the sources they may see."""
