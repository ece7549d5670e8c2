#![doc = include_str!("../README.md")]
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | how a record becomes an entry of the group | `pump` → `raft::storage` → `driver` |
//! | when commands may run here | `role`, `reign`, `lease`, `acks` |
//! | what members send each other | [`wire::message`], [`net`] |
//! | what the library is told and asked | `raft` |
//! | a member on threads of its own | `group` |
//! | failures without end, in virtual time | `simulation` |
//!
//! Each module uses only modules before it: [`ids`], `term` ─► `codec` ─► `member`, `settings` ─►
//! `entry` ─► [`wire::message`] ─► [`net`], `driver` ─► `role`, `lease`, `acks` ─► `reign` ─► `pump`, `start`
//! ─► `consensus` ─► `raft` ─► `group`. No type of openraft leaves `raft`.

mod acks;
mod codec;
mod consensus;
mod driver;
mod entry;
#[cfg(test)]
mod faults;
mod group;
pub mod ids;
mod lease;
mod member;
pub mod net;
mod pump;
mod raft;
mod reign;
mod role;
mod settings;
#[cfg(test)]
mod simulation;
mod start;
mod term;
pub mod wire;

pub use consensus::{ChangeError, Consensus, GroupStatus, Refusal};
pub use driver::VoteStore;
pub use entry::{Entry, InvalidGroupEntry, kind};
pub use group::{Group, GroupParts, GroupService};
pub use ids::{GroupId, NodeId};
pub use member::{ADDRESS_BYTES_MAX, InvalidMembers, MEMBERS_MAX, Member, Members};
pub use role::{NoListener, Role, TermListener};
pub use settings::{InvalidSettings, Settings};
pub use term::{Ballot, Term};
