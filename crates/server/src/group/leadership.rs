//! Whether this member leads, between the consensus, which decides it, and memory, which must have
//! the whole log before commands run.
//!
//! ```text
//!  consensus: begin_term ─► memory applies what is committed ─► serve: commands run here
//!             end_term   ─► no command runs, clients are disconnected
//!             end_log    ─► memory follows the log again
//!             cut        ─► memory that has what was taken back is dropped and loaded again
//! ```

use crate::observe::operator_line::say;
use crate::shared::Shared;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};
use tidemark_cluster::{Level, Term};
use tidemark_log::{Clock, Lsn};

/// What the consensus has decided for this member, until memory has done it.
#[derive(Debug, Default)]
struct Decisions {
    /// The term that was won and has not ended, and its first record.
    won: Option<(Term, Lsn)>,
    /// The last record of the first term that ended since memory last led or followed.
    end: Option<Lsn>,
    /// The log was cut behind this record.
    cut: Option<Lsn>,
    /// The log has moved since memory last looked.
    has_moved: bool,
    is_stopping: bool,
}

/// What memory is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    /// The term that this member has won, and its first record.
    pub(super) won: Option<(Term, Lsn)>,
    /// The last record that memory has that led until a term ended.
    pub(super) end: Option<Lsn>,
    /// The log ends, or ended once, with this record.
    pub(super) cut: Option<Lsn>,
    pub(super) is_stopping: bool,
}

/// Whether this member leads.
pub(crate) struct Leadership {
    decisions: Mutex<Decisions>,
    changed: Condvar,
    /// Held while memory is loaded, and while the log is replaced.
    loading: Mutex<()>,
    /// The term in which commands run here, with [`GATE_CLOSED`] during a change; 0 if they do not.
    serving: AtomicU64,
    /// The server over the memory of now.
    server: RwLock<Weak<Shared>>,
    clock: Clock,
    began: Instant,
    /// The newest time as of which memory is known to have everything that was committed. Milliseconds
    /// after `began`; 0 if none is known.
    fresh_ms: AtomicU64,
    /// The level of records that all members know.
    level: AtomicU8,
}

/// In `serving`: commands are refused because the leader or the members are being changed.
const GATE_CLOSED: u64 = 1 << 63;

/// Longest wait for the workers to send the answers that waited, before another member leads.
const ANSWERS_PATIENCE: Duration = Duration::from_millis(200);

/// How far memory may be behind for reads on followers.
const FRESH: Duration = Duration::from_secs(2);

impl Leadership {
    pub(crate) fn new(clock: &Clock) -> Leadership {
        Leadership {
            clock: clock.clone(),
            began: clock.now(),
            fresh_ms: AtomicU64::new(0),
            level: AtomicU8::new(Level::FIRST.0),
            decisions: Mutex::default(),
            changed: Condvar::new(),
            loading: Mutex::default(),
            serving: AtomicU64::new(0),
            server: RwLock::default(),
        }
    }

    /// Returns whether commands may run here now as those of `term`. One load.
    #[inline]
    pub(crate) fn admits(&self, term: Term) -> bool {
        term.0 != 0 && self.serving.load(Ordering::Acquire) == term.0
    }

    /// Returns whether memory leads in `term`: commands run here, unless a change refuses them for a moment.
    /// One load.
    pub(crate) fn serves(&self, term: Term) -> bool {
        term.0 != 0 && self.serving.load(Ordering::Acquire) & !GATE_CLOSED == term.0
    }

