//! Moving and committing counters.
//!
//! A move changes only volatile state and writes no record. When a promise or threshold requires a
//! commit, the command that notices it writes one record with the change of the committed position.
//! The record has the form `COUNTER.ADD key amount DURABLE`; its replay, where nothing is
//! uncommitted, changes the committed position by the same amount. For an exact counter it may end
//! with `DOUBT units`: that many units up to the new position may not have been granted if no
//! further record follows.

use super::Keys;
use crate::error::CommandError;
use crate::keyspace::{Mover, hash};
use crate::value::{Counter, Object, Terms};
use tidemark_counter::{Account, Kind, MAX, Promise, Refusal};
use tidemark_log::Lsn;

/// Command name of a commit's record.
const COMMITTED: &str = "counter.add";

/// Keyword after the amount in a commit's record.
const DURABLE: &[u8] = b"DURABLE";

/// Keyword before the units in doubt.
const DOUBT: &[u8] = b"DOUBT";

/// Result of an attempt to move a counter.
pub(crate) struct Moved<R> {
    /// Result of the attempt; never [`Refusal::Unsettled`].
    pub(crate) outcome: Result<R, Refusal>,
    /// The account afterwards.
    pub(crate) account: Account,
}

/// Target of a commit.
#[derive(Clone, Copy)]
struct Target {
    /// Position to commit.
    at: i64,
    /// How far below that position an exact counter may lie without another record. Units.
    allowance: u64,
}

/// Result of settling a counter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Settled {
    /// Change of the committed position.
    pub(crate) committed: i64,
    /// Units that were in doubt and no longer count as used.
    pub(crate) given_back: u64,
    /// Whether a record was written.
    pub(crate) is_logged: bool,
}

/// What a move requires in addition to itself.
struct Consequence {
    /// Change of the committed position.
    committed: i64,
    /// Units in doubt for the record; `None` if no record is needed.
    record: Option<u64>,
    /// Previous and new due time in the list of uncommitted counters, if the place changes.
    listed: Option<(u64, u64)>,
    /// Record on which the reply depends.
    lease: Lsn,
    is_exact: bool,
}

