"""Allows ``python -m user_dgl`` as another name of the command ``user-dgl``."""

import sys

from user_dgl.cli import main

sys.exit(main())
