//! What went wrong at which place, in words for whoever has to mend it.

#[cfg(any(feature = "redis", feature = "postgres", feature = "nats"))]
use std::error::Error as StdError;
use tidemark_counter::store::Error;

/// What was tried where, and what was said to it. Nothing secret is part of a place.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {place}: {reason}")]
pub(crate) struct Trouble {
    doing: &'static str,
    place: String,
    reason: String,
}

/// The store could not be asked, or nobody knows what it did: to be tried again.
pub(crate) fn unavailable(doing: &'static str, place: &str, reason: impl Into<String>) -> Error {
    Error::Unavailable(Box::new(Trouble { doing, place: place.to_owned(), reason: reason.into() }))
}

/// The store has said no.
pub(crate) fn refused(doing: &'static str, place: &str, reason: impl Into<String>) -> Error {
    Error::Refused(Box::new(Trouble { doing, place: place.to_owned(), reason: reason.into() }))
}

/// An error with all its causes, and what to look at first.
#[cfg(any(feature = "redis", feature = "postgres", feature = "nats"))]
pub(crate) fn told(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Many errors say their cause themselves.
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    // By its words: not every client passes on the system's own error.
    if text.contains("onnection refused") {
        text.push_str(": is it running?");
    }
    text
}
