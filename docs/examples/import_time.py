"""What does `import torch` cost? Whole processes: seconds, seconds of processors, memory."""

command = ["python", "-c", "import torch"]
