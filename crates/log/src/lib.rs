#![doc = include_str!("../README.md")]
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | how a record reaches the disk | `append` → `buffer` → `commit` |
//! | how waits are bounded, and storage that does not answer | `stall`, `stopwatch` |
//! | recovery after a crash | `recovery` → `reader` → `format` |
//! | why no LSN is used twice | `gap`, `end_file`, and `recovery`, which uses them |
//! | how a group writes its entries, and takes them back | `entry`, `member` |
//! | how the loss of durable records is detected | `high_water`, `end_file` |
//! | how segments are made and removed | `housekeeper`, `ready`, `segment`; on a full disk `relief` |
//! | all input and output | [`storage`] |
//! | all reading of time | `clock` |
//!
//! Each module uses only modules before it: `clock`, `lsn`, `error`, [`storage`] ─► `record`,
//! `segment_header` ─► `format` ─► `segment`, `record_batch`, `buffer` ─► `reader`, `shared` ─►
//! `append`, `commit`, `housekeeper`, `high_water`, `recovery` ─► `opening`, `replay`, `member` ─►
//! `log` ─► [`tools`].

mod append;
mod buffer;
mod checksum;
mod clock;
mod commit;
mod end_file;
mod entry;
mod error;
mod format;
mod gap;
mod high_water;
mod housekeeper;
mod log;
mod lsn;
mod member;
mod opening;
mod options;
mod reader;
mod ready;
mod record;
mod record_batch;
mod recovery;
mod relief;
mod relief_state;
mod replay;
mod segment;
mod segment_header;
mod shared;
pub mod snapshot;
mod stall;
mod stopwatch;
pub mod storage;
pub mod tools;

pub use append::Room;
pub use clock::{Clock, ManualClock};
pub use entry::{EntryEnd, EntryId};
pub use error::{AppendError, Damage, Failure, MissingTail, OpenError, ReplayError, Stall, TornTail};
pub use format::{Format, ParseFormatError};
pub use gap::Gap;
pub use log::Log;
pub use lsn::Lsn;
pub use member::{EntryError, EntryRecords, InvalidEntry, Member};
pub use options::{Durability, Options, ParseDurabilityError, Retention, Verify};
pub use record::Record;
pub use record_batch::{RecordBatch, Records};
pub use recovery::Recovery;
pub use replay::{Replay, Tail};
pub use shared::{Health, Progress};
pub use snapshot::{BlockFile, BlockFileUse, BlockFiles, Snapshot, SnapshotError, SnapshotWriter, Snapshots};
pub use storage::Storage;
pub use storage::faulty::FaultyStorage;
pub use storage::file::FileStorage;
pub use storage::memory::MemoryStorage;
pub use storage::mmap::MmapStorage;
