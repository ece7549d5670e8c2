//! The form of a counter under contention: each thread has its own piece of the window.
//!
//! The rest of the window is one word, the middle, which is also the lock. A thread that runs out
//! of its own piece takes from the middle. If that is not enough, it withdraws all pieces and the
//! books decide. Near its limit the counter is therefore one word, and nothing is refused while a
//! unit is free.

use crate::account::{Account, Kind, Refusal};
use crate::cell::{Cell, between};
use crate::ledger::{Ledger, Move};
use crate::lock;
use crate::piece::Piece;
use crate::promise::Promise;
use crate::slot::{self, PLACES};
use crate::sync::{AtomicBool, AtomicI64, AtomicU64, Ordering, fence};
use std::array;

/// Smallest piece that is handed out. Units.
const LEAST: u32 = if cfg!(loom) { 1 } else { 16 };

/// Number of attempts of an optimistic reader before it takes the lock.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 16 };

/// The position is `base` plus what may be refunded of the middle's piece and of the pieces in open
/// cells.
#[derive(Debug)]
pub(crate) struct Striped {
    /// One for each slot, and `UNASSIGNED`, which is never opened.
    cells: [Cell; PLACES],
    middle: AtomicU64,
    /// Seqlock: odd while a writer holds the lock. A read is consistent if the value is even and
    /// unchanged across it.
    version: AtomicU64,
    /// One bit for each open cell. This field and all below are written under the lock.
    open: AtomicU64,
    base: AtomicI64,
    /// `i64::MAX` if there is no limit.
    limit: AtomicI64,
    is_exact: AtomicBool,
    slack: AtomicU64,
    durable: AtomicI64,
    sealed: AtomicI64,
    alarm: AtomicU64,
    is_due: AtomicBool,
}

