//! Lua scripts, as Redis runs them, with nothing of keys.
//!
//! ```text
//! Script ──► Interpreter::run ──► Lua 5.1 in the sandbox ──► Answer
//!                                  │ redis.call(…)  ▲
//!                                  ▼                │
//!                               Caller: runs a command, and says when a script must end
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`script`] | the text of a script, its name and its flags |
//! | [`functions`], `loading` | libraries of functions: what they register, and how a function is called |
//! | [`confined`] | whether a script touches only the keys that it is given |
//! | [`Interpreter`] | an interpreter of one thread: its sandbox, its limits, compiled scripts |
//! | [`Caller`], [`Answer`] | what runs the commands of a script, and takes what it returns |
//! | `native`, `trampoline` | values and errors across Lua's C interface |
//! | `json`, `msgpack`, `structs`, `bits` | `cjson`, `cmsgpack`, `struct`, `bit` |
//! | `output` | what these write, with its limit |
//! | `pattern`, `strings` | the functions of `string` that could run for ever |
//!
//! The sandbox rests on this: scripts are loaded as text, never as bytecode; they see no library that reaches
//! a file, the process or the interpreter's own tables; the tables that they share cannot be changed; memory
//! is limited by the allocator, and time by a hook and by the functions that loop without it.

mod bits;
mod caller;
pub mod confined;
pub mod functions;
mod interpreter;
mod json;
mod library;
mod loading;
mod msgpack;
mod native;
mod number;
mod output;
mod pattern;
pub mod script;
mod state;
mod strings;
mod structs;
#[cfg(test)]
mod tests;
mod trampoline;

pub use caller::{Answer, Caller};
pub use interpreter::{Interpreter, with_interpreter};
pub use output::MAX_MEMORY;
