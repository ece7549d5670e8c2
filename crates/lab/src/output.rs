//! What a program prints, and who may have stopped reading it.

use std::fmt::Display;
use std::io::{self, Write};

/// Whether the reader of our output has seen enough, as `head` has: an error of input and output by itself. A connection that
/// breaks is to be an error of another type.
#[must_use]
pub fn is_closed(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<io::Error>()
        .map(io::Error::kind)
        .or_else(|| error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind));
    kind == Some(io::ErrorKind::BrokenPipe)
}

/// Writes a line to standard error. Ignores errors: a measurement goes on without a reader.
pub fn report(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::is_closed;
    use std::io;

    #[test]
    fn only_a_broken_pipe_is_a_reader_that_has_seen_enough() {
        let error = |kind: io::ErrorKind| anyhow::Error::from(io::Error::from(kind));
        assert!(is_closed(&error(io::ErrorKind::BrokenPipe)));
        assert!(is_closed(&anyhow::Error::from(serde_json::Error::io(io::ErrorKind::BrokenPipe.into()))));
        assert!(!is_closed(&error(io::ErrorKind::StorageFull)));
        assert!(!is_closed(&anyhow::anyhow!("Broken pipe")));
    }
}
