//! The rules of this repository that no compiler checks, as ordinary tests: see `tests/`.
