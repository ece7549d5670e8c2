//! Stores that outlive the program: the log and third-party servers.

use super::target::Target;
use tidemark_counter::store::{Error, Store};
#[cfg(feature = "log")]
use tidemark_stores::{LogOptions, LogStore};
#[cfg(feature = "stores")]
use tidemark_stores::{NatsOptions, NatsStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore};

/// Prefix of the laboratory's keys, tables and streams, which separates them from those of
/// programs.
#[cfg(feature = "stores")]
const PREFIX: &str = "tidemark_lab";

/// Opens the store; `None` if it does not outlive the program. Servers are connected to on first
/// use.
///
/// Fails for a store that is not compiled into this program.
pub(super) fn open(target: &Target) -> Result<Option<Box<dyn Store>>, Error> {
    let store: Result<Box<dyn Store>, Error> = match target {
        Target::Simulated | Target::Memory | Target::Nowhere => return Ok(None),
        #[cfg(feature = "log")]
        Target::Log(folder) => LogStore::open(&LogOptions::new(folder)).map(|store| Box::new(store) as _),
        #[cfg(feature = "stores")]
        Target::Redis(address) => {
            let options = RedisOptions::new(address.clone());
            RedisStore::new(RedisOptions { prefix: PREFIX.to_owned(), ..options })
                .map(|store| Box::new(store) as _)
        }
        #[cfg(feature = "stores")]
        Target::Postgres(address) => {
            let options = PostgresOptions::new(address.clone());
            PostgresStore::new(PostgresOptions { prefix: format!("{PREFIX}_"), ..options })
                .map(|store| Box::new(store) as _)
        }
        #[cfg(feature = "stores")]
        Target::Nats(address) => {
            let options = NatsOptions::new(address.clone());
            NatsStore::new(NatsOptions { stream: PREFIX.to_owned(), ..options })
                .map(|store| Box::new(store) as _)
        }
        #[cfg(not(feature = "log"))]
        Target::Log(_) => Err(without(target, "log")),
        #[cfg(not(feature = "stores"))]
        Target::Redis(_) | Target::Postgres(_) | Target::Nats(_) => Err(without(target, "stores")),
    };
    store.map(Some)
}

/// Returns the error for a store whose cargo feature is off.
#[cfg(not(all(feature = "log", feature = "stores")))]
fn without(target: &Target, feature: &str) -> Error {
    Error::Refused(
        format!(
            "this program was built without the store {target}; build it with `cargo build --release --features {feature}`"
        )
        .into(),
    )
}