    /// Returns whether memory leads in some term. False once the end of the term has been counted, see
    /// [`Group::ended_terms`](super::Group::ended_terms). One load.
    pub(crate) fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Acquire) != 0
    }

    /// Notes that all members know records of this level.
    pub(super) fn note_level(&self, level: Level) {
        self.level.fetch_max(level.0, Ordering::Relaxed);
        if let Some(server) = self.server() {
            server.engine.raise_level(level.0);
        }
    }

    /// Returns the level of records that all members know.
    pub(super) fn level(&self) -> Level {
        Level(self.level.load(Ordering::Relaxed))
    }

    /// Notes that memory has everything that was committed `age` ago, if that is known.
    pub(super) fn note_caught_up(&self, age: Option<Duration>) {
        if let Some(age) = age {
            let as_of = self.age_ms().saturating_sub(age.as_millis() as u64);
            self.fresh_ms.fetch_max(as_of, Ordering::Relaxed);
        }
    }

    /// Returns whether memory has everything that was committed a moment ago.
    pub(crate) fn is_fresh(&self) -> bool {
        let as_of = self.fresh_ms.load(Ordering::Relaxed);
        as_of > 0 && self.age_ms().saturating_sub(as_of) < FRESH.as_millis() as u64
    }

    fn age_ms(&self) -> u64 {
        self.clock.elapsed(self.began).as_millis() as u64
    }

    /// Keeps the log from being replaced while memory is loaded from it, until
    /// [`begin_with`](Self::begin_with) has been called.
    pub(crate) fn load(&self) -> MutexGuard<'_, ()> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with memory that has none of what was cut before.
    pub(crate) fn begin_with(&self, server: Weak<Shared>) {
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = server;
        // What the memory of before had says nothing of this one.
        self.fresh_ms.store(0, Ordering::Relaxed);
        let mut decisions = self.decisions();
        (decisions.end, decisions.cut, decisions.is_stopping) = (None, None, false);
    }

    /// The log has moved: there may be more to apply, unless memory leads.
    pub(crate) fn log_moved(&self) {
        if self.serving.load(Ordering::Acquire) != 0 {
            return;
        }
        self.decisions().has_moved = true;
        self.changed.notify_all();
    }

    /// Ends the thread of memory.
    pub(crate) fn stop(&self) {
        self.decisions().is_stopping = true;
        self.changed.notify_all();
    }

    /// Returns what memory is to do.
    pub(super) fn order(&self) -> Order {
        Self::order_of(&self.decisions())
    }

    fn order_of(decisions: &Decisions) -> Order {
        let Decisions { won, end, cut, is_stopping, .. } = *decisions;
        Order { won, end, cut, is_stopping }
    }

    /// Waits until the order is another than `done`, or the log moves, or `timeout` has passed.
    pub(super) fn wait(&self, done: Order, timeout: Duration) -> Order {
        let decisions = self.decisions();
        let waits = |decisions: &mut Decisions| !decisions.has_moved && Self::order_of(decisions) == done;
        let waited = self.changed.wait_timeout_while(decisions, timeout, waits);
        let (mut decisions, _) = waited.unwrap_or_else(PoisonError::into_inner);
        decisions.has_moved = false;
        Self::order_of(&decisions)
    }

    /// Notes that memory follows, and has nothing of what was cut up to now.
    pub(super) fn note_following(&self, order: Order) {
        let mut decisions = self.decisions();
        decisions.end = decisions.end.filter(|_| decisions.end != order.end);
        decisions.cut = decisions.cut.filter(|_| decisions.cut != order.cut);
    }

    /// Has memory lead by `lead` if `term` has not ended; then commands of the term run here. Nothing
    /// is written to the log meanwhile.
    pub(super) fn serve(&self, term: Term, lead: impl FnOnce()) {
        let mut decisions = self.decisions();
        // Under the lock: the end of the term comes before or behind.
        if decisions.won.is_none_or(|(won, _)| won != term) {
            return;
        }
        lead();
        decisions.end = None;
        self.serving.store(term.0, Ordering::Release);
        drop(decisions);
        say(&format!("this member leads the cluster, in term {term}"));
        if let Some(server) = self.server() {
            server.begin_term();
        }
    }

    /// Returns the server over the memory of now.
    pub(super) fn server(&self) -> Option<std::sync::Arc<Shared>> {
        self.server.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn decisions(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leadership {
    /// See [`TermListener::begin_term`](tidemark_cluster::TermListener::begin_term).
    pub(super) fn begin_term(&self, term: Term, lsn: Lsn) {
        self.decisions().won = Some((term, lsn));
        self.changed.notify_all();
    }

    /// See [`TermListener::end_term`](tidemark_cluster::TermListener::end_term).
    pub(super) fn end_term(&self) {
        let server = self.server();
        if let Some(server) = &server {
            server.count_ended_term();
        }
        {
            let mut decisions = self.decisions();
            decisions.won = None;
            // Behind the count: what sees that no term is served sees the count too.
            self.serving.store(0, Ordering::Release);
        }
        if let Some(server) = server {
            server.end_term();
        }
        self.changed.notify_all();
    }

    /// See [`TermListener::close_gate`](tidemark_cluster::TermListener::close_gate).
    pub(super) fn close_gate(&self) -> Result<(), String> {
        {
            // Under the lock: the term may end meanwhile.
            let _decisions = self.decisions();
            let term = self.serving.load(Ordering::Acquire);
            if term == 0 {
                return Err("this member does not lead, or has just begun to".to_owned());
            }
            self.serving.store(term | GATE_CLOSED, Ordering::Release);
        }
        let Some(server) = self.server() else { return Ok(()) };
        server.engine.pause_changes(server.clock.now_us()).map_err(|error| {
            self.open_gate();
            error.to_string()
        })
    }

    /// See [`TermListener::send_answers`](tidemark_cluster::TermListener::send_answers).
    pub(super) fn send_answers(&self) {
        if let Some(server) = self.server() {
            server.send_answers(ANSWERS_PATIENCE);
        }
    }

    /// See [`TermListener::open_gate`](tidemark_cluster::TermListener::open_gate).
    pub(super) fn open_gate(&self) {
        if let Some(server) = self.server() {
            server.engine.resume_changes();
        }
        let _decisions = self.decisions();
        self.serving.fetch_and(!GATE_CLOSED, Ordering::AcqRel);
    }

    /// See [`TermListener::end_log`](tidemark_cluster::TermListener::end_log).
    pub(super) fn end_log(&self, end: Lsn) {
        self.decisions().end.get_or_insert(end);
        self.changed.notify_all();
    }

    /// See [`TermListener::cut`](tidemark_cluster::TermListener::cut).
    pub(super) fn cut(&self, lsn: Lsn) {
        {
            let mut decisions = self.decisions();
            decisions.cut = Some(decisions.cut.map_or(lsn, |cut| cut.min(lsn)));
        }
        self.changed.notify_all();
    }
}

impl Leadership {
    /// See [`TermListener::install`](tidemark_cluster::TermListener::install). Waits until memory that is
    /// loaded at the moment has its data.
    pub(super) fn replace_log(&self, replace: &mut dyn FnMut()) {
        // Before: what memory finds in the log from now on says nothing.
        self.cut(Lsn::ZERO);
        let _loading = self.load();
        replace();
        // Memory that was loaded between the two is of the log of before.
        self.cut(Lsn::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::ManualClock;

    const IDLE: Order = Order { won: None, end: None, cut: None, is_stopping: false };

    fn soon(leadership: &Leadership, done: Order) -> Order {
        leadership.wait(done, Duration::ZERO)
    }

    #[test]
    fn commands_run_in_a_term_that_was_won_and_has_not_ended() {
        let leadership = Leadership::new(&Clock::System);
        let never = || panic!("memory must not lead");
        leadership.serve(Term(3), never);
        assert!(!leadership.serves(Term(3)), "it was not won");
        leadership.begin_term(Term(3), Lsn(9));
        assert!(!leadership.serves(Term(3)), "memory may be behind");
        assert_eq!(soon(&leadership, IDLE).won, Some((Term(3), Lsn(9))));
        leadership.serve(Term(3), || {});
        assert!(leadership.serves(Term(3)) && !leadership.serves(Term(4)) && !leadership.serves(Term(0)));
        assert!(leadership.is_serving());
        leadership.end_term();
        assert!(!leadership.serves(Term(3)) && !leadership.is_serving());
        leadership.serve(Term(3), never);
        assert!(!leadership.serves(Term(3)), "it is too late");
    }

    #[test]
    fn memory_is_fresh_as_of_a_time_that_is_known_and_near() {
        let manual = ManualClock::new();
        let leadership = Leadership::new(&Clock::from(&manual));
        manual.advance(Duration::from_secs(10));
        leadership.note_caught_up(None);
        assert!(!leadership.is_fresh(), "nothing is known");
        leadership.note_caught_up(Some(Duration::from_secs(3)));
        assert!(!leadership.is_fresh(), "it is too old");
        leadership.note_caught_up(Some(Duration::from_secs(1)));
        assert!(leadership.is_fresh());
        manual.advance(Duration::from_millis(900));
        assert!(leadership.is_fresh());
        manual.advance(Duration::from_millis(200));
        assert!(!leadership.is_fresh());
    }

    #[test]
    fn no_command_runs_while_the_gate_is_closed_and_memory_leads_on() {
        let leadership = Leadership::new(&Clock::System);
        let refused = leadership.close_gate().expect_err("it does not lead");
        assert!(refused.contains("does not lead"), "{refused}");
        leadership.begin_term(Term(3), Lsn(9));
        leadership.serve(Term(3), || {});
        assert!(leadership.admits(Term(3)));
        leadership.close_gate().expect("no command runs");
        assert!(!leadership.admits(Term(3)) && leadership.serves(Term(3)));
        leadership.open_gate();
        assert!(leadership.admits(Term(3)));
        // The term ends behind a closed gate, as when the lead was handed over.
        leadership.close_gate().expect("no command runs");
        leadership.end_term();
        assert!(!leadership.serves(Term(3)));
        leadership.open_gate();
        assert!(!leadership.admits(Term(3)) && !leadership.serves(Term(0)));
    }

    #[test]
    fn memory_that_led_ends_with_the_first_term_that_ended() {
        let leadership = Leadership::new(&Clock::System);
        leadership.begin_term(Term(1), Lsn(1));
        leadership.serve(Term(1), || {});
        leadership.end_term();
        leadership.end_log(Lsn(5));
        leadership.begin_term(Term(3), Lsn(20));
        leadership.end_term();
        leadership.end_log(Lsn(20));
        let order = leadership.order();
        assert_eq!(order.end, Some(Lsn(5)), "memory has nothing of the term between");
        leadership.note_following(order);
        assert_eq!(leadership.order(), IDLE);
    }

    #[test]
    fn a_cut_behind_what_memory_has_is_forgotten_but_no_later_one() {
        let leadership = Leadership::new(&Clock::System);
        leadership.cut(Lsn(9));
        let order = leadership.order();
        leadership.note_following(order);
        assert_eq!(leadership.order(), IDLE);
        leadership.cut(Lsn(7));
        leadership.note_following(order);
        assert_eq!(leadership.order().cut, Some(Lsn(7)));
    }

    #[test]
    fn the_lowest_cut_counts_until_memory_is_loaded_again() {
        let leadership = Leadership::new(&Clock::System);
        leadership.cut(Lsn(7));
        leadership.cut(Lsn(9));
        assert_eq!(leadership.order().cut, Some(Lsn(7)));
        leadership.begin_with(Weak::new());
        assert_eq!(leadership.order(), IDLE);
    }

    #[test]
    fn a_log_is_replaced_when_no_memory_is_loaded_from_it_and_memory_of_before_is_dropped() {
        let leadership = Leadership::new(&Clock::System);
        let is_replaced = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let loading = leadership.load();
            let replacing =
                scope.spawn(|| leadership.replace_log(&mut || is_replaced.store(true, Ordering::SeqCst)));
            while leadership.order().cut.is_none() {
                std::thread::yield_now();
            }
            assert!(!is_replaced.load(Ordering::SeqCst), "memory is being loaded");
            leadership.begin_with(Weak::new());
            drop(loading);
            replacing.join().expect("ends");
        });
        assert!(is_replaced.load(Ordering::SeqCst));
        assert_eq!(leadership.order().cut, Some(Lsn::ZERO), "that memory is of the log of before");
    }

    #[test]
    fn memory_wakes_for_each_decision_and_when_the_log_moves() {
        let leadership = Leadership::new(&Clock::System);
        std::thread::scope(|scope| {
            let decisions: [&(dyn Fn() + Sync); 4] = [
                &|| leadership.begin_term(Term(1), Lsn(1)),
                &|| leadership.cut(Lsn(5)),
                &|| leadership.log_moved(),
                &|| leadership.stop(),
            ];
            for decide in decisions {
                let (done, leadership) = (leadership.order(), &leadership);
                let waiter = scope.spawn(move || leadership.wait(done, Duration::from_mins(10)));
                decide();
                waiter.join().expect("it wakes");
            }
        });
    }
}
