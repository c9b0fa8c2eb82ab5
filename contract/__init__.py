"""What both worlds agree on: the processes that measure inside a release, and the program that reads what they found. The
standard library alone, in the syntax of Python 3.9."""
