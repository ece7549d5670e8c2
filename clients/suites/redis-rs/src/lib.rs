//! Nothing: the package exists for the tests that `run` puts beside it.
