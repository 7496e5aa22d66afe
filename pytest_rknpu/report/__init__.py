"""What a run leaves behind: results.jsonl, the authority, and its projections for CI, terminal and people."""
