"""A stand-in for the vendor's package, for tests: see rknnlite.api."""
