//! Supervision of a run: shows its progress and ends it early on an interrupt.

use super::load::Plan;
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Seconds};
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between two checks.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of checks per progress line.
const LOOKS_PER_LINE: u64 = 5;

/// Supervises until `is_over`, which a thread sets before it unparks this one.
pub(super) fn supervise(
    plan: &Plan<'_>,
    interrupt: &Interrupt,
    progress: &mut Progress,
    is_over: &AtomicBool,
) {
    let clock = &plan.clock;
    let (mut served, mut at) = (0, clock.now());
    for look in 0_u64.. {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        if interrupt.is_asked_for() {
            clock.end_now();
        }
        let now = clock.now();
        if look % LOOKS_PER_LINE == 0 {
            let (before, new) = (served, plan.served.load(Ordering::Relaxed));
            let per_second = (new - before) as f64 * 1e9 / now.saturating_sub(at).max(1) as f64;
            (served, at) = (new, now);
            let (phase, from, to) = match now {
                _ if now >= clock.end() => ("waiting for the last replies", clock.end(), clock.end()),
                _ if now < clock.measured_from => ("warming up", 0, clock.measured_from),
                _ => ("measuring", clock.measured_from, clock.end()),
            };
            let seconds = Seconds {
                done: Duration::from_nanos(now.saturating_sub(from)),
                of: Duration::from_nanos(to - from),
            };
            progress.show(phase, Line { seconds, per_second });
        }
        std::thread::park_timeout(LOOK_INTERVAL);
    }
}

/// Progress line of a phase.
struct Line {
    seconds: Seconds,
    per_second: f64,
}

impl Display for Line {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {:.0} ops/s", self.seconds, self.per_second)
    }
}
