"""What runs in the toolkit's own process, and nothing else: a script's folder is on its import path."""
