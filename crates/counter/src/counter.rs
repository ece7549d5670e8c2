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

/// An [`Account`] that any number of threads move at once.
///
/// # Two forms
/// A counter is *cold* at first: 40 bytes, moved by one compare-and-swap. One at which threads keep meeting each other becomes
/// *striped*, for good: each of up to 63 threads gets a piece of what is left for itself, and moves within it by plain loads and
/// stores, some 2 ns; 8 KiB. Nothing is admitted beyond the limit and nothing is refused while units are free, in either form:
/// pieces that nobody uses are taken back before a refusal.
///
/// # What callers see
/// All moves, [`books`](Self::books) and whatever concerns commits are linearizable: as if they happened one after the
/// other, each between its call and its return. [`state`](Self::state), [`position`](Self::position) and
/// [`available`](Self::available) are so while the counter is cold; of a striped one they may have seen any of the moves that go on at the same time and not seen others, each
/// completely or not at all.
///
/// Nothing here allocates but the change of form. No method waits for other threads' moves, but for the few instructions in which
/// another one has the books.
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
    /// The piece within which the cold counter is moved; `LOCKED` while somebody has the books, `ELSEWHERE` if it is striped.
    word: AtomicU64,
    base: Base<Striped>,
    limit: AtomicI64,
    progress: AtomicU64,
    settings: AtomicU64,
}

impl Counter {
    /// A counter of which the store has `durable`, and nothing else is known.
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

    /// Gives back up to `amount` units and says how many. As [`Account::refund`].
    #[inline]
    pub fn refund(&self, amount: u64) -> Result<u64, Refusal> {
        self.carry_out(Move::Refund(amount))
    }

    /// Moves by `delta` whatever the limit says. As [`Account::add`].
    #[inline]
    pub fn add(&self, delta: i64) -> Result<(), Refusal> {
        self.carry_out(Move::Add(delta)).map(|_| ())
    }

    #[inline]
    pub(crate) fn carry_out(&self, movement: Move) -> Result<u64, Refusal> {
        self.carry_out_at(slot::place, slot::current, movement)
    }

    /// As [`carry_out`](Self::carry_out), by the thread that has this slot: models say which, because their threads are none of the
    /// system's.
    #[cfg(all(test, loom))]
    pub(crate) fn carry_out_as(&self, slot: usize, movement: Move) -> Result<u64, Refusal> {
        self.carry_out_at(|| slot, || Some(slot), movement)
    }

    /// `place` says where the calling thread has its own piece, and `slot` which is its slot, asked for if it has not been.
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

    /// Moves within the piece at hand, if there is room and no other thread comes in between.
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

    /// Notes that threads have met at the cold counter.
    fn meet(&self) {
        if heat::met_at(ptr::from_ref(self).addr()) {
            self.stripe();
        }
    }

    /// Looks into the books, or changes them, while nobody moves.
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

    /// The words of a cold counter, under its lock.
    fn compact(&self) -> Compact {
        Compact {
            base: self.base.number(),
            limit: self.limit.load(Ordering::Relaxed),
            progress: self.progress.load(Ordering::Relaxed),
            settings: self.settings.load(Ordering::Relaxed),
        }
    }

    /// Ends the lock of a cold counter.
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

    /// As [`put_back`](Self::put_back), from here on in the other form.
    #[cold]
    fn put_elsewhere(&self, ledger: &Ledger) {
        self.base.set_place(Box::new(Striped::new(ledger)));
        lock::release(&self.word, Piece::ELSEWHERE);
    }

    #[inline]
    #[allow(unsafe_code, reason = "see `Base`")]
    fn striped(&self) -> &Striped {
        // SAFETY: callers have read `ELSEWHERE` from the word by an acquiring load, which is stored behind the place.
        unsafe { self.base.thing() }
    }

    /// Makes it striped now, instead of when threads have met each other at it often enough.
    pub fn stripe(&self) {
        match lock::acquire(&self.word) {
            Piece::ELSEWHERE => {}
            word => self.put_elsewhere(&self.compact().unpack(Piece::of(word))),
        }
    }

    /// Whether it is striped.
    #[inline]
    pub fn is_striped(&self) -> bool {
        self.word.load(Ordering::Acquire) == Piece::ELSEWHERE
    }

    /// What was admitted less what was refunded. As [`Account::position`], see [above](Self#what-callers-see).
    pub fn position(&self) -> i64 {
        self.state().position()
    }

    /// What a take may ask for at most, `None` for a plain counter. As [`Account::available`], see [above](Self#what-callers-see).
    pub fn available(&self) -> Option<i64> {
        self.state().available()
    }

    /// The books without stopping anybody: as [`books`](Self::books) while the counter is cold; of a striped one with any of the
    /// moves that go on at the same time and without others, and some nanoseconds for each thread that moves it. *D*, *F* and the
    /// limit belong together, and all moves that have ended before are in *A*.
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
        // A striped counter is read by any number of threads at once.
        self.meet();
        self.with_state()
    }

    /// As [`state`](Self::state), waiting for others.
    #[cold]
    fn with_state(&self) -> Account {
        match lock::acquire(&self.word) {
            Piece::ELSEWHERE => self.striped().glance(),
            word => self.with_taken_out(word, |ledger| ledger.account.clone()),
        }
    }

    /// The books as they are at one moment. Of a striped counter this takes back all pieces, some microseconds.
    pub fn books(&self) -> Account {
        self.with(|ledger| ledger.account.clone())
    }

    /// What a crash may do to it, as of the last time that somebody had the books.
    #[inline]
    pub fn promise(&self) -> Promise {
        if self.is_striped() {
            self.striped().promise()
        } else {
            Compact::promise(self.settings.load(Ordering::Relaxed))
        }
    }

    /// Whether the open net has reached the alarm, as of the last time that somebody had the books; it is not missed, as the first
    /// move that reaches it has them.
    #[inline]
    pub fn is_due(&self) -> bool {
        if self.is_striped() {
            self.striped().is_due()
        } else {
            Compact::is_due(self.settings.load(Ordering::Relaxed))
        }
    }

    /// Says from how many open units on the counter [is due](Self::is_due): 0 for never.
    pub fn set_alarm(&self, units: u64) {
        self.with(|ledger| ledger.alarm = units);
    }

    /// Looks at the books, or changes them, at one moment. As [`books`](Self::books) in cost.
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

/// A cold counter's word behind a move, if there is room for it and nobody has the books.
#[inline]
fn moved(word: u64, delta: i64) -> Option<u64> {
    let piece = (word < Piece::ELSEWHERE).then(|| Piece::of(word))?;
    Some(piece.moved(delta)?.word())
}

impl Drop for Counter {
    #[allow(unsafe_code, reason = "see `Base`")]
    fn drop(&mut self) {
        if self.is_striped() {
            // SAFETY: as in `striped`, and nobody else has the counter any more.
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
