//! `TickerOps`: numbers at a fixed rate. The original has no such rows.

use crate::circuit::making::making;
use crate::circuit::rig::Runner;
use crate::micro::benchmark::Benchmark;
use crate::micro::lateness::Lateness;
use crate::micro::open_loop;
use crate::micro::tally::Take;
use std::sync::mpsc;
use std::time::Duration;
use tidemark_circuit::Circuit;

/// Interval of the ticks whose latency is measured, and their number per call.
const INTERVAL: Duration = Duration::from_millis(1);
const TICKS: u64 = 20;

pub(super) fn suite() -> [Benchmark; 2] {
    let create =
        making("TickerOps.create_and_close", "a ticker with a tick an hour, closing it", |circuit| {
            let target = circuit.discard::<u64>()?;
            Ok(move |circuit: &Circuit| {
                circuit.ticker(Duration::from_hours(1), &target).map(|ticker| ticker.close())
            })
        });
    let measures = format!(
        "how late a tick is handled, of twenty by a ticker with a tick a millisecond; counted from its number and when the \
         ticker was made; {}",
        Runner::THREAD.driver
    );
    let late = Benchmark::new("TickerOps.tick_lateness", measures, |_| {
        let rig = (Runner::THREAD.rig)()?;
        let lateness = Lateness::new();
        let own = lateness.clone();
        Ok(open_loop::latencies(&lateness, TICKS, move || {
            let (done, is_done) = mpsc::channel();
            let (begin, mut end) = (own.now(), own.clone());
            let target = rig.pipe(move |tick: u64| {
                if tick < TICKS {
                    end.take(begin + (tick + 1) * INTERVAL.as_nanos() as u64);
                } else {
                    // From the second time on, the receiver is gone.
                    let _ = done.send(());
                }
            })?;
            let ticker = rig.ticker(INTERVAL, &target)?;
            is_done.recv()?;
            Ok(ticker.close_and_settle()?)
        }))
    });
    [create, late.of_latencies().in_summary()]
}
