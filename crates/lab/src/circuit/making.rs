//! Making components of a circuit that is there.

use super::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work};
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::Circuit;

/// How many are made before the circuit is awaited.
const MADE: u64 = 1_000;

/// A row of making something and dropping it. `prepare` is called for each circuit, and what it returns for each component.
pub(super) fn making<T, E, M, P>(name: &str, what: &str, prepare: P) -> Benchmark
where
    E: Into<anyhow::Error>,
    M: FnMut(&Circuit) -> Result<T, E> + 'static,
    P: Fn(&Circuit) -> anyhow::Result<M> + 'static,
{
    let measures = format!(
        "making {what} in a circuit that is there, and dropping it; 1,000 at a time, and until the circuit has forgotten them; \
         the shared pool runs it"
    );
    Benchmark::new(name, measures, move |_| {
        let rig = Rig::new(By::Pool)?;
        let mut make = prepare(&rig)?;
        Work::calls(MADE, move || {
            let clock = Instant::now();
            for _ in 0..MADE {
                drop(black_box(make(&rig).map_err(Into::into)?));
            }
            rig.settle()?;
            Ok(clock.elapsed())
        })
    })
}
