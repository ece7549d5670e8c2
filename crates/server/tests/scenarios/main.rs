//! A running server, over its sockets: what clients see. One process for all: each test has a server of its own.

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
mod resuming;
mod tracking;
mod transactions;
mod watching;
