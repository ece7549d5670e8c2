//! Bounds of the ingress queue, for when values arrive faster than the circuit handles them.

use crate::execution::queue::latest::SharedLatest;
use crate::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, lock, wait};

/// What a circuit with a bounded ingress queue does when the queue is full. See
/// [`crate::CircuitBuilder::bounded`].
///
/// With a bound, each emission from outside costs a few more shared atomic operations.
///
/// ```
/// use tidemark_circuit::{Circuit, Overflow, RunBy};
///
/// let builder = Circuit::builder().run_by(RunBy::Owner);
/// let circuit = builder.bounded(2, Overflow::DropNewest).build()?;
/// let last = circuit.cell(0)?;
/// (1..=3).for_each(|value| last.pipe().emit(value));
/// circuit.run(10);
/// assert_eq!((last.get(), circuit.dropped()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// [`crate::Pipe::try_emit`] returns the value; [`crate::Pipe::emit`] drops and counts it.
    Reject,
    /// The new value is dropped and counted.
    DropNewest,
    /// The oldest value in the queue is dropped and counted. Admission takes a lock.
    DropOldest,
    /// The caller waits for room. A receptor of another circuit runs the circuit inside its `emit`
    /// to make room, if no thread of the pool does. Not for circuits that emit to each other in a
    /// circle, which could all wait: the emission that would close the circle is refused
    /// ([`Refused::Circle`](crate::Refused::Circle)). `emit` then drops the value, counts it, and
    /// reports it as a failure of the operation `emit`.
    Block,
}

/// Bound of a circuit's ingress queue: how many emissions may wait, and how many do.
pub(crate) struct Bounds {
    capacity: usize,
    overflow: Overflow,
    waiting: AtomicUsize,
    dropped: AtomicU64,
    /// Number of callers that wait for room.
    blocked: AtomicUsize,
    turnstile: Mutex<()>,
    room: Condvar,
    latest: Option<SharedLatest>,
}

/// Whether an emission may be put into the queue.
pub(crate) enum Admission {
    Granted,
    /// Dropped and counted, as the policy says.
    Dropped,
    Refused,
    /// The wait would never end.
    Circle,
}

impl Bounds {
    pub(crate) fn new(capacity: usize, overflow: Overflow) -> Self {
        let latest = (overflow == Overflow::DropOldest).then(|| SharedLatest::new(capacity));
        Self {
            capacity,
            overflow,
            waiting: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            blocked: AtomicUsize::new(0),
            turnstile: Mutex::new(()),
            room: Condvar::new(),
            latest,
        }
    }

    /// The queue to use instead of the usual one, if the oldest emissions are dropped.
    #[inline]
    pub(crate) fn latest(&self) -> Option<&SharedLatest> {
        self.latest.as_ref()
    }

    /// Whether callers wait for room.
    pub(crate) fn blocks(&self) -> bool {
        self.overflow == Overflow::Block
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests room for one emission. Waits for it if the policy is to block and `may_wait`,
    /// unless `is_over` returns that there will be no room or, when the queue is full,
    /// `is_in_circle` returns that the wait would never end.
    pub(crate) fn admit(
        &self,
        may_wait: bool,
        is_over: impl Fn() -> bool,
        is_in_circle: impl Fn() -> bool,
    ) -> Admission {
        if self.claim() {
            return Admission::Granted;
        }
        match self.overflow {
            Overflow::Block if may_wait => self.wait(is_over, is_in_circle),
            Overflow::Block | Overflow::Reject => Admission::Refused,
            Overflow::DropNewest | Overflow::DropOldest => {
                self.count_dropped();
                Admission::Dropped
            }
        }
    }

    fn claim(&self) -> bool {
        let more = |waiting| (waiting < self.capacity).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Returns whether there is no room now.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) >= self.capacity
    }

    fn wait(&self, is_over: impl Fn() -> bool, is_in_circle: impl Fn() -> bool) -> Admission {
        let mut guard = lock(&self.turnstile);
        // Counted first, then checked. `release` makes room first, then checks for waiters. All are
        // SeqCst, so one sees the other.
        self.blocked.fetch_add(1, Ordering::SeqCst);
        let admission = loop {
            if is_over() {
                break Admission::Refused;
            }
            if self.claim() {
                break Admission::Granted;
            }
            // After the claim: a circle was invisible while there was room, and is detected here if
            // another caller took that room.
            if is_in_circle() {
                break Admission::Circle;
            }
            guard = wait(&self.room, guard);
        };
        drop(guard);
        self.blocked.fetch_sub(1, Ordering::SeqCst);
        admission
    }

    /// Releases the room of an emission that has left the queue.
    #[inline]
    pub(crate) fn release(&self) {
        let waiting = self.waiting.fetch_sub(1, Ordering::SeqCst);
        assert!(waiting > 0, "an emission leaves the queue that has claimed no room of {}", self.capacity);
        if self.blocked.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    /// Wakes all waiting callers to check again.
    #[cold]
    pub(crate) fn wake(&self) {
        // Taking the lock ensures that no caller is between its check and its wait.
        drop(lock(&self.turnstile));
        self.room.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::circuit::{Circuit, RunBy};
    use crate::error::Refused;

    /// A unit test because only the private fields show that a caller already waits.
    #[test]
    fn closing_lets_callers_go_that_wait_for_room() {
        for run_by in [RunBy::SharedPool, RunBy::Thread] {
            let circuit =
                Circuit::builder().run_by(run_by).bounded(1, Overflow::Block).build().expect("valid");
            let (start, started) = mpsc::channel();
            let (open, gate) = mpsc::channel::<()>();
            let pipe = circuit
                .pipe(move |_: u32| {
                    start.send(()).expect("received");
                    gate.recv().expect("opened");
                })
                .expect("open");
            pipe.emit(0);
            started.recv().expect("the receptor runs");
            pipe.emit(1);
            thread::scope(|scope| {
                let blocked = scope.spawn(|| pipe.try_emit(2));
                let bounds = circuit.machine().bounds.as_ref().expect("bounded");
                // A caller that is counted releases the lock only to sleep.
                let is_waiting = || {
                    let _guard = lock(&bounds.turnstile);
                    bounds.blocked.load(Ordering::SeqCst) > 0
                };
                while !is_waiting() {
                    assert!(!blocked.is_finished(), "there is no room");
                    thread::yield_now();
                }
                circuit.close();
                assert_eq!(blocked.join().expect("no panic"), Err(Refused::Closed(2)));
            });
            (0..2).for_each(|_| open.send(()).expect("received"));
            circuit.settle().expect("outside");
            assert_eq!(started.try_iter().count(), 1, "what was accepted before the close is handled");
        }
    }
}
