//! Why a command was refused, in the words that Redis clients know.

use std::borrow::Cow;

/// A refused command. The text starts with a code that programs may match on.
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
    /// An index beyond the end.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// The key must exist and does not.
    #[error("ERR no such key")]
    NoSuchKey,
    /// A value would exceed 512 MiB.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    TooLong,
    /// The number of arguments does not fit the command.
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(Cow<'static, str>),
    /// An expiry that is zero, negative or past what 64 bits of milliseconds hold.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),
    /// The log no longer takes records; reads go on.
    #[error("MISCONF Tidemark refuses changes because it cannot log them: {0}")]
    LogFailed(String),
    /// Anything else, code included.
    #[error("{0}")]
    Text(Cow<'static, str>),
}

impl CommandError {
    /// An error with its whole text, code included.
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}
