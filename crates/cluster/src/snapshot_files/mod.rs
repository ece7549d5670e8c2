//! The files of a snapshot on their way to another member.
//!
//! ```text
//! OutgoingFiles ─► SnapshotSender ─► snapshot lane ─► serve_snapshot_lane ─► SnapshotReceiver ─► install
//! ```
//!
//! The sender offers a list of files with their digests; the receiver says what it has of each; the rest
//! is sent in chunks. See [`SnapshotReceiver`] for what survives, and [`Outgoing`] for a transfer
//! without tasks and threads.
//!
//! Each module uses only modules before it: fields, waiting ─► `file_list` ─► message, `list_file` ─►
//! receiver, outgoing ─► interrupted, sender, lane.

mod fields;
mod file_list;
mod interrupted;
mod lane;
mod list_file;
mod message;
mod outgoing;
mod receiver;
mod sender;
mod waiting;

pub use file_list::{FILES_MAX, FileName, InvalidName, META_BYTES_MAX};
pub use interrupted::InterruptedInstallation;
pub use lane::serve_snapshot_lane;
pub(crate) use list_file::remove as remove_list;
pub(crate) use message::probe;
pub use outgoing::{Outgoing, OutgoingFiles, SendError};
pub use receiver::{Installed, ReceiverLimits, SnapshotReceiver};
pub use sender::{SenderSettings, SnapshotSender};
pub(crate) use waiting::{OnTokio, Waiting};
