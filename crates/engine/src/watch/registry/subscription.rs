//! Start, resumption and end of subscriptions.

use crate::command::find_series;
use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::persist::record::{kind, put_varint};
use crate::watch::audience::Audience;
use crate::watch::budget::WriteBudget;
use crate::watch::emission::Gone;
use crate::watch::evaluation::{answered, with_answer};
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use crate::watch::registry::queries::QueryLimits;
use crate::watch::retention::RetentionLimits;
use crate::watch::state::State;
use crate::watch::watched_read::{Query, SharedQuery};
use crate::wire::shared_bytes::SharedBytes;
use std::sync::atomic::Ordering;
use tidemark_log::{Lsn, Room};

/// Start of a subscription: the first answer, and the position from which changes follow.
#[derive(Debug, Clone)]
pub struct Subscribed {
    /// The query.
    pub query: SharedQuery,
    /// The first answer.
    pub answer: SharedBytes,
    /// LSN of the state that the answer shows.
    pub lsn: Lsn,
    /// Number of the latest emission, which the answer includes.
    pub number: u64,
    /// Record of the query, if this subscription is its first, or of keys found expired.
    pub logged: Option<Lsn>,
}

/// Result of a request to resume after an LSN or number.
#[derive(Debug, Clone)]
pub enum Resumed {
    /// The emissions after this number are retained.
    Behind {
        /// The query.
        query: SharedQuery,
        /// Number of the last emission at or before the LSN.
        number: u64,
    },
    /// Some emissions are no longer retained.
    Gone(Gone),
    /// The LSN is above the end of the log, which is here, or its record was lost in a crash.
    Beyond(Lsn),
    /// There is no such query.
    Unknown,
}

/// Most different reads of one key: a change of it evaluates all of them.
const READS_OF_A_KEY: usize = 4096;
/// Most different reads over the whole keyspace: every change concerns all of them.
const READS_OF_EVERYTHING: usize = 256;

/// Refuses a read of keys that too many others read: a change would take too long.
fn admit_beside_others(keys: &mut Keys<'_>, read: &Read, reach: &Reach) -> Result<(), CommandError> {
    let db = read.db();
    let (present, most) = if let Some(filter) = read.selection() {
        let selected: Vec<Box<[u8]>> = keys
            .as_logged(|keys| find_series(&filter, keys).into_iter().map(|(key, _)| key.into()).collect());
        let of_keys = selected.iter().map(|key| keys.shard_mut(key).index().of_key(db, key).len());
        let of_keys = of_keys.max().unwrap_or(0);
        let beside = keys.shards().map(|shard| shard.index().selecting().beside(db, &filter)).max();
        match beside {
            Some((beside, true)) if beside >= READS_OF_EVERYTHING => (beside, READS_OF_EVERYTHING),
            beside => (of_keys.max(beside.map_or(0, |(beside, _)| beside)), READS_OF_A_KEY),
        }
    } else if *reach == Reach::All {
        let most = keys.shards().map(|shard| shard.index().everywhere().len()).max();
        (most.unwrap_or(0), READS_OF_EVERYTHING)
    } else {
        let counts = read.keys().into_iter().map(|key| keys.shard_mut(key).index().of_key(db, key).len());
        (counts.max().unwrap_or(0), READS_OF_A_KEY)
    };
    if present < most {
        return Ok(());
    }
    Err(CommandError::Text(format!("ERR {present} other reads of the same keys are watched already").into()))
}

impl Engine {
    /// Sets the audience that delivers emissions. Once, before the first subscription.
    pub fn set_audience(&self, audience: Box<dyn Audience>) {
        let is_first = self.registry().audience.set(audience).is_ok();
        assert!(is_first, "emissions have an audience already, and a second one would hear of nothing");
    }

    /// Sets the retention limits.
    pub fn limit_retention(&self, limits: RetentionLimits) {
        self.registry().retention.set_limits(limits);
    }

    /// Limits the time that writers spend on answering queries. Queries beyond it become dormant:
    /// see [`Query::is_dormant`].
    pub fn limit_writes(&self, budget: WriteBudget) {
        self.registry().set_budget(budget);
    }

