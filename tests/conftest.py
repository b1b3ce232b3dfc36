"""What holds for every test: repeatable random cases, and no state kept in the working tree."""

import os

from hypothesis import settings

collect_ignore_glob = ["**/make*.py"]  # run by hand: they need MXNet or other programs

settings.register_profile("gnomon", deadline=None, database=None, derandomize="CI" in os.environ)
settings.load_profile("gnomon")