impl Keys<'_> {
    /// Returns a counter and its [`account`](Self::account).
    pub(crate) fn counter(&self, key: &[u8]) -> Result<Option<(Account, &Counter)>, CommandError> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let Some(Object::Counter(counter)) = entry.object() else { return Err(CommandError::WrongType) };
        Ok(Some((self.account(counter), counter)))
    }

    /// A counter's account as the reader sees it: the current one for a client, the logged one for
    /// a watched read.
    pub(crate) fn account(&self, counter: &Counter) -> Account {
        if self.sees_logged() { counter.logged_account() } else { counter.account() }
    }

    /// Moves a counter, and commits what its promise, its threshold or the client requires. `None`
    /// if the key does not exist.
    ///
    /// May call `attempt` twice; the second time, only the limit and the range can refuse it. While
    /// the log takes no records, a move that needs no commit is still possible.
    #[inline]
    pub(crate) fn move_counter<R>(
        &mut self,
        key: &[u8],
        attempt: impl Fn(&mut Account) -> Result<R, Refusal>,
    ) -> Result<Option<Moved<R>>, CommandError> {
        let may_log = self.refusal().is_none();
        if may_log {
            self.drop_expired(key);
        } else if self.has_expired(key) {
            return Ok(None);
        }
        let (hash, clock, now_ms) = (hash(key), self.clock(), self.now_ms());
        let (wants_durable, interval_ms) = (self.wants_durable(), self.committing().interval_ms());
        let db = usize::from(self.db());
        let (database, counted) = self.shard_mut(key).counting(db);
        let Some(entry) = database.get_mut(hash, key) else { return Ok(None) };
        entry.touch(clock);
        let Some(Object::Counter(counter)) = entry.object_mut() else { return Err(CommandError::WrongType) };
        let mut account = counter.account();
        let before = account.position();
        let mut outcome = attempt(&mut account);
        let mut target: Option<Target> = None;
        match outcome {
            Err(Refusal::Unsettled) => {
                if !may_log {
                    self.committing().count_failed();
                    return self.check_admitted().map(|()| None);
                }
                let anywhere = Promise::Relaxed { cap: MAX.unsigned_abs() };
                account = Account::resume(counter.kind(), anywhere, before, 0);
                outcome = attempt(&mut account);
                assert!(
                    !matches!(outcome, Err(Refusal::Unsettled)),
                    "a promise without bounds is asked to be settled at {before}"
                );
                target = outcome.is_ok().then(|| committed_for(account.position(), counter));
            }
            Ok(_) if !account.is_settled() => {
                if !may_log {
                    self.committing().count_failed();
                    return self.check_admitted().map(|()| None);
                }
                target = Some(committed_for(account.position(), counter));
            }
            Ok(_) if may_log && (wants_durable || is_high(&account, counter)) => {
                target = Some(Target { at: account.position(), allowance: 0 });
            }
            Ok(_) | Err(_) => {}
        }
        let (to, durable) = (account.position(), counter.durable());
        let leaves = counter.terms().idle_ms > 0;
        if outcome.is_err() || (to == before && target.is_none()) {
            let account = counter.account();
            if leaves {
                self.renew_idle(key);
            }
            return Ok(Some(Moved { outcome, account }));
        }
        let Some(committed) = target.map_or(durable, |target| target.at).checked_sub(durable) else {
            return Ok(Some(Moved { outcome: Err(Refusal::OutOfRange), account: counter.account() }));
        };
        let was_at_rest = counter.open() == 0 || committed != 0;
        counter.set_books(durable + committed, to - (durable + committed));
        let mut is_record = committed != 0;
        if let Some(target) = target
            && is_exact(counter)
        {
            is_record |= counter.set_doubt(counter.doubt(false), target.allowance);
            if committed > 0 {
                let listing = counter.begin_listing(now_ms);
                listing.reserved = listing.reserved.saturating_add(committed.unsigned_abs());
            }
        }
        let consequence = Consequence {
            committed,
            record: is_record.then(|| counter.doubt(true)),
            listed: list(counter, was_at_rest, now_ms, interval_ms),
            lease: counter.listing().map_or(Lsn::ZERO, |listing| listing.lease),
            is_exact: is_exact(counter),
        };
        let account = counter.account();
        let mover = Mover { db: db as u8, hash, key };
        counted.count_move(&mover, before.abs_diff(to), now_ms);
        if is_record {
            counted.count_commit(&mover, committed.unsigned_abs(), now_ms);
        }
        if let Some((from, due_ms)) = consequence.listed {
            database.list_uncommitted(hash, from, due_ms);
        }
        self.follow(key, &consequence);
        if leaves {
            self.renew_idle(key);
        }
        Ok(Some(Moved { outcome, account }))
    }

    /// Commits everything uncommitted: units that are not logged, or an unused reservation. Gives
    /// back doubt whose time is over, or all doubt if `gives_back` is set. Does nothing if the key
    /// does not exist. The command must have been admitted to the log.
    pub(crate) fn settle_counter(&mut self, key: &[u8], gives_back: bool) -> Result<Settled, CommandError> {
        assert!(self.refusal().is_none(), "a command that may not log commits a counter");
        self.drop_expired(key);
        let (hash, db, now_ms) = (hash(key), usize::from(self.db()), self.now_ms());
        let (database, counted) = self.shard_mut(key).counting(db);
        let Some(entry) = database.get_mut(hash, key) else { return Ok(Settled::default()) };
        let Some(Object::Counter(counter)) = entry.object_mut() else { return Err(CommandError::WrongType) };
        let doubt = counter.doubt(false);
        let is_settled = counter.settle_at(now_ms).is_some_and(|at| at <= now_ms);
        let given_back = if is_settled || gives_back { doubt } else { 0 };
        let open = counter.open();
        // A quota gives back at most what it counts as used.
        let position = counter.account().position();
        let lowered = match counter.kind() {
            Kind::Quota { .. } => given_back.min(position.max(0).unsigned_abs()),
            Kind::Plain => given_back,
        };
        let Some(committed) = open.checked_sub_unsigned(lowered) else { return Err(out_of_range()) };
        let Some(to) = counter.durable().checked_add(committed).filter(|to| *to >= -MAX) else {
            return Err(out_of_range());
        };
        counter.set_books(to, 0);
        let is_record = counter.set_doubt(doubt - given_back, 0) || committed != 0;
        let doubt = counter.doubt(true);
        database.unlist_committed(hash, key);
        if is_record {
            counted.count_commit(&Mover { db: db as u8, hash, key }, committed.unsigned_abs(), now_ms);
            self.log_commit(key, committed, doubt);
        }
        Ok(Settled { committed, given_back: lowered, is_logged: is_record })
    }

    /// Moves a counter's committed position, and with it the position, and commits everything
    /// uncommitted. This is the logged form of a commit; in that form `doubt` is the units of an
    /// exact counter in doubt afterwards. Clients pass none.
    pub(crate) fn add_durably(
        &mut self,
        key: &[u8],
        delta: i64,
        doubt: Option<u64>,
    ) -> Result<Option<i64>, CommandError> {
        self.drop_expired(key);
        let (hash, db, now_ms) = (hash(key), usize::from(self.db()), self.now_ms());
        let (database, counted) = self.shard_mut(key).counting(db);
        let Some(entry) = database.get_mut(hash, key) else { return Ok(None) };
        let Some(Object::Counter(counter)) = entry.object_mut() else { return Err(CommandError::WrongType) };
        let durable = counter.durable();
        let to = (durable + counter.open()).checked_add(delta).filter(|to| (-MAX..=MAX).contains(to));
        let (Some(to), Some(committed)) = (to, to.and_then(|to| to.checked_sub(durable))) else {
            return Err(out_of_range());
        };
        counter.set_books(to, 0);
        let is_record = match doubt {
            Some(doubt) => counter.apply_doubt(doubt),
            None => counter.set_doubt(counter.doubt(false), 0),
        } || committed != 0;
        let (doubt, leaves) = (counter.doubt(true), counter.terms().idle_ms > 0);
        let mover = Mover { db: db as u8, hash, key };
        if delta != 0 {
            counted.count_move(&mover, delta.unsigned_abs(), now_ms);
        }
        if is_record {
            counted.count_commit(&mover, committed.unsigned_abs(), now_ms);
        }
        database.unlist_committed(hash, key);
        self.make_durable();
        if is_record {
            self.log_commit(key, committed, doubt);
        } else if delta != 0 {
            self.moved(key);
        }
        if leaves {
            self.renew_idle(key);
        }
        Ok(Some(to))
    }

    /// Changes a counter's limit or terms; the caller logs that. Returns the previous idle time in
    /// milliseconds, or `None` if the key does not exist.
    pub(crate) fn set_counter(
        &mut self,
        key: &[u8],
        kind: Kind,
        terms: Option<Terms>,
    ) -> Result<Option<u64>, CommandError> {
        self.drop_expired(key);
        let (hash, db) = (hash(key), usize::from(self.db()));
        let database = self.shard_mut(key).database_mut(db);
        let before_ms = database.set_counter(hash, key, kind, terms);
        let next_due = database.next_commit();
        if before_ms.is_none() && database.get(hash, key).is_some() {
            return Err(CommandError::WrongType);
        }
        if let Some(at) = next_due {
            self.committing().next_due().lower(at);
        }
        Ok(before_ms)
    }

    /// When a counter that is used now expires, in milliseconds since 1970; `None` for an idle time
    /// of 0.
    pub(crate) fn idle_deadline(&self, idle_ms: u64) -> Option<u64> {
        (idle_ms > 0).then(|| self.now_ms().saturating_add(idle_ms).min(i64::MAX.unsigned_abs()))
    }

    /// Extends the deadline of an idle-expiring counter to its full idle time if less than half is
    /// left: steady use costs two records per idle time. A counter whose deadline was removed
    /// stays.
    #[cold]
    pub(crate) fn renew_idle(&mut self, key: &[u8]) {
        if self.refusal().is_some() || self.is_replayed() {
            return;
        }
        let Some(entry) = self.peek(key) else { return };
        let (Some(Object::Counter(counter)), Some(at)) = (entry.object(), entry.deadline()) else { return };
        let idle_ms = counter.terms().idle_ms;
        let is_early = at.saturating_sub(self.now_ms()) >= idle_ms / 2;
        let Some(deadline) = self.idle_deadline(idle_ms).filter(|_| !is_early) else { return };
        self.set_deadline(key, Some(deadline));
        self.log_instead("pexpireat", &[key, deadline.to_string().as_bytes()]);
        self.changed(key, "expire");
    }

    #[inline]
    fn follow(&mut self, key: &[u8], consequence: &Consequence) {
        let Consequence { committed, record, listed, lease, is_exact } = *consequence;
        if let Some((_, due_ms)) = listed {
            self.committing().next_due().lower(due_ms);
        }
        self.effects.awaited = self.effects.awaited.max(lease);
        let Some(doubt) = record else { return self.moved(key) };
        if is_exact {
            // A grant may be acknowledged only once it cannot be granted again.
            self.make_durable();
        }
        self.log_commit(key, committed, doubt);
    }

    #[cold]
    fn log_commit(&mut self, key: &[u8], committed: i64, doubt: u64) {
        let db = self.db();
        self.effects.rare_mut().leased.push((db, key.to_vec()));
        let (committed, doubt) = (committed.to_string(), doubt.to_string());
        let words = [key, committed.as_bytes(), DURABLE, DOUBT, doubt.as_bytes()];
        // A record without `DOUBT` means that no units are in doubt.
        let is_doubted = doubt != "0";
        self.log_instead(COMMITTED, if is_doubted { &words } else { &words[..3] });
        self.changed(key, "counter_commit");
    }
}

