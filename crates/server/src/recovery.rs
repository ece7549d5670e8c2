//! From the data directory to a keyspace: open the log, replay it.

use crate::config::Config;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tidemark_engine::keyspace::SHARDS;
use tidemark_engine::{ApplyError, Engine, Protocol, Reply};
use tidemark_log::{FileStorage, Log, Lsn, OpenError, Options, Recovery, ReplayError};

/// Why the data cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The directory cannot be used.
    #[error("cannot use the data directory {}: {error}; choose another with --dir", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A record makes no sense.
    #[error("the log's record {lsn} cannot be applied: {error}")]
    Apply {
        /// The record.
        lsn: Lsn,
        /// What is wrong with it.
        error: ApplyError,
    },
}

/// A keyspace as the log tells it.
pub(crate) struct Recovered {
    pub(crate) engine: Engine,
    /// What was found, in lines for a person.
    pub(crate) report: String,
}

/// Opens the data directory and brings back its state.
pub(crate) fn open(config: &Config) -> Result<Recovered, RecoverError> {
    let storage = FileStorage::new(&config.dir)
        .map_err(|error| RecoverError::Directory { dir: config.dir.clone(), error })?;
    let options = Options {
        durability: config.durability,
        format: config.log_format,
        segment_bytes: config.log_segment_bytes,
        ..Options::default()
    };
    let (log, recovery) = Log::open(Arc::new(storage), options)?;
    let engine = Engine::new(Arc::new(log), SHARDS, seed());
    let began = Instant::now();
    replay(&engine)?;
    let report = describe(&recovery, began.elapsed().as_secs_f64());
    Ok(Recovered { engine, report })
}

fn replay(engine: &Engine) -> Result<(), RecoverError> {
    let mut records = engine.log().replay(engine.log().floor())?;
    let mut scratch = Reply::new(Protocol::Resp2);
    while let Some(batch) = records.next_batch()? {
        for record in batch {
            engine
                .apply(record.kind, record.time_us, record.payload, &mut scratch)
                .map_err(|error| RecoverError::Apply { lsn: record.lsn, error })?;
        }
    }
    Ok(())
}

fn describe(recovery: &Recovery, seconds: f64) -> String {
    let mut report = if recovery.records == 0 {
        "the log is empty".to_owned()
    } else {
        format!(
            "{} records of the log applied in {seconds:.2} s, up to LSN {}",
            recovery.records, recovery.last_lsn
        )
    };
    if let Some(torn) = &recovery.torn {
        let _ = write!(
            report,
            "\nan unfinished write was cut off: {} bytes at offset {} of {}",
            torn.bytes, torn.offset, torn.path
        );
    }
    report
}

/// Seeds the choices of commands such as `SPOP`; what they choose goes into the log.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u64)
}
