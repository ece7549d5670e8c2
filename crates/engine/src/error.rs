//! Why a command was refused, in the error texts that Redis clients expect.

use std::borrow::Cow;
use tidemark_series::{UnreadableBlock, guarded_or};

/// A refused command. The text starts with a code that programs can match on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The key holds another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The arguments do not form the command.
    #[error("ERR syntax error")]
    Syntax,
    /// An argument or a value is not a 64-bit signed integer.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// An argument or a value is not a floating-point number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// A sum left the range of 64-bit signed integers.
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    /// A sum of floats left the finite range.
    #[error("ERR increment would produce NaN or Infinity")]
    NotFinite,
    /// An index is beyond the end.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// The key must exist and does not.
    #[error("ERR no such key")]
    NoSuchKey,
    /// A value would exceed 512 MiB.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    TooLong,
    /// The number of arguments is wrong.
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(Cow<'static, str>),
    /// An expiry is zero, negative or does not fit in 64 bits of milliseconds.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),
    /// The log no longer takes records; reads continue.
    #[error("MISCONF Tidemark refuses changes because it cannot log them: {0}")]
    LogFailed(String),
    /// Points of a series are in a block that cannot be read from its file.
    #[error("ERR a block of a series is damaged or cannot be read: {0}")]
    UnreadableBlock(Box<UnreadableBlock>),
    /// Any other error, with its code.
    #[error("{0}")]
    Text(Cow<'static, str>),
}

impl CommandError {
    /// Creates an error from its whole text, code included.
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Creates the error of a block that cannot be read.
    #[cold]
    pub(crate) fn unreadable(block: UnreadableBlock) -> Self {
        Self::UnreadableBlock(Box::new(block))
    }

    /// Runs what may read series. Fails if a block that it needs cannot be read.
    #[inline]
    pub(crate) fn guard<T>(run: impl FnOnce() -> Result<T, Self>) -> Result<T, Self> {
        guarded_or(run, |block| Err(Self::unreadable(block)))
    }

    /// Names the series whose block cannot be read, if the error is of that kind.
    #[must_use]
    pub(crate) fn of_series(self, key: &[u8]) -> Self {
        match self {
            Self::UnreadableBlock(block) => Self::UnreadableBlock(Box::new(block.of(key))),
            other => other,
        }
    }
}
