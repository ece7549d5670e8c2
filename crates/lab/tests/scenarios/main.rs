//! The labs of circuits, counters, pools and series through their command lines: every row runs, the
//! figures add up, and the flags do what they say.

mod circuit;
mod counter;
mod counter_cost;
#[cfg(feature = "stores")]
mod counter_stores;
mod pn_counter;
mod pool;
#[cfg(feature = "stores")]
#[path = "../../../stores/tests/scenarios/conformance/running.rs"]
#[allow(dead_code, reason = "the stores' own tests also kill servers and have them forget")]
mod running;
mod series_cost;
mod support;
#[cfg(all(feature = "log", feature = "wire"))]
mod time_series;

use std::alloc::System;
use tidemark_lab::allocations::Counting;

/// For the rows that count allocations.
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);
