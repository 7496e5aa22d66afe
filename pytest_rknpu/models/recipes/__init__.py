"""How each model of the catalogue is made: ``python -m pytest_rknpu.models.recipes`` rebuilds the files."""
