"""What holds for every test: repeatable random cases, and no state kept in the working tree."""

import os

from hypothesis import settings

collect_ignore_glob = ["golden/make*.py"]  # run by hand, where the real MXNet is installed

settings.register_profile("gnomon", deadline=None, database=None, derandomize="CI" in os.environ)
settings.load_profile("gnomon")
