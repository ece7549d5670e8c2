//! Places for stores, and the batches that the tests send.

pub(crate) mod log;
pub(crate) mod nats;

use crate::conformance::{Kind, Running};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tidemark_counter::store::{Batch, Claim, Delta, Memory, Store};
use tidemark_stores::{
    Deadlines, LogStore, NatsOptions, NatsStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore,
};

/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// A place that only one test uses. All its stores have the same contents.
pub(crate) enum TestStore {
    Memory(Memory),
    Log { store: LogStore, directory: TempDir },
    Server { running: Arc<Running>, space: String },
}

impl TestStore {
    pub(crate) fn memory() -> Self {
        Self::Memory(Memory::default())
    }

    pub(crate) fn log() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = LogStore::open(&log::options(directory.path())).expect("a log");
        Self::Log { store, directory }
    }

    /// Returns a place on a server that several tests share.
    pub(crate) fn of(kind: Kind) -> Self {
        Self::on(&Running::shared(kind))
    }

    pub(crate) fn on(running: &Arc<Running>) -> Self {
        static SPACES: AtomicU32 = AtomicU32::new(0);
        let space = format!("space_{}", SPACES.fetch_add(1, Ordering::Relaxed));
        Self::Server { running: Arc::clone(running), space }
    }

    /// Opens a store of this place.
    pub(crate) fn store(&self) -> Box<dyn Store> {
        match self {
            Self::Memory(memory) => Box::new(memory.clone()),
            Self::Log { store, .. } => Box::new(store.clone()),
            Self::Server { running, .. } => self.store_through(running.port),
        }
    }

    /// Opens a store of this place through another port than the server's own.
    pub(crate) fn store_through(&self, port: u16) -> Box<dyn Store> {
        match self {
            Self::Server { running, space } => store_at(running.kind, port, space),
            _ => self.store(),
        }
    }

    /// Reopens the store after the process that had it has ended.
    pub(crate) fn reopened(self) -> Self {
        match self {
            Self::Log { store, directory } => {
                drop(store);
                let store = LogStore::open(&log::options(directory.path())).expect("a log");
                Self::Log { store, directory }
            }
            other => other,
        }
    }

    pub(crate) fn running(&self) -> &Arc<Running> {
        let Self::Server { running, .. } = self else { panic!("a server") };
        running
    }
}

pub(crate) fn store_at(kind: Kind, port: u16, space: &str) -> Box<dyn Store> {
    store_with(kind, port, space, DEADLINE)
}

/// Opens a store that waits at most `deadline` for an answer, and five times as long for a
/// connection.
pub(crate) fn store_with(kind: Kind, port: u16, space: &str, deadline: Duration) -> Box<dyn Store> {
    let deadlines = Deadlines { connect: deadline * 5, request: deadline };
    match kind {
        Kind::Redis => {
            let options = RedisOptions::new(format!("redis://127.0.0.1:{port}"));
            let options = RedisOptions { prefix: space.to_owned(), deadlines, ..options };
            Box::new(RedisStore::new(options).expect("an address"))
        }
        Kind::Postgres => {
            let options = PostgresOptions::new(format!("postgres://tidemark@127.0.0.1:{port}/postgres"));
            let options = PostgresOptions { prefix: format!("{space}_"), deadlines, ..options };
            Box::new(PostgresStore::new(options).expect("an address"))
        }
        Kind::Nats => {
            let options = NatsOptions::new(format!("nats://127.0.0.1:{port}"));
            let options = NatsOptions { stream: space.to_owned(), deadlines, ..options };
            Box::new(NatsStore::new(options).expect("an address"))
        }
    }
}

/// Returns the batch of a claim with this number.
pub(crate) fn batch(writer: &str, claim: Claim, sequence: u64, deltas: &[(&str, i64)]) -> Batch {
    let deltas =
        deltas.iter().map(|(key, amount)| Delta { key: key.as_bytes().into(), amount: *amount }).collect();
    Batch { writer: writer.to_owned(), epoch: claim.epoch, sequence, deltas }
}

/// Returns the stored positions of these keys.
pub(crate) fn positions(store: &mut dyn Store, keys: &[&str]) -> Vec<Option<i64>> {
    let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
    store.load(&keys).expect("positions")
}
