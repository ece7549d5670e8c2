//! The form of a counter that many threads move at once: each has a piece of the window for itself.
//!
//! What is left of the window lies in one word in the middle, which is the lock as well. Whoever runs out of its own piece takes
//! from there; whoever finds too little there takes back all pieces, and then the books decide. So near its limit the counter is
//! one word, and nothing is refused while any unit is free.

use crate::account::{Account, Kind, Refusal};
use crate::cell::{Attempt, Cell, Returned, between};
use crate::ledger::{Ledger, Move};
use crate::lock;
use crate::piece::Piece;
use crate::promise::Promise;
use crate::slot::SLOTS;
use crate::sync::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// A piece that would be smaller than this is not handed out. Units.
const LEAST: u32 = if cfg!(loom) { 1 } else { 16 };

/// The position is `base`, and the lower part of the middle's piece, and what was taken in open cells.
#[derive(Debug)]
pub(crate) struct Striped {
    middle: AtomicU64,
    /// One bit for each cell. All from here on under the lock.
    open: AtomicU64,
    base: AtomicI64,
    /// `i64::MAX` if there is none.
    limit: AtomicI64,
    is_exact: AtomicBool,
    slack: AtomicU64,
    durable: AtomicI64,
    sealed: AtomicI64,
    alarm: AtomicU64,
    is_due: AtomicBool,
    cells: Box<[Cell]>,
}

impl Striped {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        tidemark_barrier::prepare();
        let striped = Self {
            middle: AtomicU64::new(Piece::LOCKED),
            open: AtomicU64::new(0),
            base: AtomicI64::new(0),
            limit: AtomicI64::new(0),
            is_exact: AtomicBool::new(false),
            slack: AtomicU64::new(0),
            durable: AtomicI64::new(0),
            sealed: AtomicI64::new(0),
            alarm: AtomicU64::new(0),
            is_due: AtomicBool::new(false),
            cells: (0..SLOTS).map(|_| Cell::new()).collect(),
        };
        let middle = striped.put_back(ledger);
        lock::release(&striped.middle, middle.word());
        striped
    }

    /// Moves, as a thread that has `slot`.
    #[inline]
    pub(crate) fn carry_out(&self, slot: Option<usize>, movement: Move) -> Result<u64, Refusal> {
        let Some(delta) = movement.delta() else {
            return self.carry_out_locked(slot, movement, false);
        };
        let mut is_under_way = false;
        if let Some(slot) = slot {
            match self.cells[slot].try_move(delta) {
                Attempt::Done => return Ok(delta.unsigned_abs()),
                Attempt::Short => {}
                Attempt::Withdrawn => is_under_way = true,
            }
        }
        self.carry_out_together(slot, movement, delta, is_under_way)
    }

    /// In the middle, where that is not worth a piece of one's own.
    #[cold]
    fn carry_out_together(
        &self,
        slot: Option<usize>,
        movement: Move,
        delta: i64,
        is_under_way: bool,
    ) -> Result<u64, Refusal> {
        if !is_under_way {
            let mut word = self.middle.load(Ordering::Acquire);
            while word != Piece::LOCKED {
                let middle = Piece::of(word);
                let Some(moved) = middle.moved(delta) else { break };
                if slot.is_some() && middle.span / 4 >= LEAST {
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
        let mut middle = Piece::of(lock::acquire(&self.middle));
        if let Some(slot) = slot {
            if is_under_way && self.cells[slot].resolve() {
                lock::release(&self.middle, middle.word());
                return Ok(movement.delta().map_or(0, i64::unsigned_abs));
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
        if let Some(slot) = slot {
            middle = self.open(slot, middle);
        }
        lock::release(&self.middle, middle.word());
        result
    }

    /// Looks into the books, or changes them, while nobody moves.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Ledger) -> R) -> R {
        let middle = self.close_all(Piece::of(lock::acquire(&self.middle)));
        let mut ledger = self.take_out(middle);
        let result = act(&mut ledger);
        let middle = self.put_back(&ledger);
        lock::release(&self.middle, middle.word());
        result
    }

    /// The position and the limit, if there is one, without closing anything: of moves in different cells that go on at the same
    /// time any may be in it and any not.
    pub(crate) fn glance(&self) -> (i64, Kind) {
        let word = lock::acquire(&self.middle);
        let cells = self.cells.iter().enumerate().filter(|(slot, _)| self.is_open(*slot));
        let position = self.base.load(Ordering::Relaxed)
            + i64::from(Piece::of(word).down)
            + cells.map(|(_, cell)| cell.taken()).sum::<i64>();
        let kind = self.kind();
        lock::release(&self.middle, word);
        (position, kind)
    }

    pub(crate) fn promise(&self) -> Promise {
        let slack = self.slack.load(Ordering::Relaxed);
        if self.is_exact.load(Ordering::Relaxed) {
            Promise::Exact { block: slack }
        } else {
            Promise::Relaxed { cap: slack }
        }
    }

    /// As of the last look into the books.
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

    /// Hands the owner of a cell its share of what lies in the middle, unless that is too little to be worth it.
    fn open(&self, slot: usize, middle: Piece) -> Piece {
        let open = self.open.load(Ordering::Relaxed);
        debug_assert!(open & 1 << slot == 0);
        let shares = 2 * (open.count_ones() + 1);
        let (down, up) = (middle.down / shares, middle.up() / shares);
        if down + up < LEAST {
            return middle;
        }
        self.cells[slot].open(-i64::from(down), i64::from(up));
        self.open.store(open | 1 << slot, Ordering::Relaxed);
        self.base.store(self.base.load(Ordering::Relaxed) + i64::from(down), Ordering::Relaxed);
        Piece { down: middle.down - down, span: middle.span - down - up }
    }

    fn close_own(&self, slot: usize, middle: Piece) -> Piece {
        self.open.store(self.open.load(Ordering::Relaxed) & !(1 << slot), Ordering::Relaxed);
        self.returned(middle, self.cells[slot].close())
    }

    /// Takes back all pieces.
    fn close_all(&self, mut middle: Piece) -> Piece {
        let open = self.open.load(Ordering::Relaxed);
        if open == 0 {
            return middle;
        }
        let mut bounds = [(0, 0); SLOTS];
        let slots = || (0..SLOTS).filter(|slot| open & 1 << slot != 0);
        slots().for_each(|slot| bounds[slot] = self.cells[slot].withdraw());
        between();
        for slot in slots() {
            middle = self.returned(middle, self.cells[slot].settle(bounds[slot]));
        }
        self.open.store(0, Ordering::Relaxed);
        middle
    }

    /// The middle's piece together with one that comes back to it.
    fn returned(&self, middle: Piece, piece: Returned) -> Piece {
        self.base.store(self.base.load(Ordering::Relaxed) + piece.low, Ordering::Relaxed);
        Piece {
            down: middle.down + (piece.taken - piece.low) as u32,
            span: middle.span + (piece.high - piece.low) as u32,
        }
    }

    /// The books. All pieces lie in the middle.
    fn take_out(&self, middle: Piece) -> Ledger {
        debug_assert_eq!(self.open.load(Ordering::Relaxed), 0);
        let (durable, sealed) = (self.durable.load(Ordering::Relaxed), self.sealed.load(Ordering::Relaxed));
        let position = self.base.load(Ordering::Relaxed) + i64::from(middle.down);
        let account =
            Account::from_parts(self.kind(), self.promise(), durable, sealed, position - durable - sealed);
        Ledger { account, alarm: self.alarm.load(Ordering::Relaxed) }
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
