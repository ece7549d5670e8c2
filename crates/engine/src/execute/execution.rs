//! The path of one command through the engine.

use crate::blocking::blocked::Blocked;
use crate::command::{Command, FIELDS_EXPIRE, flags};
use crate::context::{Effects, Keys, RareEffects};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::{Call, Terms};
use crate::execute::moment::Moment;
use crate::housekeeping::counter_commits::note_leases;
use crate::script::Publication;
use crate::value::links::LinkUse;
use crate::wire::reply::Reply;
use std::collections::HashSet;
use tidemark_fault::{Fault, is_planted};
use tidemark_log::{Lsn, Room};

/// Result of a call, in addition to the reply.
#[derive(Debug, Default)]
pub struct Executed<'e> {
    /// LSN of the change's record, if any; otherwise that of an earlier record on which the reply
    /// depends.
    pub lsn: Option<Lsn>,
    /// Whether the reply must wait until the change is durable, whatever the server's mode.
    pub durable: bool,
    /// What the caller still has to do, for few commands.
    pub follow_up: Option<Box<FollowUp<'e>>>,
}

/// What a call leaves to its caller. A script does not block, and a command that blocks publishes nothing.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few commands have any, in a box of its own")]
pub enum FollowUp<'e> {
    /// The command found nothing to take and wrote no reply: the client must block.
    Block(Blocked<'e>),
    /// Messages that a script has published. They may show the change: send them after its record.
    Publish(Vec<Publication>),
}

impl<'e> Executed<'e> {
    /// Whether the client must block.
    pub fn blocks(&self) -> bool {
        matches!(self.follow_up.as_deref(), Some(FollowUp::Block(_)))
    }

    /// The client that must block, if it must.
    pub fn into_blocked(self) -> Option<Blocked<'e>> {
        match *self.follow_up? {
            FollowUp::Block(blocked) => Some(blocked),
            FollowUp::Publish(_) => None,
        }
    }

    /// Messages to send: see [`FollowUp::Publish`].
    pub fn published(&self) -> &[Publication] {
        match self.follow_up.as_deref() {
            Some(FollowUp::Publish(published)) => published,
            _ => &[],
        }
    }
}

impl FollowUp<'_> {
    pub(crate) fn publish(published: Vec<Publication>) -> Option<Box<Self>> {
        (!published.is_empty()).then(|| Box::new(Self::Publish(published)))
    }
}

impl Engine {
    /// Runs one command and writes its reply, or reports that the client must block. Blocked
    /// clients that wait for what the command added are served before any other command can take
    /// it.
    #[inline]
    pub fn execute(&self, call: &Call<'_>, reply: &mut Reply) -> Executed<'_> {
        self.execute_as(call, Terms::default(), reply)
    }

    /// As [`Engine::execute`], on the given terms.
    pub fn execute_as(&self, call: &Call<'_>, terms: Terms, reply: &mut Reply) -> Executed<'_> {
        let mut room = Room::NONE;
        let mut refusal = None;
        if let Err(error) = self.admit(call.command, call.args, &mut room) {
            match self.tolerate(call.command, call.args, error) {
                Ok(tolerated) => refusal = tolerated,
                Err(error) => return refused(&error, reply),
            }
        }
        let mut keys = self.lock_for(call);
        if keys.has_due_fields() {
            self.expire_met_fields(call, &mut keys);
        }
        if self.is_in_group() && !is_planted(Fault::ExpiredUnlogged) {
            self.expire_met(call, &mut keys);
        }
        if let Err(error) = self.admit_under_locks(call.command) {
            match self.tolerate(call.command, call.args, error) {
                Ok(tolerated) => refusal = tolerated,
                Err(error) => return refused(&error, reply),
            }
        }
        keys.set_terms(terms.durable, refusal);
        let mark = reply.len();
        keys.release_early(true);
        if call.command.is(flags::COLUMNS) {
            keys.collect_points();
        }
        self.run(call, &mut keys, reply);
        // Watched reads are evaluated under the same locks.
        keys.release_early(false);
        let lsn = match keys.take_points() {
            Some(points) => self.log_points(call, points, &keys.effects, room, reply, mark),
            None => self.log_effects(call, &keys.effects, room, reply, mark),
        };
        if let Some(lsn) = lsn {
            keys.note_logged(lsn);
        }
        let revealed = if keys.effects.reveals_logged { lsn.or_else(|| Some(self.applied())) } else { lsn };
        let durable = keys.effects.durable || terms.durable;
        let awaited = keys.effects.awaited;
        let follow_up = if keys.concern_others() || terms.reader.is_some() {
            self.attend(call, terms, keys, lsn, durable, reply)
        } else {
            None
        };
        if awaited > Lsn::ZERO {
            return Executed { lsn: revealed.or(Some(awaited)), durable: true, follow_up };
        }
        Executed { lsn: revealed, durable, follow_up }
    }

    /// Prepares a command's keys in a group: see [`Engine::is_in_group`].
    #[cold]
    fn expire_met<'e>(&'e self, call: &Call<'_>, keys: &mut Keys<'e>) {
        let Call { command, db, args, now_us } = *call;
        let lock = || self.lock_for(call);
        if !self.concerns_all(command, args) {
            self.expire_first(keys, || command.keys.keys(args).map(|key| (db, key)), lock);
        } else if command.is(flags::READONLY) && self.has_due(now_us) {
            self.expire_between(keys, &lock, &|now_us| self.expire_some(now_us));
        }
        keys.see_expired(!command.is(flags::WRITE));
    }

    /// Removes the fields of a command's keys whose time has come, unless it is the command that does it.
    #[cold]
    fn expire_met_fields<'e>(&'e self, call: &Call<'_>, keys: &mut Keys<'e>) {
        let Call { command, db, args, .. } = *call;
        if command.id != FIELDS_EXPIRE {
            let named = || command.keys.keys(args).map(|key| (db, key));
            self.expire_fields_first(keys, named, || self.lock_for(call));
        }
    }

