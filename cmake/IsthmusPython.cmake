# ISTHMUS_PYTHON: what runs the Python tests. They need the standard library alone, so the
# system's own interpreter is preferred to whatever is first in PATH.
find_program(ISTHMUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(ISTHMUS_PYTHON python3 REQUIRED)
