"""The pages in docs/generated/ and what else the documents take from results/: what `make document` writes."""
