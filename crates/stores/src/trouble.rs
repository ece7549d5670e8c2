//! Errors of stores, with operation, place and reason, for operators.

#[cfg(any(feature = "redis", feature = "postgres", feature = "nats"))]
use std::error::Error as StdError;
use tidemark_counter::store::Error;

/// An operation that failed, its place, and the reason. A place contains no secrets.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {place}: {reason}")]
pub(crate) struct Trouble {
    doing: &'static str,
    place: String,
    reason: String,
}

/// Returns the error of a store that was unreachable or whose result is unknown: to be retried.
pub(crate) fn unavailable(doing: &'static str, place: &str, reason: impl Into<String>) -> Error {
    Error::Unavailable(Box::new(Trouble { doing, place: place.to_owned(), reason: reason.into() }))
}

/// Returns the error of a store that has refused.
pub(crate) fn refused(doing: &'static str, place: &str, reason: impl Into<String>) -> Error {
    Error::Refused(Box::new(Trouble { doing, place: place.to_owned(), reason: reason.into() }))
}

/// Returns an error's message with all its causes, and a hint.
#[cfg(any(feature = "redis", feature = "postgres", feature = "nats"))]
pub(crate) fn described(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Many errors include their cause.
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    // By its text: not every client passes on the system's error.
    if text.contains("onnection refused") {
        text.push_str(": is it running?");
    }
    text
}
