//! Creation of components in an existing circuit.

use super::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work};
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::Circuit;

/// Number of components per await of the circuit.
const MADE: u64 = 1_000;

/// A row that creates and drops a component. `prepare` runs once per circuit; its result, once per
/// component.
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
