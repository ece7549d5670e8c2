//! What a group of members promises: real members on threads of their own, with real logs, in one
//! process.

mod changes;
mod fixture;
mod groups;
