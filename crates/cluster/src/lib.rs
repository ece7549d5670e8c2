#![doc = include_str!("../README.md")]
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | how a record becomes an entry of the group | `pump` → `raft::storage` → `driver` |
//! | when commands may run here | `role`, `reign`, `lease`, `acks` |
//! | what members send each other | [`wire`] |
//! | how members are connected, and who is refused | [`net`] |
//! | how a snapshot gets to another member | [`snapshot_files`], `raft::snapshots` |
//! | where a log begins when its first entries are gone | `beginning`, `raft::keeping` |
//! | how a member becomes the only one of a group, with the log that it has | `alone` |
//! | what a member has voted, and whether it may have lost what it acknowledged | [`vote_file`], [`suspicion`] |
//! | what the library is told and asked | `raft` |
//! | which kinds of records the log may have | [`Level`], `raft::levels` |
//! | a member on threads of its own | `group` |
//! | how a member that may have lost entries gets its vote back | `raft::suspect` |
//! | failures without end, in virtual time | `simulation` |
//!
//! Each module uses only modules before it: [`ids`], [`Level`], `term`, `codec`, `slot_file` ─► [`vote_file`],
//! [`suspicion`], `member`, `settings` ─► `entry` ─► [`wire`] ─► [`net`] ─► [`snapshot_files`] ─►
//! `beginning` ─► `driver` ─► `role`, `lease`, `acks` ─► `reign` ─► `pump`, `start`, `alone` ─► `consensus` ─►
//! `raft` ─► `group`. No type of openraft leaves `raft`.

mod acks;
mod alone;
mod beginning;
mod codec;
mod consensus;
mod driver;
mod entry;
#[cfg(test)]
mod faults;
mod group;
pub mod ids;
mod lease;
mod level;
mod member;
pub mod net;
mod pump;
mod raft;
mod reign;
mod remove_data;
mod role;
mod settings;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod skewed_runtime;
mod slot_file;
pub mod snapshot_files;
mod start;
pub mod suspicion;
mod term;
pub mod vote_file;
pub mod wire;

pub use alone::found_alone;
pub use beginning::Installation;
pub use consensus::{ChangeError, Consensus, GroupStatus, Refusal};
pub use driver::VoteStore;
pub use entry::kind::SYNC as SYNC_RECORD;
pub use entry::{Entry, InvalidGroupEntry, kind};
pub use group::{Group, GroupParts, GroupService};
pub use ids::{GroupId, NodeId, ParseIdError, RandomId};
pub use level::Level;
pub use member::{ADDRESS_BYTES_MAX, InvalidMembers, MEMBERS_MAX, Member, Members};
pub use raft::{Heal, Regained};
pub use remove_data::remove_data;
pub use role::{NoListener, Role, TermListener};
pub use settings::{InvalidSettings, Settings};
pub use term::{Ballot, Term};
