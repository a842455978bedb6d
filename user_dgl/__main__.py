"""``python -m user_dgl`` is ``user-dgl``."""

import sys

from user_dgl.cli import main

sys.exit(main())
