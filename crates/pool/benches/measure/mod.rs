//! Nanoseconds an action: the best of many short rounds, and their median.

use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_micros(500);

/// What was measured of one thing.
#[derive(Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    /// Measures some rounds of an action.
    pub(crate) fn rounds<T>(&mut self, rounds: usize, mut action: impl FnMut() -> T) {
        self.0.extend((0..rounds).map(|_| time(&mut action)));
    }

    /// What was measured otherwise: nanoseconds an action.
    #[allow(dead_code, reason = "not every benchmark has such")]
    pub(crate) fn of(nanoseconds: Vec<f64>) -> Self {
        Self(nanoseconds)
    }

    /// Says of how many equal parts the action was made: figures are of one.
    pub(crate) fn divide(&mut self, parts: usize) {
        self.0.iter_mut().for_each(|time| *time /= parts as f64);
    }

    /// The best and, in brackets, the median.
    pub(crate) fn figures(&mut self) -> String {
        self.0.sort_unstable_by(f64::total_cmp);
        format!("{:.1} ({:.1})", self.0[0], self.0[self.0.len() / 2])
    }
}

/// Nanoseconds an action, over a round.
fn time<T>(action: &mut impl FnMut() -> T) -> f64 {
    let (mut batch, mut done) = (1_u32, 0_u32);
    let began = Instant::now();
    loop {
        for _ in 0..batch {
            black_box(action());
        }
        done += batch;
        let elapsed = began.elapsed();
        if elapsed >= ROUND {
            return elapsed.as_nanos() as f64 / f64::from(done);
        }
        batch = (2 * batch).min(1024);
    }
}
