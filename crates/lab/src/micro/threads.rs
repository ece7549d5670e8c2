//! Work shared by several threads.

use super::benchmark::Work;
use anyhow::Context;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Creates work for so many threads; each does `operations` per call. Each operation gets its
/// number.
///
/// Starting and joining the threads takes some tens of microseconds per thread: a call's operations
/// must take far longer than that.
pub(crate) fn together<T: Sync + 'static, R: 'static>(
    threads: u64,
    operations: u64,
    shared: T,
    act: fn(&T, u64) -> R,
) -> anyhow::Result<Work> {
    with(threads, operations, shared, act, None)
}

/// Like [`together`], while one more thread repeats another operation on the same value.
pub(crate) fn beside<T: Sync + 'static, R: 'static>(
    threads: u64,
    operations: u64,
    shared: T,
    act: fn(&T, u64) -> R,
    meanwhile: fn(&T),
) -> anyhow::Result<Work> {
    with(threads, operations, shared, act, Some(meanwhile))
}

fn with<T: Sync + 'static, R: 'static>(
    threads: u64,
    operations: u64,
    shared: T,
    act: fn(&T, u64) -> R,
    meanwhile: Option<fn(&T)>,
) -> anyhow::Result<Work> {
    assert!(threads > 0 && operations > 0, "{threads} threads do {operations} operations each");
    let run = move |calls: u64| {
        let count = calls * operations;
        let begin = Barrier::new(threads as usize + 1);
        let is_over = AtomicBool::new(false);
        let (shared, begin, is_over) = (&shared, &begin, &is_over);
        let took = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|worker| {
                    let range = count * worker..count * (worker + 1);
                    scope.spawn(move || {
                        begin.wait();
                        // Excludes the start and end of threads, and the wake-up of the waiting
                        // thread.
                        let began = Instant::now();
                        for number in range {
                            black_box(&act(shared, black_box(number)));
                        }
                        (began, Instant::now())
                    })
                })
                .collect();
            if let Some(meanwhile) = meanwhile {
                scope.spawn(move || {
                    while !is_over.load(Relaxed) {
                        meanwhile(shared);
                    }
                });
            }
            begin.wait();
            let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            is_over.store(true, Relaxed);
            let times: Option<Vec<_>> = ended.into_iter().map(Result::ok).collect();
            let times = times.context("a thread has panicked")?;
            let first = times.iter().map(|(began, _)| *began).min();
            let last = times.iter().map(|(_, ended)| *ended).max();
            anyhow::Ok(
                last.zip(first).map_or(Duration::ZERO, |(last, first)| last.saturating_duration_since(first)),
            )
        })?;
        Ok(took.as_nanos() as f64)
    };
    Ok(Work { operations: threads * operations, run: Box::new(run), end: None, check: None })
}

#[cfg(test)]
mod tests {
    use super::{beside, together};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn every_operation_is_done_once() {
        for (calls, operations) in [(0, 1), (1, 1), (3, 1), (2, 2), (1, 5)] {
            let sum = Arc::new(AtomicU64::new(0));
            let mut work = together(3, operations, Arc::clone(&sum), |sum, number| {
                sum.fetch_add(1 << (4 * number), Relaxed)
            })
            .unwrap();
            (work.run)(calls).unwrap();
            assert_eq!(work.operations, 3 * operations);
            let each_once: u64 = (0..calls * work.operations).map(|number| 1 << (4 * number)).sum();
            assert_eq!(sum.load(Relaxed), each_once);
        }
    }

    #[test]
    fn a_panic_ends_what_goes_on_beside_it() {
        let mut work = beside(2, 1, (), |(), _| panic!("as the test wants"), |()| {}).unwrap();
        assert!((work.run)(2).is_err());
    }
}