impl Striped {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        tidemark_barrier::prepare();
        let striped = Self {
            cells: array::from_fn(|_| Cell::new()),
            middle: AtomicU64::new(Piece::LOCKED),
            version: AtomicU64::new(1),
            open: AtomicU64::new(0),
            base: AtomicI64::new(0),
            limit: AtomicI64::new(0),
            is_exact: AtomicBool::new(false),
            slack: AtomicU64::new(0),
            durable: AtomicI64::new(0),
            sealed: AtomicI64::new(0),
            alarm: AtomicU64::new(0),
            is_due: AtomicBool::new(false),
        };
        let middle = striped.put_back(ledger);
        striped.release(middle);
        striped
    }

    /// Moves within the piece at the calling thread's place, if there is room.
    #[inline]
    pub(crate) fn try_move(&self, place: usize, delta: i64) -> bool {
        self.cells[place % PLACES].try_move(delta)
    }

    /// Moves the counter for a thread with `slot` whose [`try_move`](Self::try_move) has failed.
    pub(crate) fn carry_out(&self, slot: Option<usize>, movement: Move) -> Result<u64, Refusal> {
        let is_under_way = slot.is_some_and(|slot| self.cells[slot].is_under_way());
        if !is_under_way && let Some(delta) = movement.delta() {
            let mut word = self.middle.load(Ordering::Acquire);
            while word != Piece::LOCKED {
                let middle = Piece::of(word);
                let Some(moved) = middle.moved(delta) else { break };
                // If the middle has enough for a piece, opening one comes first.
                if slot.is_some_and(|slot| self.share(slot, middle, delta).is_some()) {
                    break;
                }
                match self.middle.compare_exchange(word, moved.word(), Ordering::SeqCst, Ordering::Acquire) {
                    Ok(_) => return Ok(delta.unsigned_abs()),
                    Err(now) => word = now,
                }
            }
        }
        self.carry_out_locked(slot, movement, is_under_way)
    }

    fn carry_out_locked(
        &self,
        slot: Option<usize>,
        movement: Move,
        is_under_way: bool,
    ) -> Result<u64, Refusal> {
        let mut middle = self.acquire();
        let taken_out = lock::AbortOnUnwind;
        if let Some(slot) = slot {
            if is_under_way && self.cells[slot].resolve() {
                self.release(middle);
                let delta = movement.delta().expect("a move within a piece has its amount in 64 bits");
                taken_out.disarm();
                return Ok(delta.unsigned_abs());
            }
            if self.is_open(slot) {
                middle = self.close_own(slot, middle);
            }
        }
        let moved = movement.delta().and_then(|delta| Some((delta, middle.moved(delta)?)));
        let result = if let Some((delta, moved)) = moved {
            middle = moved;
            Ok(delta.unsigned_abs())
        } else {
            middle = self.close_all(middle);
            let mut ledger = self.take_out(middle);
            let result = movement.carry_out(&mut ledger.account);
            middle = self.put_back(&ledger);
            result
        };
        // A refused thread gets no piece: the next refused one would have to withdraw it.
        if let (Some(slot), Some(delta), Ok(_)) = (slot, movement.delta(), &result) {
            middle = self.open(slot, middle, delta);
        }
        self.release(middle);
        taken_out.disarm();
        result
    }

    /// Reads or changes the books while no thread moves the counter.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Ledger) -> R) -> R {
        let middle = self.acquire();
        let taken_out = lock::AbortOnUnwind;
        let middle = self.close_all(middle);
        let mut ledger = self.take_out(middle);
        let result = act(&mut ledger);
        let middle = self.put_back(&ledger);
        self.release(middle);
        taken_out.disarm();
        result
    }

    /// Returns the books without closing cells or blocking movers. Any subset of the concurrent
    /// moves in different cells may be included.
    pub(crate) fn glance(&self) -> Account {
        (0..LOOKS).find_map(|_| self.look()).unwrap_or_else(|| {
            let middle = self.acquire();
            let account = self.account(middle);
            self.release(middle);
            account
        })
    }

    /// Returns the books, or `None` if the lock was taken in between.
    fn look(&self) -> Option<Account> {
        let version = self.version.load(Ordering::Acquire);
        let middle = self.middle.load(Ordering::Acquire);
        if version % 2 == 1 || middle == Piece::LOCKED {
            return None;
        }
        let account = self.account(Piece::of(middle));
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some(account)
    }

    fn acquire(&self) -> Piece {
        let middle = Piece::of(lock::acquire(&self.middle));
        self.version.store(self.version.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // A reader that sees any change made under the lock also sees the odd version.
        fence(Ordering::Release);
        middle
    }

    fn release(&self, middle: Piece) {
        self.version.store(self.version.load(Ordering::Relaxed) + 1, Ordering::Release);
        lock::release(&self.middle, middle.word());
    }

    pub(crate) fn promise(&self) -> Promise {
        let slack = self.slack.load(Ordering::Relaxed);
        if self.is_exact.load(Ordering::Relaxed) {
            Promise::Exact { block: slack }
        } else {
            Promise::Relaxed { cap: slack }
        }
    }

    /// As of the last access to the books.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    fn is_open(&self, slot: usize) -> bool {
        self.open.load(Ordering::Relaxed) & 1 << slot != 0
    }

    fn kind(&self) -> Kind {
        match self.limit.load(Ordering::Relaxed) {
            i64::MAX => Kind::Plain,
            limit => Kind::Quota { limit },
        }
    }

    /// Returns the share of the middle that the owner of a cell would get, unless it is too small
    /// for moves like the one by `delta`.
    fn share(&self, slot: usize, middle: Piece, delta: i64) -> Option<Piece> {
        let others = self.open.load(Ordering::Relaxed) & !(1 << slot);
        let shares = 2 * (others.count_ones() + 1);
        let (down, up) = (middle.down / shares, middle.up() / shares);
        (if delta < 0 { down } else { up } >= LEAST).then_some(Piece { down, span: down + up })
    }

    /// Opens the cell with its share, if that is large enough.
    fn open(&self, slot: usize, middle: Piece, delta: i64) -> Piece {
        assert!(
            slot != slot::UNASSIGNED && !self.is_open(slot),
            "the cell {slot} is open, or belongs to no thread"
        );
        let Some(piece) = self.share(slot, middle, delta) else { return middle };
        self.cells[slot].open(piece);
        self.open.store(self.open.load(Ordering::Relaxed) | 1 << slot, Ordering::Relaxed);
        Piece { down: middle.down - piece.down, span: middle.span - piece.span }
    }

    fn close_own(&self, slot: usize, middle: Piece) -> Piece {
        self.open.store(self.open.load(Ordering::Relaxed) & !(1 << slot), Ordering::Relaxed);
        middle.with(self.cells[slot].close())
    }

    /// Withdraws all pieces.
    fn close_all(&self, mut middle: Piece) -> Piece {
        let open = self.open.load(Ordering::Relaxed);
        if open == 0 {
            return middle;
        }
        let mut sizes = [0; PLACES];
        bits(open).for_each(|slot| sizes[slot] = self.cells[slot].withdraw());
        between();
        for slot in bits(open) {
            middle = middle.with(self.cells[slot].settle(sizes[slot]));
        }
        self.open.store(0, Ordering::Relaxed);
        middle
    }

    /// Returns the books. All pieces must be in the middle.
    fn take_out(&self, middle: Piece) -> Ledger {
        let open = self.open.load(Ordering::Relaxed);
        assert!(open == 0, "the books are taken out while the cells {open:#x} are open");
        Ledger { account: self.account(middle), alarm: self.alarm.load(Ordering::Relaxed) }
    }

    /// Returns the account, including the moves that owners of open cells have made by now.
    fn account(&self, middle: Piece) -> Account {
        let (durable, sealed) = (self.durable.load(Ordering::Relaxed), self.sealed.load(Ordering::Relaxed));
        let taken: u64 = bits(self.open.load(Ordering::Relaxed)).map(|slot| self.cells[slot].at()).sum();
        // An optimistic reader may see inconsistent words here, whose sum may overflow; it detects
        // that afterwards.
        let refundable = taken.wrapping_add(u64::from(middle.down)).cast_signed();
        let position = self.base.load(Ordering::Relaxed).wrapping_add(refundable);
        let open = position.wrapping_sub(durable).wrapping_sub(sealed);
        Account::from_parts(self.kind(), self.promise(), durable, sealed, open)
    }

    fn put_back(&self, ledger: &Ledger) -> Piece {
        let Ledger { account, alarm } = ledger;
        let (down, up) = ledger.room();
        let middle = Piece::cut(down, up);
        let limit = match account.kind() {
            Kind::Plain => i64::MAX,
            Kind::Quota { limit } => limit,
        };
        let (is_exact, slack) = match account.promise() {
            Promise::Relaxed { cap } => (false, cap),
            Promise::Exact { block } => (true, block),
        };
        self.limit.store(limit, Ordering::Relaxed);
        self.is_exact.store(is_exact, Ordering::Relaxed);
        self.slack.store(slack, Ordering::Relaxed);
        self.durable.store(account.durable(), Ordering::Relaxed);
        self.sealed.store(account.sealed(), Ordering::Relaxed);
        self.alarm.store(*alarm, Ordering::Relaxed);
        self.is_due.store(ledger.is_due(), Ordering::Relaxed);
        self.base.store(account.position() - i64::from(middle.down), Ordering::Relaxed);
        middle
    }
}

/// Returns the positions of the set bits.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place)
    })
}