    /// Limits the number and size of queries.
    pub fn limit_queries(&self, limits: QueryLimits) {
        self.registry().set_limits(limits);
    }

    /// Returns the number of evaluations of watched reads after changes of their keys, and the
    /// number that were spared because the change touched nothing that the read uses.
    pub fn evaluation_figures(&self) -> (u64, u64) {
        (self.registry().evaluated(), self.keyspace().spared())
    }

    /// Subscribes a listener to a read, and answers it. No emission is missed or repeated between
    /// the answer and the first emission. A read without a query is logged first. So is one whose
    /// query is dormant: a dormant query serves only those that resume it. Costs the read itself.
    ///
    /// An answer that is an error is returned as the error, and nothing is watched.
    pub fn subscribe(&self, read: Read, listener: usize, now_us: u64) -> Result<Subscribed, CommandError> {
        // Before the locks: making room may wait for the disk.
        let mut room = Room::NONE;
        let known = self.registry().lock().awake_of_read(&read).cloned();
        if let Some(query) = &known {
            self.move_on(query, now_us);
        } else {
            self.check_writable()?;
            // The record that begins it has the read.
            self.check_level_of(read.row())?;
            self.make_place(now_us);
            self.make_room(read.bytes(), &mut room)?;
        }
        let reach = read.reach(self.keyspace());
        let _between_records = self.between_records();
        let mut keys = self.keys_to_expire(&reach, &read, now_us);
        let expired = self.expire_read(&mut keys, &read);
        let mut queries = self.registry().lock();
        if let Some(query) = queries.awake_of_read(&read).cloned() {
            drop(queries);
            return self.join(&mut keys, query, listener, expired, None);
        }
        self.check_writable()?;
        self.registry().admit(queries.len())?;
        admit_beside_others(&mut keys, &read, &reach)?;
        let as_of_us = read.as_of(&mut keys, now_us).map(|(as_of_us, _)| as_of_us);
        let answered = answered(&mut keys, &read, as_of_us).map_err(CommandError::unreadable)?;
        if let [b'-', error @ ..] = &*answered.answer {
            let error = String::from_utf8_lossy(error.trim_ascii_end()).into_owned();
            return Err(CommandError::Text(error.into()));
        }
        let answer = answered.answer.clone();
        let id = self
            .log()
            .append_into(room, now_us, kind::WATCH, |into| {
                read.encode(into);
                if let Some(as_of_us) = as_of_us {
                    put_varint(into, as_of_us);
                }
            })
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        keys.note_logged(id);
        let query = Query::new(id, self.registry().with_part(read), self.keyspace(), answered, now_us);
        let query = SharedQuery::new(query);
        self.register(&mut keys, &mut queries, &query);
        drop(queries);
        self.join(&mut keys, query, listener, Some(id), Some(answer))
    }

    /// Resumes a subscription to query `id` after the emission at `lsn`.
    pub fn resume(&self, id: Lsn, lsn: Lsn, listener: usize) -> Resumed {
        let Some(query) = self.query(id) else { return Resumed::Unknown };
        // With everything that the query reads locked, every record up to the head that concerns it
        // has been emitted.
        let _between_records = self.between_records();
        let keys = self.keys_of(&query.reach(self.keyspace()), query.read(), 0);
        let head = self.applied();
        // A position in the log was checked when it was acknowledged.
        let may_be_lost = query.may_be_lost(lsn, self.log()) && !self.registry().names.is_position(id, lsn);
        let mut state = query.lock();
        if query.is_removed.load(Ordering::Relaxed) {
            return Resumed::Unknown;
        }
        if lsn > head || self.log().is_lost(lsn) {
            return Resumed::Beyond(head);
        }
        if query.is_dormant() {
            return Resumed::Gone(Gone { floor: head });
        }
        if may_be_lost {
            return Resumed::Gone(Gone { floor: state.emissions.last() });
        }
        match state.emissions.number_at(lsn) {
            Err(gone) => Resumed::Gone(gone),
            Ok(number) => {
                self.add_listener(&query, &mut state, listener);
                drop((state, keys));
                Resumed::Behind { query, number }
            }
        }
    }

