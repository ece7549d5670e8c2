//! The thread that serves all tickers: starts with the first, ends with the last.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::ticking::Ticking;
use crate::identity::subject::Id;
use crate::sync::unpoisoned;

/// Number of missed ticks that are made up for; after a longer pause the rate starts over.
const MISSED_MAX: u32 = 8;

#[derive(Default)]
struct Timer {
    schedule: Mutex<Schedule>,
    /// The schedule has changed.
    changed: Condvar,
    /// The timer has released a ticker.
    served: Condvar,
}

#[derive(Default)]
struct Schedule {
    /// Tickers in the order in which they are due.
    order: BTreeSet<(Instant, Id)>,
    entries: HashMap<Id, Entry>,
    /// The ticker that the timer serves without the lock.
    serving: Option<Id>,
    /// The timer's thread, while there is one.
    thread: Option<ThreadId>,
}

struct Entry {
    ticker: Weak<dyn Ticking>,
    interval: Duration,
    due: Instant,
}

/// Schedules the ticker at each interval from now on. Fails if the system cannot start a thread.
pub(super) fn add(ticker: &Arc<dyn Ticking>, interval: Duration) -> io::Result<()> {
    let timer = Timer::of_process();
    let mut schedule = timer.lock();
    if schedule.thread.is_none() {
        let handle = thread::Builder::new().name("tickers".to_owned()).spawn(|| timer.run())?;
        schedule.thread = Some(handle.thread().id());
    }
    schedule.add(ticker, interval, Instant::now());
    drop(schedule);
    timer.changed.notify_one();
    Ok(())
}

/// Unschedules the ticker. A call that has begun continues.
pub(super) fn remove(id: Id) {
    let timer = Timer::of_process();
    timer.lock().remove(id);
    // If it was the last, the thread ends.
    timer.changed.notify_one();
}

/// Waits until the timer has released a ticker that was removed, which takes as long as sending one
/// tick. Returns immediately on the timer's own thread.
pub(super) fn wait_for(id: Id) {
    Timer::of_process().wait_for(id);
}

impl Timer {
    fn of_process() -> &'static Self {
        static TIMER: OnceLock<Timer> = OnceLock::new();
        TIMER.get_or_init(Self::default)
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        unpoisoned(self.schedule.lock())
    }

    fn wait_for(&self, id: Id) {
        let mut schedule = self.lock();
        while schedule.serving == Some(id) && schedule.thread != Some(thread::current().id()) {
            schedule = unpoisoned(self.served.wait(schedule));
        }
    }

    fn run(&self) {
        let mut schedule = self.lock();
        loop {
            let (id, ticker) = match schedule.next(Instant::now()) {
                Turn::Serve(id, ticker) => (id, ticker),
                Turn::Wait(pause) => {
                    schedule = unpoisoned(self.changed.wait_timeout(schedule, pause)).0;
                    continue;
                }
                Turn::Over => break,
            };
            schedule.serving = Some(id);
            // Without the lock: tickers are added and removed meanwhile.
            drop(schedule);
            if let Some(ticker) = ticker.filter(|ticker| !ticker.is_over()) {
                ticker.send();
            }
            schedule = self.lock();
            schedule.serving = None;
            self.served.notify_all();
        }
        schedule.thread = None;
    }
}

/// What the timer does next.
enum Turn {
    /// Sends the tick of this ticker, if it has handles.
    Serve(Id, Option<Arc<dyn Ticking>>),
    Wait(Duration),
    /// Ends the thread: there are no tickers.
    Over,
}

impl Schedule {
    /// Adds a ticker, whose first tick is due one interval from now.
    fn add(&mut self, ticker: &Arc<dyn Ticking>, interval: Duration, now: Instant) {
        let (id, due) = (ticker.id(), now + interval);
        self.order.insert((due, id));
        self.entries.insert(id, Entry { ticker: Arc::downgrade(ticker), interval, due });
    }

    fn remove(&mut self, id: Id) {
        if let Some(entry) = self.entries.remove(&id) {
            assert!(self.order.remove(&(entry.due, id)), "ticker {id:?} is not in the order of those due");
        }
    }

    fn next(&mut self, now: Instant) -> Turn {
        match self.order.first() {
            Some(&(due, id)) if due <= now => Turn::Serve(id, self.take_turn(id, now)),
            Some(&(due, _)) => Turn::Wait(due - now),
            None => Turn::Over,
        }
    }

    /// Returns the ticker, if it has handles. Schedules its next tick, or removes it if it is over.
    fn take_turn(&mut self, id: Id, now: Instant) -> Option<Arc<dyn Ticking>> {
        let entry = self.entries.get_mut(&id).expect("what is in the order has an entry");
        let ticker = entry.ticker.upgrade();
        if ticker.as_ref().is_none_or(|ticker| ticker.is_over()) {
            self.remove(id);
            return ticker;
        }
        self.order.remove(&(entry.due, id));
        entry.due = due_after(entry.due, entry.interval, now);
        self.order.insert((entry.due, id));
        ticker
    }
}

/// Returns when the next tick is due, if the last was due at `due` and served at `now`.
fn due_after(due: Instant, interval: Duration, now: Instant) -> Instant {
    let is_far_behind = (now - due) / MISSED_MAX > interval;
    if is_far_behind { now + interval } else { due + interval }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_rate_holds_through_small_delays_and_starts_anew_after_large_ones() {
        let (due, interval) = (Instant::now(), Duration::from_millis(5));
        let next = |late_millis| due_after(due, interval, due + Duration::from_millis(late_millis)) - due;
        assert_eq!(next(0).as_millis(), 5);
        assert_eq!(next(40).as_millis(), 5);
        assert_eq!(next(41).as_millis(), 46);
    }

    /// Counts calls.
    struct Counter(Id, AtomicU32);

    impl Ticking for Counter {
        fn id(&self) -> Id {
            self.0
        }

        fn is_over(&self) -> bool {
            false
        }

        fn send(self: Arc<Self>) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    #[test]
    fn a_ticker_is_served_once_in_each_interval_of_a_clock_that_is_moved() {
        // Also if the timer's thread is late by up to this many milliseconds.
        for late in [1, 3, 5, 40] {
            let (start, interval) = (Instant::now(), Duration::from_millis(5));
            let counter = Arc::new(Counter(Id::fresh(), AtomicU32::new(0)));
            let ticker: Arc<dyn Ticking> = counter.clone();
            let mut schedule = Schedule::default();
            schedule.add(&ticker, interval, start);
            for millis in (0..=400).step_by(late) {
                let now = start + Duration::from_millis(millis as u64);
                let pause = loop {
                    match schedule.next(now) {
                        Turn::Serve(_, served) => _ = served.expect("there is a handle").send(),
                        Turn::Wait(pause) => break pause,
                        Turn::Over => unreachable!("there is a ticker"),
                    }
                };
                let ticks = counter.1.load(Ordering::Relaxed);
                assert_eq!(ticks, millis as u32 / 5, "after {millis} ms");
                assert_eq!(now + pause, start + interval * (ticks + 1), "until the next is due");
            }
            schedule.remove(counter.id());
            assert!(matches!(schedule.next(start), Turn::Over));
        }
    }

    #[test]
    fn the_timer_does_not_wait_for_itself() {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let timer = Timer::default();
            let id = Id::fresh();
            let thread = Some(thread::current().id());
            *timer.lock() = Schedule { serving: Some(id), thread, ..Schedule::default() };
            timer.wait_for(id);
            done.send(()).expect("the receiver waits");
        });
        is_done.recv_timeout(Duration::from_mins(1)).expect("it does not wait");
    }
}
