"""Boards as a shared good: who holds one, what a worker keeps open, how tests are dealt out to workers."""
