//! `PinOps` of the original's newer suite: a value that only its circuit reads and changes.

use crate::circuit::rig::Runner;
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::{Circuit, ContextError};

pub(super) fn suite() -> [Benchmark; 5] {
    [
        looped("baseline_field_get_loop", "reading a variable", |_| {
            let mut field = 1_u64;
            Ok(move || {
                black_box(*black_box(&mut field));
                Ok(())
            })
        }),
        looped("baseline_field_set_loop", "changing a variable", |_| {
            let mut field = 1_u64;
            Ok(move || {
                *black_box(&mut field) = black_box(42);
                Ok(())
            })
        }),
        looped("get_loop_owner_context", "reading a pin", |circuit| {
            let pin = circuit.pin(1_u64)?;
            Ok(move || pin.get().map(|value| _ = black_box(value)))
        }),
        looped("set_loop_owner_context", "changing a pin", |circuit| {
            let pin = circuit.pin(1_u64)?;
            Ok(move || {
                pin.set(black_box(42))?;
                // Makes each change observable, so that none is optimized away.
                black_box(&pin);
                Ok(())
            })
        }),
        looped("get_set_loop_owner_context", "changing a pin and reading it", |circuit| {
            let pin = circuit.pin(1_u64)?;
            Ok(move || {
                pin.set(black_box(42))?;
                pin.get().map(|value| _ = black_box(value))
            })
        }),
    ]
}

/// A row of an operation that a receptor repeats; it counts once for all if nothing was refused.
fn looped<A>(name: &str, what: &str, prepare: fn(&Circuit) -> anyhow::Result<A>) -> Benchmark
where
    A: FnMut() -> Result<(), ContextError> + Send + 'static,
{
    let measures = format!(
        "{what} in the circuit, 10,000 times for one emission and one await; {}",
        Runner::THREAD.driver
    );
    Benchmark::new(format!("PinOps.{name}"), measures, move |sizes| {
        let rig = (Runner::THREAD.rig)()?;
        let mut tally = Tally::default();
        let (counter, mut access) = (tally.counter(), prepare(&rig)?);
        let pipe = rig.pipe(move |count: u64| {
            if (0..count).try_for_each(|_| access()).is_ok() {
                counter.count(count);
            }
        })?;
        let count = sizes.batch;
        Work::calls(count, move || {
            let clock = Instant::now();
            pipe.emit(count);
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(1)?;
            Ok(took)
        })
    })
}
