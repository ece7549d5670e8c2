//! Commands of connections and of the server, and the dispatch of all commands.
//!
//! ```text
//! connection ─► dispatch ─► Engine                        commands on keys
//!    (may it?)     ├──────► connection_command ─► *_command, handshake, info, transaction
//!                  └──────► exec ─► Engine, connection_command         what MULTI has queued
//! ```
//!
//! Before dispatch, `postponing` delays commands: for `CLIENT PAUSE`, or while the log is full.

pub(crate) mod changes_command;
pub(crate) mod channel_command;
pub(crate) mod client_command;
pub(crate) mod cluster_change;
pub(crate) mod cluster_command;
mod command_categories;
mod command_command;
mod command_syntax;
mod config_command;
mod connection_command;
mod counter_command;
pub(crate) mod dispatch;
mod durable_command;
mod exec;
pub(crate) mod gate;
pub(crate) mod handshake;
pub(crate) mod info;
mod named_command;
mod once_command;
pub(crate) mod postponing;
pub(crate) mod rows;
pub(crate) mod sentinel_command;
mod server_command;
mod subscribe_command;
mod tracking_command;
mod transaction;
pub(crate) mod watch_command;
