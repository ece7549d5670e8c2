//! A counter that threads share.

use crate::account::{Account, Kind, Refusal};
use crate::base::Base;
use crate::compact::Compact;
use crate::heat;
use crate::ledger::{Ledger, Move};
use crate::lock;
use crate::piece::Piece;
use crate::promise::Promise;
use crate::slot;
use crate::striped::Striped;
use crate::sync::{AtomicI64, AtomicU64, Ordering};
use std::{fmt, ptr};

/// An [`Account`] that any number of threads can move concurrently.
///
/// # Two forms
/// A counter starts *cold*: 40 bytes, moved by one compare-and-swap. Under repeated contention it
/// becomes *striped*, for good: each of up to 63 threads gets its own piece of the window and moves
/// within it by plain loads and stores, in some 2 ns. A striped counter takes 8 KiB. In either form
/// nothing is admitted beyond the limit, and nothing is refused while units are free: unused pieces
/// are withdrawn before a refusal.
///
/// # What callers see
/// All moves, [`books`](Self::books) and all commit methods are linearizable.
/// [`state`](Self::state), [`position`](Self::position) and [`available`](Self::available) are
/// linearizable while the counter is cold. Of a striped counter they may include any subset of the
/// concurrent moves, each completely or not at all.
///
/// Nothing here allocates except the change of form. No method waits for other threads' moves,
/// except for the few instructions during which another thread holds the books.
///
/// ```
/// use tidemark_counter::{Counter, Kind, Promise, Refusal};
///
/// let counter = Counter::new(Kind::Quota { limit: 2 }, Promise::Relaxed { cap: 10 }, 0);
/// std::thread::scope(|threads| {
///     let taken: Vec<_> = (0..3).map(|_| threads.spawn(|| counter.take(1).is_ok())).collect();
///     let taken = taken.into_iter().map(|thread| thread.join().unwrap()).filter(|taken| *taken).count();
///     assert_eq!(taken, 2);
/// });
/// ```
pub struct Counter {
    /// The piece within which a cold counter moves; `LOCKED` while a thread holds the books,
    /// `ELSEWHERE` if the counter is striped.
    word: AtomicU64,
    base: Base<Striped>,
    limit: AtomicI64,
    progress: AtomicU64,
    settings: AtomicU64,
}

impl Counter {
    /// Creates a counter of which the store has `durable`.
    pub fn new(kind: Kind, promise: Promise, durable: i64) -> Self {
        Self::from_ledger(&Ledger { account: Account::new(kind, promise, durable), alarm: 0 })
    }

    fn from_ledger(ledger: &Ledger) -> Self {
        let counter = Self {
            word: AtomicU64::new(Piece::LOCKED),
            base: Base::new(0),
            limit: AtomicI64::new(0),
            progress: AtomicU64::new(0),
            settings: AtomicU64::new(0),
        };
        counter.put_back(ledger);
        counter
    }

    /// Takes `amount` units if the quota has them: all or none. As [`Account::take`].
    #[inline]
    pub fn take(&self, amount: u64) -> Result<(), Refusal> {
        self.carry_out(Move::Take(amount)).map(|_| ())
    }

    /// Refunds up to `amount` units and returns how many. As [`Account::refund`].
    #[inline]
    pub fn refund(&self, amount: u64) -> Result<u64, Refusal> {
        self.carry_out(Move::Refund(amount))
    }

    /// Moves by `delta` regardless of the limit. As [`Account::add`].
    #[inline]
    pub fn add(&self, delta: i64) -> Result<(), Refusal> {
        self.carry_out(Move::Add(delta)).map(|_| ())
    }

    #[inline]
    pub(crate) fn carry_out(&self, movement: Move) -> Result<u64, Refusal> {
        self.carry_out_at(slot::place, slot::current, movement)
    }

    /// As [`carry_out`](Self::carry_out), for a given slot: loom's threads are not system threads,
    /// so models pass theirs.
    #[cfg(all(test, loom))]
    pub(crate) fn carry_out_as(&self, slot: usize, movement: Move) -> Result<u64, Refusal> {
        self.carry_out_at(|| slot, || Some(slot), movement)
    }

