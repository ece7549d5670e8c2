//! What a group of members promises: real members on threads of their own, with real logs, and over real
//! sockets.

mod changes;
mod fixture;
mod groups;
mod handshakes;
mod levels;
mod links;
mod snapshot_files;
mod snapshots;
mod streams;
mod support;
mod tls;
