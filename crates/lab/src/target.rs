//! Which server to talk to, and as whom.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A server's address with what a client says first: `redis://user:password@host:port/database`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User of an access list; the password alone means the default user.
    pub username: Option<String>,
    /// Sent with `AUTH` before anything else.
    pub password: Option<String>,
    /// Selected after `AUTH` if it is not 0.
    pub database: u32,
}

/// The port of a server that was started without one.
pub const DEFAULT_PORT: u16 = 7379;

/// Why a text names no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A scheme other than `redis`.
    #[error("{0:?} is not supported; write redis://host:port")]
    Scheme(String),
    /// No host, or brackets that do not close.
    #[error("no host in {0:?}; write redis://host:port")]
    Host(String),
    /// Not a number from 1 to 65535.
    #[error("invalid port {0:?}; it must be a number from 1 to 65535")]
    Port(String),
    /// Not a number.
    #[error("invalid database {0:?}; it must be a number such as /0")]
    Database(String),
    /// `%` without two hexadecimal digits, or bytes that are no text.
    #[error("invalid escape in {0:?}; a percent sign is written %25")]
    Escape(String),
}

impl Target {
    /// A server without a password.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        Target { host: host.to_owned(), port, username: None, password: None, database: 0 }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    /// Reads `redis://[user[:password]@]host[:port][/database]`, or `host:port`.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let rest = match text.split_once("://") {
            Some(("redis", rest)) => rest,
            Some((scheme, _)) => return Err(TargetError::Scheme(scheme.to_owned())),
            None => text,
        };
        let (rest, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, address) = match rest.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, rest),
        };
        let (username, password) = credentials.map_or(Ok((None, None)), split_credentials)?;
        let (host, port) = split_address(address)?;
        let database = match database {
            "" => 0,
            number => number.parse().map_err(|_| TargetError::Database(number.to_owned()))?,
        };
        Ok(Target { host, port, username, password, database })
    }
}

impl fmt::Display for Target {
    /// The address without user and password: it is printed in reports.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

/// Omits user and password, as [`Display`](fmt::Display) does.
impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn split_credentials(text: &str) -> Result<(Option<String>, Option<String>), TargetError> {
    let (username, password) = match text.split_once(':') {
        Some((username, password)) => (username, Some(password)),
        None => (text, None),
    };
    let username = if username.is_empty() { None } else { Some(unescape(username)?) };
    Ok((username, password.map(unescape).transpose()?))
}

fn split_address(text: &str) -> Result<(String, u16), TargetError> {
    let no_host = || TargetError::Host(text.to_owned());
    let (host, port) = if let Some(bracketed) = text.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or_else(no_host)?;
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return Err(no_host()),
        }
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err(no_host());
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(text) => {
            let parsed = text.parse().ok().filter(|port| *port != 0);
            parsed.ok_or_else(|| TargetError::Port(text.to_owned()))?
        }
    };
    Ok((host.to_owned(), port))
}

/// Replaces `%41` by the byte that it stands for.
fn unescape(text: &str) -> Result<String, TargetError> {
    let invalid = || TargetError::Escape(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return Err(invalid()) };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(invalid()) };
        bytes.push((high * 16 + low) as u8);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::{Target, TargetError};

    fn parse(text: &str) -> Result<Target, TargetError> {
        text.parse()
    }

    #[test]
    fn a_url_names_address_credentials_and_database() {
        let target = parse("redis://anna:p%40ss%3a@[::1]:6380/3").unwrap();
        assert_eq!(target.host, "::1");
        assert_eq!(target.port, 6380);
        assert_eq!(target.username.as_deref(), Some("anna"));
        assert_eq!(target.password.as_deref(), Some("p@ss:"));
        assert_eq!(target.database, 3);
        assert_eq!(target.to_string(), "[::1]:6380", "a report must not show the password");
    }

    #[test]
    fn everything_but_the_host_has_a_default() {
        assert_eq!(parse("redis://db.local"), Ok(Target::new("db.local", 7379)));
        assert_eq!(parse("127.0.0.1:6379"), Ok(Target::new("127.0.0.1", 6379)));
        let password_only = parse("redis://:secret@h").unwrap();
        assert_eq!((password_only.username, password_only.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse("rediss://h"), Err(TargetError::Scheme("rediss".into())));
        assert_eq!(parse("redis://h:70000"), Err(TargetError::Port("70000".into())));
        assert_eq!(parse("redis://h:0"), Err(TargetError::Port("0".into())));
        assert_eq!(parse("redis://:6379"), Err(TargetError::Host(":6379".into())));
        assert_eq!(parse("redis://[::1"), Err(TargetError::Host("[::1".into())));
        assert_eq!(parse("redis://h/x"), Err(TargetError::Database("x".into())));
        assert_eq!(parse("redis://:%4@h"), Err(TargetError::Escape("%4".into())));
    }
}
