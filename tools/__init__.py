"""Programs that measure the suite itself or confirm what it found. Nobody needs them to use torch-history."""
