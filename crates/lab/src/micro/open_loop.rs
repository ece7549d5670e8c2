//! Open loop: values are emitted at times that are fixed in advance, and their latency is measured.
//!
//! One plan covers a whole iteration. The first emission is due at the first call; the due time of
//! each later one follows from its number. A value's latency counts from its due time, even if
//! earlier emissions delayed its own (no coordinated omission). A subject that cannot keep up gets
//! later with every value. Arrival of all values is awaited only after the last emission.

use super::benchmark::Work;
use super::lateness::{Late, Lateness};
use anyhow::Context;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Time that the planned emissions of one call cover.
const CALL: Duration = Duration::from_millis(10);

/// Creates work that emits `per_second` values, each of which is its due time. `flush` waits for
/// their arrival.
pub(crate) fn emissions<S: 'static>(
    state: S,
    lateness: &Lateness,
    per_second: u64,
    emit: impl FnMut(&mut S, u64) -> anyhow::Result<()> + 'static,
    mut flush: impl FnMut(&mut S) -> anyhow::Result<()> + 'static,
) -> anyhow::Result<Work> {
    assert!(per_second > 0, "an emission that is due after no time is never due");
    let interval = 1_000_000_000 / per_second;
    let count = (CALL.as_nanos() as u64 / interval).max(1);
    // A call and the end of all calls never overlap.
    let plan = Rc::new(RefCell::new(Plan {
        lateness: lateness.clone(),
        interval,
        begin: None,
        emitted: 0,
        state,
        emit,
    }));
    let ended = Rc::clone(&plan);
    let call = move || plan.borrow_mut().emit(count);
    let end = move || {
        let plan = &mut *ended.borrow_mut();
        flush(&mut plan.state)?;
        let begin = plan.begin.context("no call was made, so there is no rate")?;
        let seconds = (plan.lateness.now() - begin) as f64 / 1e9;
        plan.lateness.expect(plan.emitted)?;
        Ok(Late { per_second: Some(plan.emitted as f64 / seconds), ..plan.lateness.all() })
    };
    Ok(Work::of_latencies(count, call, end))
}

/// The schedule of all emissions of an iteration.
struct Plan<S, F> {
    lateness: Lateness,
    /// Interval in nanoseconds.
    interval: u64,
    /// Start of the first call.
    begin: Option<u64>,
    emitted: u64,
    state: S,
    emit: F,
}

impl<S, F: FnMut(&mut S, u64) -> anyhow::Result<()>> Plan<S, F> {
    /// Emits `count` more values, each at its due time or as soon as possible.
    fn emit(&mut self, count: u64) -> anyhow::Result<()> {
        let begin = *self.begin.get_or_insert_with(|| self.lateness.now());
        for _ in 0..count {
            self.emitted += 1;
            let due = begin + self.emitted * self.interval;
            while self.lateness.now() < due {
                std::hint::spin_loop();
            }
            (self.emit)(&mut self.state, due)?;
        }
        Ok(())
    }
}

/// Creates work whose calls record the latencies of `count` values each.
pub(crate) fn latencies(
    lateness: &Lateness,
    count: u64,
    mut call: impl FnMut() -> anyhow::Result<()> + 'static,
) -> Work {
    let (own, all) = (lateness.clone(), lateness.clone());
    let call = move || {
        call()?;
        own.expect(count)
    };
    Work::of_latencies(count, call, move || Ok(all.all()))
}

#[cfg(test)]
mod tests {
    use super::emissions;
    use crate::micro::lateness::Lateness;
    use crate::micro::tally::Take;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_value_that_others_have_held_up_counts_as_late_also_in_later_calls() {
        let lateness = Lateness::new();
        let mut end = lateness.clone();
        let emit = move |first: &mut bool, due| {
            if std::mem::take(first) {
                thread::sleep(Duration::from_millis(100));
            }
            end.take(due);
            Ok(())
        };
        let mut work = emissions(true, &lateness, 1_000, emit, |_| Ok(())).unwrap();
        assert_eq!(work.operations, 10);
        // All are due within 40 ms of the start, but the first takes 100 ms.
        for _ in 0..4 {
            (work.run)(1).unwrap();
        }
        let late = (work.end.unwrap())().unwrap();
        assert_eq!(late.latencies.summary().count, 40);
        assert!(late.latencies.nanos_at(0.0) >= 60_900_000, "{}", late.latencies.nanos_at(0.0));
        let mean = (61..=100).sum::<u64>() as f64 * 1e6 / 40.0;
        assert!(late.nanos >= mean, "{} is less than {mean}", late.nanos);
    }

    #[test]
    fn an_overloaded_system_is_later_and_later_and_the_rate_shows_it() {
        let lateness = Lateness::new();
        let mut end = lateness.clone();
        let emit = move |(): &mut (), due| {
            thread::sleep(Duration::from_millis(2));
            end.take(due);
            Ok(())
        };
        let mut work = emissions((), &lateness, 1_000, emit, |()| Ok(())).unwrap();
        (work.run)(2).unwrap();
        (work.run)(1).unwrap();
        let late = (work.end.unwrap())().unwrap();
        // The last is due at 30 ms, and arrives at 60 ms at the earliest.
        assert!(late.latencies.nanos_at(1.0) >= 30_000_000, "{}", late.latencies.nanos_at(1.0));
        let rate = late.per_second.unwrap();
        assert!(rate > 0.0 && rate <= 500.0, "{rate}");
    }

    #[test]
    fn a_value_that_does_not_arrive_is_an_error() {
        let mut work = emissions((), &Lateness::new(), 1_000, |(), _| Ok(()), |()| Ok(())).unwrap();
        (work.run)(1).unwrap();
        let error = (work.end.unwrap())().err().unwrap().to_string();
        assert_eq!(error, "0 values arrived where 10 should have");
    }
}