/// Commit target for a counter whose promise requires a commit at `position`.
fn committed_for(position: i64, counter: &Counter) -> Target {
    let durable = counter.durable();
    let allowance = counter.earned_block();
    let Some(open) = position.checked_sub(durable) else { return Target { at: position, allowance: 0 } };
    let promise = match counter.terms().promise {
        Promise::Exact { .. } => Promise::Exact { block: allowance },
        relaxed @ Promise::Relaxed { .. } => relaxed,
    };
    let mut account = Account::resume(counter.kind(), promise, durable, open);
    Target { at: durable + account.seal_for(0).unwrap_or(0), allowance }
}

fn is_exact(counter: &Counter) -> bool {
    matches!(counter.terms().promise, Promise::Exact { .. })
}

#[inline]
fn is_high(account: &Account, counter: &Counter) -> bool {
    !is_exact(counter) && account.open().unsigned_abs() >= counter.terms().high
}

/// Schedules the commit of a counter that has moved. Returns its previous and new due time if that
/// has changed.
#[inline]
fn list(counter: &mut Counter, was_at_rest: bool, now_ms: u64, interval_ms: u64) -> Option<(u64, u64)> {
    if counter.is_committed() {
        return None;
    }
    let (is_ripe, is_exact, max_age_ms) = (counter.is_ripe(), is_exact(counter), counter.terms().max_age_ms);
    let listing = counter.begin_listing(now_ms);
    if was_at_rest || is_exact {
        listing.since_ms = now_ms;
    }
    let wanted = if is_ripe { now_ms + interval_ms } else { listing.since_ms.saturating_add(max_age_ms) };
    let before = listing.due_ms;
    // An exact counter is due once it has been idle for a while; that is checked when its time
    // comes.
    if before != 0 && before <= wanted {
        return None;
    }
    listing.due_ms = wanted.max(1);
    Some((before, listing.due_ms))
}

/// The error for an amount or position out of a counter's range.
pub(crate) fn out_of_range() -> CommandError {
    CommandError::text("ERR the amount is out of range")
}
