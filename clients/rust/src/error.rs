//! Errors that end a watch.

use redis::{ErrorKind, RedisError};
use std::fmt;

/// Why a client could not connect, or why a [`Watch`](crate::Watch) has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The address is invalid.
    Address(RedisError),
    /// The server refused the client or the read, or the client refused the read. Retrying would
    /// fail again.
    Refused(RedisError),
    /// As many attempts as [`Retry`](crate::Retry) allows have failed in a row.
    Unreachable {
        /// Number of attempts.
        attempts: u32,
        /// Error of the last attempt.
        last: RedisError,
    },
}

/// Codes of temporary errors.
const PASSING_CODES: [&str; 6] = ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "TRYAGAIN"];
/// Beginning of the error when the server has no room for another client. Its code is `ERR`.
const NO_ROOM: &str = "max number of clients";

impl Error {
    /// Returns whether a retry of the same request would fail with this error again.
    pub(crate) fn is_final(error: &RedisError) -> bool {
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => {
                let is_passing = error.code().is_some_and(|code| PASSING_CODES.contains(&code))
                    || error.detail().is_some_and(|detail| detail.starts_with(NO_ROOM));
                !is_passing
            }
            ErrorKind::AuthenticationFailed
            | ErrorKind::InvalidClientConfig
            | ErrorKind::RESP3NotSupported
            // A reply of an unexpected type: the server speaks another protocol, and a retry would
            // not change that.
            | ErrorKind::UnexpectedReturnType => true,
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Address(error) => write!(f, "not the address of a server: {error}"),
            Error::Refused(error) => write!(f, "refused: {error}"),
            Error::Unreachable { attempts, last } => {
                write!(f, "no answer, after {attempts} attempts in a row: {last}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Address(error) | Error::Refused(error) | Error::Unreachable { last: error, .. } => {
                Some(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &[u8]) -> RedisError {
        let value = redis::parse_redis_value(line).expect("an answer");
        value.extract_error().expect_err("an error")
    }

    #[test]
    fn what_would_be_refused_again_is_final_and_what_goes_by_itself_is_not() {
        for line in ["-WRONGTYPE no\r\n", "-ERR unknown command\r\n", "-WRONGPASS no\r\n", "-NOPERM no\r\n"] {
            assert!(Error::is_final(&answered(line.as_bytes())), "{line}");
        }
        for line in ["-LOADING wait\r\n", "-MISCONF disk\r\n", "-ERR max number of clients reached\r\n"] {
            assert!(!Error::is_final(&answered(line.as_bytes())), "{line}");
        }
        let cut = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(!Error::is_final(&cut.into()));
    }
}
