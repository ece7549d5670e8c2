//! Keyspace events: what happened to a key, by the names that Redis gives it.
//!
//! ```text
//! handler ─► Keys::changed(key, "lpop") ─► Events: lpop, del ─► append ─► Engine::tell_events ─► EventAudience::tell
//! ```
//!
//! Handlers name an event wherever they say that a key has changed. It is gathered only if somebody wants its class, and told
//! of under the locks of the command once its record is in the log: so the events of a key come in the order of the log, and
//! a change that the log has refused has none. A replay tells nobody.

use crate::command::{self, Command};
use crate::context::Keys;
use crate::engine::Engine;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use tidemark_log::Lsn;

/// Something that happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The number of the key's database.
    pub db: u8,
    /// Redis's name for it.
    pub name: &'static str,
    /// The key.
    pub key: Box<[u8]>,
}

/// The record behind which events are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// The record; none if nothing was changed.
    pub lsn: Option<Lsn>,
    /// Nobody is to be told before the record is durable.
    pub durable: bool,
}

/// Whoever passes events on.
pub trait EventAudience: Send + Sync {
    /// Tells of what one command, transaction or expiry has done, in order. Called with shards locked: it must neither wait
    /// nor use the engine.
    fn tell(&self, events: &[Event], cause: Cause);
}

/// A set of classes of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventClasses(u16);

impl EventClasses {
    /// No class.
    pub const NONE: Self = Self(0);
    /// What happens to keys of any type.
    pub const GENERIC: Self = Self(1);
    /// Commands on strings.
    pub const STRING: Self = Self(1 << 1);
    /// Commands on lists.
    pub const LIST: Self = Self(1 << 2);
    /// Commands on sets.
    pub const SET: Self = Self(1 << 3);
    /// Commands on hashes.
    pub const HASH: Self = Self(1 << 4);
    /// Commands on sorted sets.
    pub const SORTED_SET: Self = Self(1 << 5);
    /// A key's time had come, and it was removed.
    pub const EXPIRED: Self = Self(1 << 6);
    /// A key that did not exist was read.
    pub const KEY_MISS: Self = Self(1 << 7);
    /// A key has come to be.
    pub const NEW: Self = Self(1 << 8);

    /// The classes of either set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the other classes are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The class of an event.
    pub fn of(name: &str) -> Option<Self> {
        EVENTS.iter().find(|(_, names)| names.contains(&name)).map(|(class, _)| *class)
    }

    /// Whether the events tell what became of the elements of a collection.
    fn is_of_elements(self) -> bool {
        const COLLECTIONS: EventClasses = EventClasses::LIST
            .with(EventClasses::SET)
            .with(EventClasses::HASH)
            .with(EventClasses::SORTED_SET);
        COLLECTIONS.contains(self)
    }
}

/// Every event, by class.
pub const EVENTS: &[(EventClasses, &[&str])] = &[
    (EventClasses::STRING, &["set", "incrby", "incrbyfloat", "append", "setrange", "setbit"]),
    (
        EventClasses::GENERIC,
        &[DELETED, "expire", "persist", "rename_from", "rename_to", "move_from", "move_to", "copy_to"],
    ),
    (
        EventClasses::LIST,
        &["lpush", "rpush", "lpop", "rpop", "lset", "linsert", "lrem", "ltrim", "sortstore"],
    ),
    (EventClasses::HASH, &["hset", "hdel", "hincrby", "hincrbyfloat"]),
    (EventClasses::SET, &["sadd", "srem", "spop", "sinterstore", "sunionstore", "sdiffstore"]),
    (
        EventClasses::SORTED_SET,
        &[
            "zadd",
            "zincr",
            "zrem",
            "zpopmin",
            "zpopmax",
            "zremrangebyrank",
            "zremrangebyscore",
            "zremrangebylex",
            "zrangestore",
            "zunionstore",
            "zinterstore",
            "zdiffstore",
        ],
    ),
    (EventClasses::EXPIRED, &[EXPIRED]),
    (EventClasses::NEW, &[NEW]),
    (EventClasses::KEY_MISS, &[MISSED]),
];

const DELETED: &str = "del";
const EXPIRED: &str = "expired";
const NEW: &str = "new";
const MISSED: &str = "keymiss";

/// The events of the commands that run under one set of locks, until they are told of. Nothing is kept, and nothing is
/// allocated, if nobody wants any.
#[derive(Debug, Default)]
pub(crate) struct Events(Option<Box<Gathered>>);

#[derive(Debug)]
struct Gathered {
    wanted: EventClasses,
    /// A few for each key that a command names: its size bounds them.
    events: Vec<Event>,
    /// Those of them that tell what the command at hand has looked for in vain.
    misses: Range<usize>,
}

impl Events {
    /// Whether any event is wanted.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    fn want(&self, class: EventClasses) -> bool {
        self.0.as_ref().is_some_and(|gathered| gathered.wanted.contains(class))
    }

    /// Adds an event, if its class is wanted.
    fn add(&mut self, class: EventClasses, db: u8, name: &'static str, key: &[u8]) {
        if let Some(gathered) = self.0.as_mut().filter(|gathered| gathered.wanted.contains(class)) {
            gathered.events.push(Event { db, name, key: key.into() });
        }
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |gathered| gathered.events.len())
    }

    /// Says that the events from `start` on are misses.
    fn set_misses(&mut self, start: usize) {
        if let Some(gathered) = &mut self.0 {
            gathered.misses = start..gathered.events.len();
        }
    }

    /// Takes back what the command at hand has looked for in vain: it fails, and has looked for nothing.
    #[cold]
    pub(crate) fn forget_misses(&mut self) {
        if let Some(gathered) = &mut self.0 {
            gathered.events.drain(std::mem::take(&mut gathered.misses));
        }
    }

    fn take(&mut self) -> Vec<Event> {
        let Some(gathered) = &mut self.0 else { return Vec::new() };
        gathered.misses = 0..0;
        std::mem::take(&mut gathered.events)
    }

    #[cold]
    fn of(wanted: EventClasses) -> Self {
        Self(Some(Box::new(Gathered { wanted, events: Vec::new(), misses: 0..0 })))
    }
}

