//! Stores that outlive the program: the log and other people's servers.

use super::target::Target;
use tidemark_counter::store::{Error, Store};
use tidemark_stores::{
    LogOptions, LogStore, NatsOptions, NatsStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore,
};

/// What the laboratory's keys, tables and streams are called, apart from those of programs.
const PREFIX: &str = "tidemark_lab";

/// Opens the store; `None` if it is none that outlives the program. Servers are connected to when they are first asked.
pub(super) fn open(target: &Target) -> Result<Option<Box<dyn Store>>, Error> {
    Ok(Some(match target {
        Target::Log(folder) => Box::new(LogStore::open(&LogOptions::new(folder))?),
        Target::Redis(address) => {
            let options = RedisOptions::new(address.clone());
            Box::new(RedisStore::new(RedisOptions { prefix: PREFIX.to_owned(), ..options })?)
        }
        Target::Postgres(address) => {
            let options = PostgresOptions::new(address.clone());
            Box::new(PostgresStore::new(PostgresOptions { prefix: format!("{PREFIX}_"), ..options })?)
        }
        Target::Nats(address) => {
            let options = NatsOptions::new(address.clone());
            Box::new(NatsStore::new(NatsOptions { stream: PREFIX.to_owned(), ..options })?)
        }
        Target::Simulated | Target::Memory | Target::Nowhere => return Ok(None),
    }))
}
