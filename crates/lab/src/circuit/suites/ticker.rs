//! `TickerOps`: numbers at a fixed rate. The original measures none of it.

use crate::circuit::benchmark::Benchmark;
use crate::circuit::making::making;
use std::time::Duration;
use tidemark_circuit::Circuit;

pub(super) fn suite() -> [Benchmark; 1] {
    [making("TickerOps.create_and_close", "a ticker with a tick an hour, closing it", |circuit| {
        let target = circuit.discard::<u64>()?;
        Ok(move |circuit: &Circuit| {
            circuit.ticker(Duration::from_hours(1), &target).map(|ticker| ticker.close())
        })
    })]
}
