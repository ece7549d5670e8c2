//! Work that several threads do together.

use super::benchmark::Work;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

/// Work that so many threads share equally. Each operation is given its number.
pub(crate) fn together<T: Sync + 'static, R: 'static>(
    threads: u64,
    shared: T,
    act: fn(&T, u64) -> R,
) -> anyhow::Result<Work> {
    with(threads, shared, act, None)
}

/// As [`together`], while one more thread does something to the same, again and again.
pub(crate) fn beside<T: Sync + 'static, R: 'static>(
    threads: u64,
    shared: T,
    act: fn(&T, u64) -> R,
    meanwhile: fn(&T),
) -> anyhow::Result<Work> {
    with(threads, shared, act, Some(meanwhile))
}

fn with<T: Sync + 'static, R: 'static>(
    threads: u64,
    shared: T,
    act: fn(&T, u64) -> R,
    meanwhile: Option<fn(&T)>,
) -> anyhow::Result<Work> {
    debug_assert!(threads > 0);
    let run = move |count: u64| {
        let begin = Barrier::new(threads as usize + 1);
        let is_over = AtomicBool::new(false);
        let (shared, begin, is_over) = (&shared, &begin, &is_over);
        let took = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|worker| {
                    // Whatever the count, all of it is done.
                    let range = count * worker / threads..count * (worker + 1) / threads;
                    scope.spawn(move || {
                        begin.wait();
                        for number in range {
                            black_box(act(shared, black_box(number)));
                        }
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
            let clock = Instant::now();
            let ends: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            let took = clock.elapsed();
            is_over.store(true, Relaxed);
            anyhow::ensure!(ends.iter().all(Result::is_ok), "a thread has panicked");
            Ok(took)
        })?;
        Ok(took.as_nanos() as f64)
    };
    Ok(Work { operations: 1, run: Box::new(run), end: None, check: None })
}

#[cfg(test)]
mod tests {
    use super::{beside, together};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn every_operation_is_done_once() {
        for count in [0, 1, 3, 10] {
            let sum = Arc::new(AtomicU64::new(0));
            let mut work =
                together(3, Arc::clone(&sum), |sum, number| sum.fetch_add(1 << (4 * number), Relaxed))
                    .unwrap();
            (work.run)(count).unwrap();
            let each_once: u64 = (0..count).map(|number| 1 << (4 * number)).sum();
            assert_eq!(sum.load(Relaxed), each_once);
        }
    }

    #[test]
    fn a_panic_ends_what_goes_on_beside_it() {
        let mut work = beside(2, (), |(), _| panic!("as the test wants"), |()| {}).unwrap();
        assert!((work.run)(2).is_err());
    }
}
