//! The real binary as its users, clients and operators see it, on real files and sockets: one
//! module per subject.

mod bench_circuit;
mod bench_counter;
mod bench_interrupt;
mod bench_pool;
mod bench_series;
mod bench_watching;
mod book;
mod circles;
mod cli;
mod cli_server;
mod command_table;
#[path = "../../../engine/tests/support/commands.rs"]
mod commands;
mod compatibility;
mod configuration;
mod counters;
mod crash_loop;
mod descriptors;
mod dice_resuming;
mod differential;
mod differential_events;
mod disk;
mod failing_syncs;
mod hanging_disk;
mod hostile;
mod http_limits;
mod kafka;
mod leases;
mod log_command;
mod modes;
mod named_watching;
mod permissions;
mod pool_import;
mod pool_verify;
mod pools;
mod reading_time;
mod refusals;
mod shutdown;
mod sinks;
mod snapshots;
mod support;
mod tidy;
mod top_counters;
mod top_pools;
mod watching_end_to_end;