/// Which events are wanted, and by whom.
#[derive(Default)]
pub(crate) struct EventDesk {
    /// Bits of [`EventClasses`].
    wanted: AtomicU16,
    audience: OnceLock<Arc<dyn EventAudience>>,
}

impl EventDesk {
    /// Where commands gather events.
    #[inline]
    pub(crate) fn gather(&self) -> Events {
        let wanted = EventClasses(self.wanted.load(Ordering::Relaxed));
        if wanted == EventClasses::NONE { Events(None) } else { Events::of(wanted) }
    }

    fn tell(&self, events: &[Event], cause: Cause) {
        if !events.is_empty()
            && let Some(audience) = self.audience.get()
        {
            audience.tell(events, cause);
        }
    }
}

impl Engine {
    /// Says who passes events on. Once, before any are wanted.
    pub fn set_event_audience(&self, audience: Arc<dyn EventAudience>) {
        // A second audience would never hear of anything; there is none.
        let _ = self.events().audience.set(audience);
    }

    /// Says which events are wanted, from the next command on.
    pub fn want_events(&self, classes: EventClasses) {
        self.events().wanted.store(classes.0, Ordering::Relaxed);
    }

    /// Tells of what the commands under these locks have done, which the log has at `lsn`, if it had to be logged.
    #[cold]
    pub(crate) fn tell_events(&self, keys: &mut Keys<'_>, lsn: Option<Lsn>, durable: bool) {
        let events = keys.events.take();
        // Without a record: either nothing was changed, or the log has refused the change, and then it refuses all.
        if lsn.is_some() || !self.is_ahead_of_log() {
            self.events().tell(&events, Cause { lsn, durable });
        }
    }

    /// Tells that a key's time had come, as the log has it at `lsn`.
    pub(crate) fn tell_expiry(&self, db: u8, key: &[u8], lsn: Lsn) {
        let mut events = self.events().gather();
        if events.are_wanted() {
            events.add(EventClasses::EXPIRED, db, EXPIRED, key);
            self.events().tell(&events.take(), Cause { lsn: Some(lsn), durable: false });
        }
    }
}

impl Keys<'_> {
    /// Says what happened to a key without changing it; [`Keys::changed`] says it where something has changed.
    #[inline]
    pub(crate) fn happened(&mut self, key: &[u8], event: &'static str) {
        if self.events.are_wanted() {
            self.note_event(key, event);
        }
    }

    /// Notes an event; and behind one of a collection's elements, that the key has gone with the last of them.
    #[cold]
    pub(crate) fn note_event(&mut self, key: &[u8], event: &'static str) {
        let Some(class) = EventClasses::of(event) else {
            debug_assert!(false, "the event {event} has no class");
            return;
        };
        let db = self.db();
        self.events.add(class, db, event, key);
        if class.is_of_elements() && !self.holds(key) {
            self.events.add(EventClasses::GENERIC, db, DELETED, key);
        }
    }

    /// Notes that an expired key was removed.
    #[cold]
    pub(crate) fn note_expired(&mut self, key: &[u8]) {
        let db = self.db();
        self.events.add(EventClasses::EXPIRED, db, EXPIRED, key);
    }

    /// Notes that a key comes to be.
    #[cold]
    pub(crate) fn note_new(&mut self, key: &[u8]) {
        let db = self.db();
        self.events.add(EventClasses::NEW, db, NEW, key);
    }

    /// As [`Keys::note_new`], of a key that is about to be given a value, whatever it holds.
    #[cold]
    pub(crate) fn note_coming(&mut self, key: &[u8]) {
        self.drop_expired(key);
        if self.events.want(EventClasses::NEW) && !self.holds(key) {
            self.note_new(key);
        }
    }

    /// Notes which keys a command that is about to run will look for in vain, to read them.
    #[cold]
    pub(crate) fn note_misses(&mut self, command: &Command, args: &[&[u8]]) {
        if !self.events.want(EventClasses::KEY_MISS) {
            return;
        }
        let absent = |keys: &Self, at: usize| args.get(at).filter(|key| !keys.exists(key)).copied();
        let (db, start) = (self.db(), self.events.len());
        for (number, at) in command.keys.positions(args).into_iter().enumerate() {
            if let Some(key) = absent(self, at).filter(|_| reads(command, args, number)) {
                self.events.add(EventClasses::KEY_MISS, db, MISSED, key);
            }
        }
        self.events.set_misses(start);
    }
}

/// Whether a command reads the key of this number, so that it misses something if there is none.
fn reads(command: &Command, args: &[&[u8]], number: usize) -> bool {
    let uses = command::key_uses_of(command, args);
    let Some(key_use) = uses.get(number).or(uses.last()) else { return false };
    let gives_a_value = matches!(command.name, "set" | "getset" | "getdel" | "getex");
    let only_looks = command.full_name().starts_with("object");
    (key_use.starts_with("RO") && !only_looks) || (key_use.starts_with("RW") && gives_a_value)
}
