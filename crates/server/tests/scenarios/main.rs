//! Scenarios against a running server, over its sockets. All tests run in one process, each with
//! its own server.

mod blocking;
mod changes;
mod channel_watching;
mod client_memory;
mod common;
mod counter_top;
mod dice;
mod http_access;
mod http_changes;
mod http_crowds;
mod http_limits;
mod http_watching;
mod keyspace_events;
mod lifecycle;
mod limits;
mod loading;
mod logins;
mod long_commands;
mod named_watching;
mod pause;
mod protocol;
mod pubsub;
mod reference;
mod resuming;
mod tracking;
mod transactions;
mod watched_ranges;
mod watching;
