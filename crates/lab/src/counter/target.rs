//! The store of a run, as a flag.

use serde::{Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A store by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// In memory; every call takes the write delay.
    Simulated,
    /// In memory.
    Memory,
    /// Discards everything.
    Nowhere,
    /// A log in this folder.
    Log(PathBuf),
    /// Redis at this address.
    Redis(String),
    /// `PostgreSQL` at this address.
    Postgres(String),
    /// NATS `JetStream` at this address.
    Nats(String),
}

impl Target {
    /// Returns whether it outlives this program, and may have data of earlier runs.
    pub(super) fn is_durable(&self) -> bool {
        match self {
            Target::Simulated | Target::Memory | Target::Nowhere => false,
            Target::Log(_) | Target::Redis(_) | Target::Postgres(_) | Target::Nats(_) => true,
        }
    }

    /// Returns the flag's text, including secrets.
    pub(super) fn flag(&self) -> String {
        match self {
            Target::Redis(address) | Target::Postgres(address) | Target::Nats(address) => address.clone(),
            other => other.to_string(),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(folder) = text.strip_prefix("log:").filter(|folder| !folder.is_empty()) {
            return Ok(Target::Log(folder.into()));
        }
        let address = || text.to_owned();
        match text.split_once("://").map_or(text, |(scheme, _)| scheme) {
            "delay" => Ok(Target::Simulated),
            "memory" => Ok(Target::Memory),
            "none" => Ok(Target::Nowhere),
            "redis" | "redis+unix" => Ok(Target::Redis(address())),
            "postgres" | "postgresql" => Ok(Target::Postgres(address())),
            "nats" => Ok(Target::Nats(address())),
            _ => Err("no such store; there are delay, memory, none, log:FOLDER, redis://HOST, postgres://HOST and \
                      nats://HOST"
                .to_owned()),
        }
    }
}

/// Omits an address's user, password and query.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Simulated => formatter.write_str("delay"),
            Target::Memory => formatter.write_str("memory"),
            Target::Nowhere => formatter.write_str("none"),
            Target::Log(folder) => write!(formatter, "log:{}", folder.display()),
            Target::Redis(address) | Target::Postgres(address) | Target::Nats(address) => {
                let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
                let rest = rest.split('?').next().unwrap_or_default();
                let place = rest.rsplit('@').next().unwrap_or_default();
                write!(formatter, "{scheme}://{place}")
            }
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn stores_are_named_as_flags_name_them() {
        for text in [
            "delay",
            "memory",
            "none",
            "log:/var/lab",
            "redis://localhost:6379/2",
            "redis+unix:///run/redis.sock",
            "postgres://localhost/lab",
            "postgresql://localhost/lab",
            "nats://localhost:4222",
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.to_string(), target.flag()), (text.to_owned(), text.to_owned()));
        }
        for wrong in ["", "log", "log:", "http://localhost", "redis:6379", "elsewhere"] {
            assert!(wrong.parse::<Target>().unwrap_err().contains("delay, memory, none"), "{wrong}");
        }
    }

    #[test]
    fn printing_a_store_prints_no_secret() {
        let target: Target = "postgres://me:p@ss@db:5432/lab?password=other@x".parse().unwrap();
        assert_eq!(target.to_string(), "postgres://db:5432/lab");
        assert_eq!(target.flag(), "postgres://me:p@ss@db:5432/lab?password=other@x");
    }
}
