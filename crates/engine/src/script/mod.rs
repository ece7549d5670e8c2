//! Scripts and functions: Lua programs that run commands under one set of locks, and leave one record.
//!
//! ```text
//! EVAL, EVALSHA ─► store: the script ─► are its keys all that it touches?
//!                    yes: the locks of its keys ─┐        no: all locks ─┐
//!                                                └─► running: commands ◄─┘ ─► one record of what they changed
//! ```

mod answer;
mod busy;
mod calling;
pub(crate) mod command;
mod function_dumps;
mod function_table;
mod functions;
mod host;
mod keys_of_text;
mod publication;
mod running;
mod store;

pub use busy::{Announced, Killed, RunningFunction, RunningScripts};
pub use host::ScriptHost;
pub use publication::Publication;
pub use store::Scripts;