    /// Handles the rare consequences of a command: evaluates watched reads, invalidates client-side
    /// caches, publishes events, serves blocked clients, blocks the client itself, or writes the rest
    /// of its reply without locks. Returns what is left to the caller.
    #[cold]
    fn attend<'e>(
        &'e self,
        call: &Call<'_>,
        terms: Terms,
        mut keys: Keys<'e>,
        lsn: Option<Lsn>,
        durable: bool,
        reply: &mut Reply,
    ) -> Option<Box<FollowUp<'e>>> {
        let RareEffects { noted, ready, block, leased, rest, published, .. } = keys.effects.take_rare();
        if let Some(lsn) = lsn
            && !leased.is_empty()
        {
            note_leases(self, &mut keys, &leased, lsn);
        }
        if !noted.is_empty() {
            let (time_us, spared) = (call.now_us, terms.spared);
            self.emit(&mut keys, noted, lsn.map(|lsn| Moment { lsn, time_us, durable, spared }));
        }
        if let Some(reader) = terms.reader {
            let script_reads = keys.effects.script_reads;
            self.remember(&mut keys, call, reader, script_reads);
        }
        if keys.events.are_wanted() {
            self.publish_events(&mut keys, lsn, durable);
        }
        if let Some(block) = block {
            assert!(published.is_empty(), "'{}' blocks, and is no script", call.command.name);
            return Some(Box::new(FollowUp::Block(Blocked::new(keys, call, block, reply, durable))));
        }
        let expired = expired_keys(&keys, call);
        if ready.is_empty() {
            drop(keys);
        } else {
            keys.effects = Effects::default();
            self.serve(keys, ready);
        }
        if let Some(rest) = rest {
            rest.write(reply);
        }
        self.remove_met(call, &expired, terms.reader);
        FollowUp::publish(published)
    }
}

impl Engine {
    /// Upper bound of the last LSN that the reply to a command may show, for replies that wait
    /// until what they show is durable. Call it after the command has run. Locks the shards of the
    /// command's keys, one after the other; must not be called while [`FollowUp::Block`] holds
    /// them.
    #[cold]
    pub fn newest_shown(&self, command: &Command, args: &[&[u8]]) -> Lsn {
        if self.concerns_all(command, args) {
            return self.applied();
        }
        let mut open: Vec<Box<[u8]>> = command.keys.keys(args).map(Box::from).collect();
        let (mut newest, mut followed) = (None, HashSet::new());
        while let Some(key) = open.pop() {
            let shard = self.keyspace().lock(self.keyspace().shard_of(&key));
            newest = newest.max(Some(shard.last()));
            // A value may be read through those that it links to.
            shard.for_each_link(&key, |linked, link_use| {
                if matches!(link_use, LinkUse::Reads | LinkUse::Sees) && !followed.contains(linked) {
                    open.push(linked.into());
                }
            });
            followed.insert(key);
        }
        newest.unwrap_or_else(|| self.applied())
    }
}

/// The expired keys among those of a command that has met one.
pub(crate) fn expired_keys<'a>(keys: &Keys<'_>, call: &Call<'a>) -> Vec<&'a [u8]> {
    if !keys.has_met_expired() || call.command.keys.concerns_all(call.args) {
        return Vec::new();
    }
    call.command.keys.keys(call.args).filter(|key| keys.has_expired(key)).collect()
}

#[cold]
fn refused<'e>(error: &CommandError, reply: &mut Reply) -> Executed<'e> {
    reply.error(error);
    Executed::default()
}
