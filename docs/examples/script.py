"""A script of one's own with arguments. It lies beside this file, and a change of it begins a new measurement."""

commands = {"train": ["python", "train.py", "--steps", "20"], "help": ["python", "train.py", "--help"]}
needs = ["train.py"]