    /// `place` returns the place of the calling thread's piece; `slot` returns its slot, which it
    /// allocates if necessary.
    #[inline]
    fn carry_out_at(
        &self,
        place: impl Fn() -> usize,
        slot: impl Fn() -> Option<usize>,
        movement: Move,
    ) -> Result<u64, Refusal> {
        match movement.delta() {
            Some(delta) if self.try_move(place, delta) => Ok(delta.unsigned_abs()),
            _ => self.carry_out_beyond(slot, movement),
        }
    }

    /// Moves within the current piece, if there is room and no other thread interferes.
    #[inline]
    fn try_move(&self, place: impl Fn() -> usize, delta: i64) -> bool {
        let word = self.word.load(Ordering::Acquire);
        if word == Piece::ELSEWHERE {
            return self.striped().try_move(place(), delta);
        }
        moved(word, delta).is_some_and(|moved| {
            self.word.compare_exchange(word, moved, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        })
    }

    #[cold]
    #[inline(never)]
    fn carry_out_beyond(&self, slot: impl Fn() -> Option<usize>, movement: Move) -> Result<u64, Refusal> {
        let mut word = self.word.load(Ordering::Acquire);
        let mut is_meeting = false;
        while let Some(delta) = movement.delta()
            && let Some(moved) = moved(word, delta)
        {
            match self.word.compare_exchange(word, moved, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => {
                    if is_meeting {
                        self.meet();
                    }
                    return Ok(delta.unsigned_abs());
                }
                Err(now) => (word, is_meeting) = (now, true),
            }
        }
        match lock::acquire(&self.word) {
            Piece::ELSEWHERE => self.striped().carry_out(slot(), movement),
            word => self.with_taken_out(word, |ledger| movement.carry_out(&mut ledger.account)),
        }
    }

    /// Records contention at the cold counter.
    fn meet(&self) {
        if heat::met_at(ptr::from_ref(self).addr()) {
            self.stripe();
        }
    }

    /// Reads or changes the books while no thread moves the counter.
    ///
    /// `act` must not use the counter, and must be short: other threads wait. A panic of `act`
    /// aborts the process.
    fn with<R>(&self, act: impl FnOnce(&mut Ledger) -> R) -> R {
        match lock::acquire(&self.word) {
            Piece::ELSEWHERE => self.striped().with(act),
            word => self.with_taken_out(word, act),
        }
    }

    fn with_taken_out<R>(&self, word: u64, act: impl FnOnce(&mut Ledger) -> R) -> R {
        let taken_out = lock::AbortOnUnwind;
        let mut ledger = self.compact().unpack(Piece::of(word));
        let result = act(&mut ledger);
        self.put_back(&ledger);
        taken_out.disarm();
        result
    }

    /// Returns the words of a cold counter. Called under its lock.
    fn compact(&self) -> Compact {
        Compact {
            base: self.base.number(),
            limit: self.limit.load(Ordering::Relaxed),
            progress: self.progress.load(Ordering::Relaxed),
            settings: self.settings.load(Ordering::Relaxed),
        }
    }

    /// Stores the books of a cold counter and releases its lock.
    fn put_back(&self, ledger: &Ledger) {
        let Some((compact, piece)) = Compact::pack(ledger, ledger.room(), ledger.is_due()) else {
            return self.put_elsewhere(ledger);
        };
        self.base.set_number(compact.base);
        self.limit.store(compact.limit, Ordering::Relaxed);
        self.progress.store(compact.progress, Ordering::Relaxed);
        self.settings.store(compact.settings, Ordering::Relaxed);
        lock::release(&self.word, piece.word());
    }

    /// As [`put_back`](Self::put_back), and makes the counter striped.
    #[cold]
    fn put_elsewhere(&self, ledger: &Ledger) {
        self.base.set_place(Box::new(Striped::new(ledger)));
        lock::release(&self.word, Piece::ELSEWHERE);
    }

    #[inline]
    #[allow(unsafe_code, reason = "see `Base`")]
    fn striped(&self) -> &Striped {
        // SAFETY: callers have read `ELSEWHERE` from the word by an acquiring load; it is stored
        // after the pointer.
        unsafe { self.base.thing() }
    }

    /// Makes the counter striped now, without waiting for contention.
    pub fn stripe(&self) {
        match lock::acquire(&self.word) {
            Piece::ELSEWHERE => {}
            word => self.put_elsewhere(&self.compact().unpack(Piece::of(word))),
        }
    }

    /// Whether the counter is striped.
    #[inline]
    pub fn is_striped(&self) -> bool {
        self.word.load(Ordering::Acquire) == Piece::ELSEWHERE
    }

    /// Returns the units admitted less those refunded. As [`Account::position`]; see
    /// [above](Self#what-callers-see).
    pub fn position(&self) -> i64 {
        self.state().position()
    }

    /// Returns the most units that a take may request, `None` for a plain counter. As
    /// [`Account::available`]; see [above](Self#what-callers-see).
    pub fn available(&self) -> Option<i64> {
        self.state().available()
    }

    /// Returns the books without blocking movers. As [`books`](Self::books) while the counter is
    /// cold. Of a striped counter, *D*, *F* and the limit are consistent, *A* includes all moves
    /// that have ended before, and any subset of the concurrent ones; it costs some nanoseconds for
    /// each thread that moves the counter.
    pub fn state(&self) -> Account {
        let word = self.word.load(Ordering::Acquire);
        if word == Piece::ELSEWHERE {
            return self.striped().glance();
        }
        if word != Piece::LOCKED
            && self.word.compare_exchange(word, Piece::LOCKED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            let ledger = self.compact().unpack(Piece::of(word));
            lock::release(&self.word, word);
            return ledger.account;
        }
        // Any number of threads can read a striped counter concurrently.
        self.meet();
        self.with_state()
    }

    /// As [`state`](Self::state), but waits for the lock.
    #[cold]
    fn with_state(&self) -> Account {
        match lock::acquire(&self.word) {
            Piece::ELSEWHERE => self.striped().glance(),
            word => self.with_taken_out(word, |ledger| ledger.account.clone()),
        }
    }

    /// Returns a consistent snapshot of the books. Of a striped counter this withdraws all pieces,
    /// which takes some microseconds.
    pub fn books(&self) -> Account {
        self.with(|ledger| ledger.account.clone())
    }

    /// Returns what a crash may do to the counter, as of the last access to the books.
    #[inline]
    pub fn promise(&self) -> Promise {
        if self.is_striped() {
            self.striped().promise()
        } else {
            Compact::promise(self.settings.load(Ordering::Relaxed))
        }
    }

    /// Whether the open net has reached the alarm, as of the last access to the books. The first
    /// move that reaches the alarm accesses them, so it is not missed.
    #[inline]
    pub fn is_due(&self) -> bool {
        if self.is_striped() {
            self.striped().is_due()
        } else {
            Compact::is_due(self.settings.load(Ordering::Relaxed))
        }
    }

    /// Sets the number of open units from which the counter [is due](Self::is_due); 0 for never.
    pub fn set_alarm(&self, units: u64) {
        self.with(|ledger| ledger.alarm = units);
    }

    /// Reads or changes the books atomically. Costs as much as [`books`](Self::books).
    pub(crate) fn with_books<R>(&self, act: impl FnOnce(&mut Account) -> R) -> R {
        self.with(|ledger| act(&mut ledger.account))
    }

    /// As [`Account::seal`].
    pub fn seal(&self) -> Option<i64> {
        self.with_books(Account::seal)
    }

    /// As [`Account::seal_for`].
    pub fn seal_for(&self, delta: i64) -> Option<i64> {
        self.with_books(|books| books.seal_for(delta))
    }

    /// As [`Account::acknowledge`].
    pub fn acknowledge(&self) {
        self.with_books(Account::acknowledge);
    }

    /// As [`Account::reject`].
    pub fn reject(&self) {
        self.with_books(Account::reject);
    }

    /// As [`Account::set_kind`].
    pub fn set_kind(&self, kind: Kind) {
        self.with_books(|books| books.set_kind(kind));
    }

    /// As [`Account::set_promise`].
    pub fn set_promise(&self, promise: Promise) {
        self.with_books(|books| books.set_promise(promise));
    }
}

/// Returns a cold counter's word after a move, if there is room and the counter is not locked.
#[inline]
fn moved(word: u64, delta: i64) -> Option<u64> {
    let piece = (word < Piece::ELSEWHERE).then(|| Piece::of(word))?;
    Some(piece.moved(delta)?.word())
}

impl Drop for Counter {
    #[allow(unsafe_code, reason = "see `Base`")]
    fn drop(&mut self) {
        if self.is_striped() {
            // SAFETY: as in `striped`, and `self` is borrowed exclusively.
            unsafe { self.base.free() };
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("books", &self.books())
            .field("is_striped", &self.is_striped())
            .finish()
    }
}
