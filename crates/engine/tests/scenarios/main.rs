//! Tests of the engine through its API: commands and their answers, and the state that the log and
//! snapshots give.

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod bits;
mod block_files;
mod blocking;
mod counter_figures;
mod counters;
mod crash;
mod dormancy;
mod due_work;
mod dumps;
mod events;
mod field_times;
mod following;
mod functions;
mod geo;
mod hashes;
mod hyper_log_logs;
mod keyspace;
mod labelled_lenses;
mod leases;
mod lenses;
mod limits;
mod lists;
mod once;
#[cfg(feature = "planted")]
mod planted;
mod points;
mod pools;
mod randomness;
mod refused;
mod replay;
mod rules;
mod scripts;
mod series;
mod sets;
mod sliding_ranges;
mod sort;
mod sorted_sets;
mod streams;
mod strings;
mod watched_keys;
mod watched_ranges;
mod watching;
