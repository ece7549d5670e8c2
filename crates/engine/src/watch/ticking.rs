//! Reads of ranges that end at a time relative to now: `-5m`.
//!
//! Such a query is answered *as of* a time of its own, which is part of its state: that of the record
//! `watch` at first, and from then on that of the latest record `tick`. Changes of its keys do not move
//! it, so its emissions remain a function of the log, as those of all queries.
//!
//! ```text
//! a listener joins ─► Ticks ─► Engine::tick_due, when a step is over ─► record `tick` ─► what has left, come or changed
//!                       ▲                     │ while there is a listener
//!                       └─────────────────────┘
//! ```
//!
//! The time moves in steps: by a bucket of an aggregated range, so that buckets are whole, else by a
//! second. Without a listener it stands still, and the first that joins moves it on. It also stands still
//! while no point leaves or comes by it, if that is known without making the answer: an idle server logs
//! nothing.
//!
//! ```text
//! watch  the read │ if it depends on a time: that as of which it is answered, microseconds since 1970 varint
//! tick   LSN of the watch varint │ time as of which it is answered varint
//! ```

use crate::context::Keys;
use crate::engine::Engine;
use crate::execute::moment::Moment;
use crate::persist::apply_error::ApplyError;
use crate::persist::record::{Cursor, kind, put_varint};
use crate::watch::watched_read::{Query, SharedQuery};
use tidemark_log::{Lsn, Room};

/// Pause after a tick that the log does not take. Milliseconds.
const RETRY_MS: u64 = 1000;

impl Engine {
    /// When to call [`Engine::tick_due`] next, in milliseconds since 1970.
    pub fn next_tick(&self) -> Option<u64> {
        self.registry().ticks.next().filter(|_| !self.is_following())
    }

    /// Moves on the time of the watched reads that depend on it, have a listener, and whose step is over,
    /// at most `budget` of them. Returns when the next step is over, in milliseconds since 1970.
    pub fn tick_due(&self, now_us: u64, budget: usize) -> Option<u64> {
        if self.is_following() {
            return None;
        }
        let ticks = &self.registry().ticks;
        for _ in 0..budget {
            let Some(id) = ticks.take(now_us / 1000) else { break };
            // It comes back with the next listener.
            let Some(query) = self.query(id).filter(|query| query.is_heard()) else { continue };
            ticks.add(self.move_on(&query, now_us), id);
        }
        self.next_tick()
    }

    /// Begins to move the time of a query on that has a listener, if it depends on one.
    pub(in crate::watch) fn begin_ticking(&self, query: &Query) {
        if query.read.depends_on_time()
            && self.registry().ticks.add(0, query.id)
            && let Some(audience) = self.registry().audience.get()
        {
            audience.tick_earlier();
        }
    }

    /// Moves the time of a query on, if a step is over and the log takes the record. Returns when the next
    /// step is over, in milliseconds since 1970.
    pub(in crate::watch) fn move_on(&self, query: &SharedQuery, now_us: u64) -> u64 {
        if !query.read.depends_on_time() {
            return u64::MAX;
        }
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), now_us);
        let Some((as_of_us, step_us)) = query.read.as_of(&mut keys, now_us) else { return u64::MAX };
        let next_ms = as_of_us.saturating_add(step_us).div_ceil(1000);
        // First: behind a change that was not logged, a query does not fit the keys that it reads.
        if !self.log().has_room() || self.check_writable().is_err() {
            return now_us / 1000 + RETRY_MS;
        }
        if query.has_ended() || !moves(&mut keys, query, as_of_us) {
            return next_ms;
        }
        let encode = |into: &mut Vec<u8>| {
            put_varint(into, query.id.0);
            put_varint(into, as_of_us);
        };
        let Ok(lsn) = self.log().append_into(Room::NONE, now_us, kind::TICK, encode) else {
            return now_us / 1000 + RETRY_MS;
        };
        keys.note_logged(lsn);
        if !query.is_dormant() {
            self.emit_at(&mut keys, query, as_of_us, Moment::of(lsn, now_us));
        }
        next_ms
    }

    /// Applies a `tick` record.
    pub(crate) fn apply_tick(
        &self,
        lsn: Lsn,
        time_us: u64,
        bytes: &mut Cursor<'_>,
    ) -> Result<(), ApplyError> {
        let (Some(id), Some(as_of_us)) = (bytes.varint().map(Lsn), bytes.varint()) else {
            return Err(bytes.malformed("the read whose time moves on is missing, or the time"));
        };
        let query =
            self.query(id).ok_or_else(|| bytes.malformed(format!("no read is watched since record {id}")))?;
        if !query.read.depends_on_time() {
            return Err(bytes.malformed(format!("the read watched since record {id} depends on no time")));
        }
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), time_us);
        if !query.is_dormant() {
            self.emit_at(&mut keys, &query, as_of_us, Moment::of(lsn, time_us));
        }
        Ok(())
    }
}

/// Whether the answer may be another one as of a later time. The caller has locked everything that the query
/// reads.
fn moves(keys: &mut Keys<'_>, query: &Query, as_of_us: u64) -> bool {
    let state = query.lock();
    match (state.as_of_us(), state.followed()) {
        (Some(before), _) if before >= as_of_us => false,
        (_, Some(followed)) => query.read.passes(keys, followed, as_of_us),
        _ => true,
    }
}
