#!/usr/bin/env python3
"""``user-dgl launch`` from a clone: ``python tools/launch.py --nproc 2 -- train CONFIG``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from user_dgl.distributed.launch import main

if __name__ == "__main__":
    sys.exit(main())
