"""What both worlds agree on: the processes that measure inside a release, and the program that reads what they found.

Standard library alone, in the syntax of Python 3.9: every release's environment imports it, and so does the tool.
"""
