"""The vendor's own librknnrt 1.5.2 without a board: on a stand-in for its driver (docs/vendor-rig.md)."""
