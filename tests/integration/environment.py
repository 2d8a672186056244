"""Where an integration test finds what it runs. run.py fills it in before the test loads."""

import pathlib

repository = pathlib.Path(__file__).resolve().parents[2]
build_dir = None
isthmus = None         # The command.
has_trainer = False    # Whether this build has isthmus-trainer (libtorch).


def set_build_dir(folder):
    global build_dir, isthmus, has_trainer
    build_dir = pathlib.Path(folder).resolve()
    isthmus = build_dir / "isthmus"
    has_trainer = (build_dir / "isthmus-trainer").is_file()
