//! `LatencyOps`: latency of draws that are due at fixed times.
//!
//! A draw that is due while another one blocks counts as late, even if it could not be requested
//! yet: see [`open_loop`](crate::micro::open_loop).

use super::served::Served;
use super::stock::{Scale, pool};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::lateness::Lateness;
use crate::micro::open_loop::emissions;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_pool::journal::NoJournal;
use tidemark_pool::selector::WideTree;

/// Draws per second, with the part of row names that states them.
pub(super) const RATES: [(&str, u64); 2] = [("10k", 10_000), ("100k", 100_000)];

pub(super) fn suite() -> Vec<Benchmark> {
    RATES.map(|(name, rate)| {
        let measures = format!(
            "how late a draw among 1,000 items is answered by a callback, of {rate} that are due in a second; no log"
        );
        Benchmark::new(format!("LatencyOps.at_{name}_no_log"), measures, move |sizes| {
            let pool = pool::<WideTree>(Scale::THOUSAND.items.min(sizes.items))?;
            at_rate(Served::new(pool, NoJournal::default())?, rate)
        })
        .of_latencies()
        .of("draw")
    })
    .into()
}

/// Creates work of `per_second` draws.
pub(super) fn at_rate(served: Served, per_second: u64) -> anyhow::Result<Work> {
    let lateness = Lateness::new();
    let late = Arc::new(lateness.clone());
    let served = Rc::new(served);
    let draw = move |served: &mut Rc<Served>, due| {
        served.draw_late(&late, due);
        Ok(())
    };
    // Answers arrive in the order of the draws: the last answer implies all earlier ones.
    let flush = |served: &mut Rc<Served>| Ok(served.draw().map(drop)?);
    let work = emissions(Rc::clone(&served), &lateness, per_second, draw, flush)?;
    Ok(work.checked(move || {
        served.finish()?;
        Ok(Vec::new())
    }))
}