    /// Resumes a subscription after the emission of this number. [`Resumed::Beyond`] if there has
    /// been none.
    pub fn resume_after(&self, id: Lsn, number: u64, listener: usize) -> Resumed {
        // The registry's lock excludes the removal of the query.
        let queries = self.registry().lock();
        let Some(query) = queries.of_id(id).cloned() else { return Resumed::Unknown };
        let mut state = query.lock();
        if query.is_dormant() {
            return Resumed::Gone(Gone { floor: self.applied() });
        }
        if number > state.emissions.count() {
            return Resumed::Beyond(self.applied());
        }
        match state.emissions.after(number, 0, &mut Vec::new()) {
            Err(gone) => Resumed::Gone(gone),
            Ok(()) => {
                self.add_listener(&query, &mut state, listener);
                drop(state);
                Resumed::Behind { query, number }
            }
        }
    }

    /// Adds a listener, to be notified of a query's emissions from now on. `None` if the query has
    /// been removed.
    pub fn listen(&self, id: Lsn, listener: usize) -> Option<SharedQuery> {
        // The registry's lock excludes the removal of the query.
        let queries = self.registry().lock();
        let query = queries.of_id(id)?.clone();
        self.add_listener(&query, &mut query.lock(), listener);
        Some(query)
    }

    /// Returns the LSN up to which a query's emissions are complete, and their number up to there.
    /// `None` if it is dormant.
    pub fn progress(&self, query: &Query) -> Option<(Lsn, u64)> {
        let _between_records = self.between_records();
        let _keys = self.keys_of(&query.reach(self.keyspace()), query.read(), 0);
        (!query.is_dormant()).then(|| (self.applied(), query.count()))
    }

    /// Removes a listener from a query.
    pub fn leave(&self, query: &Query, listener: usize, now_us: u64) {
        query.lock().listeners.leave(listener, now_us);
    }

    fn add_listener(&self, query: &Query, state: &mut State, listener: usize) {
        state.listeners.join(listener);
        self.begin_ticking(query);
    }

    /// Adds a listener to a query. `first` is the answer of one that has just begun, whose rows may be
    /// all that it keeps.
    fn join(
        &self,
        keys: &mut Keys<'_>,
        query: SharedQuery,
        listener: usize,
        logged: Option<Lsn>,
        first: Option<SharedBytes>,
    ) -> Result<Subscribed, CommandError> {
        assert_eq!(keys.db(), query.read.db(), "what the query reads is locked");
        let mut state = query.lock();
        self.add_listener(&query, &mut state, listener);
        let (shown, number) = (state.shown().clone(), state.emissions.count());
        let (is_followed, as_of_us) = (state.followed().is_some(), state.as_of_us());
        drop(state);
        let answer = match first {
            _ if !is_followed => shown,
            Some(first) => first,
            None => {
                let now_us = keys.now_us();
                let answer = with_answer(keys, &query.read, as_of_us, |answer| SharedBytes::from(answer));
                answer.map_err(|block| {
                    query.lock().listeners.leave(listener, now_us);
                    CommandError::unreadable(block)
                })?
            }
        };
        // Everything that the query reads is locked, so no record after this one has changed the
        // answer.
        Ok(Subscribed { answer, lsn: self.applied(), number, logged, query })
    }

    /// Removes the read's expired keys, so that the answer agrees with unwatched reads. Skips reads
    /// of all keys.
    fn expire_read(&self, keys: &mut Keys<'_>, read: &Read) -> Option<Lsn> {
        if read.reach(self.keyspace()) == Reach::All || self.check_writable().is_err() {
            return None;
        }
        read.keys().into_iter().for_each(|key| keys.drop_expired(key));
        self.log_expired(keys)
    }
}

#[cfg(test)]
impl Engine {
    /// Replaces the command table as the source of the parts of later reads.
    pub(crate) fn judge_by(&self, part_of: fn(&Read) -> crate::watch::part::Part) {
        self.registry().part_of.set(part_of).expect("once");
    }
}
