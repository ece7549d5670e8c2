//! State between the start and the end of recovery: clients can connect, and commands that need the
//! data are answered `LOADING`.

use std::io::Write as _;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tidemark_engine::Engine;
use tidemark_log::Clock;

/// Error for commands that need the data, in Redis's words: clients recognise it and retry.
pub(crate) const LOADING: &str = "LOADING Redis is loading the dataset in memory";

/// Minimum time between two progress lines to the operator.
const LINE_PAUSE: Duration = Duration::from_secs(2);

/// The served engine: an empty one over the same log until the data is loaded. The empty one must
/// not be changed.
pub(crate) struct ServedEngine {
    empty: Option<Engine>,
    loaded: OnceLock<Engine>,
}

impl ServedEngine {
    /// Wraps an engine that has its data.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn loaded(engine: Engine) -> ServedEngine {
        ServedEngine { empty: None, loaded: OnceLock::from(engine) }
    }

    /// Wraps an empty engine while the data is being loaded.
    pub(crate) fn loading(empty: Engine) -> ServedEngine {
        ServedEngine { empty: Some(empty), loaded: OnceLock::new() }
    }

    /// Serves the loaded engine from now on.
    pub(crate) fn install(&self, engine: Engine) {
        assert!(self.loaded.set(engine).is_ok(), "the data is loaded once");
    }

    /// Whether all data is loaded.
    #[inline]
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded.get().is_some()
    }
}

impl Deref for ServedEngine {
    type Target = Engine;

    #[inline]
    fn deref(&self) -> &Engine {
        match self.loaded.get() {
            Some(engine) => engine,
            None => self.empty.as_ref().expect("an engine is loaded or there is an empty one in its place"),
        }
    }
}

/// What is being loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Frames of a snapshot.
    Snapshot,
    /// Records of the log.
    Log,
}

impl Source {
    /// Human-readable units.
    pub(crate) fn units(self) -> &'static str {
        match self {
            Source::Snapshot => "frames of the snapshot",
            Source::Log => "records of the log",
        }
    }
}

/// Progress of loading, and its cancellation.
pub(crate) struct Loading {
    clock: Clock,
    began: Instant,
    /// What is being loaded, since when, and when the next progress line is due.
    step: Mutex<LoadingStep>,
    total: AtomicU64,
    done: AtomicU64,
    given_up: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct LoadingStep {
    source: Source,
    began: Instant,
    next_line: Instant,
}

/// Progress for `INFO` and metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) source: Source,
    pub(crate) done: u64,
    pub(crate) total: u64,
    /// Estimated time until the end, at the present rate.
    pub(crate) eta: Duration,
}

impl Figures {
    pub(crate) fn percent(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.done as f64 * 100.0 / self.total as f64 }
    }
}

impl Loading {
    pub(crate) fn new(clock: &Clock) -> Loading {
        let began = clock.now();
        let step = LoadingStep { source: Source::Snapshot, began, next_line: began + LINE_PAUSE };
        let (total, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Loading {
            clock: clock.clone(),
            began,
            step: Mutex::new(step),
            total,
            done,
            given_up: AtomicBool::new(false),
        }
    }

    /// Begins a step with `total` units.
    pub(crate) fn begin(&self, source: Source, total: u64) {
        let began = self.clock.now();
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        *step = LoadingStep { source, began, next_line: step.next_line };
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds loaded units, and writes a progress line to the operator if one is due.
    pub(crate) fn advance(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if step.next_line <= now {
            step.next_line = now + LINE_PAUSE;
            drop(step);
            let figures = self.figures();
            let (done, total, units) = (figures.done, figures.total, figures.source.units());
            // Standard error may be closed.
            let _ = writeln!(
                std::io::stderr(),
                "{:<12}{done} of {total} {units}, {:.0} %",
                "loading",
                figures.percent()
            );
        }
    }

    /// Current progress.
    pub(crate) fn figures(&self) -> Figures {
        let LoadingStep { source, began, .. } = *self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let missing = total.saturating_sub(done) as f64 / done.max(1) as f64;
        // At most a year: early estimates are unreliable.
        let eta = Duration::from_secs_f64(
            (self.clock.elapsed(began).as_secs_f64() * missing).min(366.0 * 86_400.0),
        );
        Figures { source, done, total, eta }
    }

    /// Time since the start.
    pub(crate) fn duration(&self) -> Duration {
        self.clock.elapsed(self.began)
    }

    /// Cancels loading.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Whether loading is cancelled.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::ManualClock;

    #[test]
    fn figures_are_those_of_the_present_step() {
        let clock = ManualClock::new();
        let loading = Loading::new(&Clock::from(&clock));
        assert_eq!(loading.figures().percent() as u64, 0);
        loading.begin(Source::Snapshot, 10);
        clock.advance(Duration::from_mins(1));
        loading.advance(10);
        loading.begin(Source::Log, 200);
        loading.advance(30);
        clock.advance(Duration::from_secs(7));
        loading.advance(20);
        let figures = loading.figures();
        assert_eq!((figures.source, figures.done, figures.total), (Source::Log, 50, 200));
        assert_eq!(figures.percent() as u64, 25);
        assert_eq!(figures.eta, Duration::from_secs(21), "the other 150 at the rate of this step");
        assert_eq!(loading.duration(), Duration::from_secs(67));
    }

    #[test]
    fn a_line_to_the_operator_is_due_after_a_pause() {
        let clock = ManualClock::new();
        let loading = Loading::new(&Clock::from(&clock));
        let next_line = || loading.step.lock().unwrap_or_else(PoisonError::into_inner).next_line;
        let first = next_line();
        clock.advance(LINE_PAUSE / 2);
        loading.advance(1);
        assert_eq!(next_line(), first);
        clock.advance(LINE_PAUSE / 2);
        loading.advance(1);
        assert_eq!(next_line(), first + LINE_PAUSE);
    }
}
