"""Entry point of the image: `python3 -I /opt/sessionkeeper` finds the capsule beside this file."""

import sys

from controller.capsule.__main__ import main

sys.exit(main(sys.argv[1:]))
