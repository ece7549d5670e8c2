//! Reads the working directory of the Go project "tiny-reward-pool", and recovers draws that the
//! original would forget.
//!
//! The original logs every draw. But after a crash it trusts a length in the header of its newest
//! file, which is only written when the file is closed. It finds no records, starts again from its
//! configuration, and gives every prize a second time. The records still exist. This module reads:
//!
//! - all files `wal.NNN` in order, in both formats, up to the last complete record; damage is
//!   reported with its place;
//! - `snapshot.json`, and checks its hash;
//! - and computes the stock in two ways, from the snapshot and from the whole history, with a
//!   recommendation.
//!
//! The caller opens the files; this module reads bytes and returns stock. Memory holds the items
//! and one line of the log.
//!
//! ```
//! use tidemark_pool::original::{Given, Recovery, Snapshot, file_number};
//!
//! # let directory: [(&str, &[u8]); 2] = [("snapshot.json", br#"{"last_request_id":0,"catalog":[
//! #     {"item_id":"gold","quantity":100,"probability":20}]}"#), ("wal.000", b"")];
//! // The files of a working directory, by name.
//! let (_, json) = directory.iter().find(|(name, _)| *name == "snapshot.json").unwrap();
//! let snapshot = Some(Snapshot::parse(json).unwrap());
//! let mut recovery = Recovery::new(Given { snapshot, ..Given::default() }).unwrap();
//! for (name, bytes) in directory {
//!     if let Some(number) = file_number(name) {
//!         recovery.read(number, bytes).unwrap();
//!     }
//! }
//! let recovered = recovery.finish();
//! println!("{}", recovered.report);
//! let catalogue = recovered.recommended_stocks().unwrap().catalogue().unwrap();
//! assert_eq!(&*catalogue.items()[0].id, "gold");
//! ```

mod header;
mod item;
mod json_lines;
mod ledger;
mod lines;
mod names;
mod numbering;
mod place;
mod record;
mod recovered;
mod recovery;
mod report;
mod snapshot;
mod string_line;

pub use header::Header;
pub use item::OriginalItem;
pub use numbering::Setback;
pub use place::{LogPosition, file_number};
pub use record::Unreadable;
pub use recovered::{Basis, Recovered, RecoveredItem, Stocks};
pub use recovery::{Given, Limits, ReadError, Recovery, TooManyItems};
pub use report::{Cut, Damage, FileReport, Format, Note, Placement, Report};
pub use snapshot::{Snapshot, SnapshotError, SnapshotHash};
