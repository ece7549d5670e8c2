//! Why a watch ends.

use redis::{ErrorKind, RedisError};
use std::fmt;

/// Why there is no client, or why a [`Watch`](crate::Watch) has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// This is not the address of a server.
    Address(RedisError),
    /// The client or the read is not acceptable to the server, or the read not to the client: the same would be refused again.
    Refused(RedisError),
    /// As many attempts as [`Retry`](crate::Retry) allows have failed in a row.
    Unreachable {
        /// How many.
        attempts: u32,
        /// Why the last one failed.
        last: RedisError,
    },
}

/// Codes of errors that go by themselves.
const PASSING_CODES: [&str; 6] = ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "TRYAGAIN"];
/// How the server begins to say that it has no room for another client. The code of that is `ERR`.
const NO_ROOM: &str = "max number of clients";

impl Error {
    /// Whether the same request would end in this error again, however often it is sent.
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
            // An answer to a question of another protocol than this: no other one is to be expected.
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
