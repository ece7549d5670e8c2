//! Keyspace events and their classes.

/// A set of event classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventClasses(pub(super) u16);

impl EventClasses {
    /// No class.
    pub const NONE: Self = Self(0);
    /// Events of keys of any type.
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
    /// Removal of expired keys.
    pub const EXPIRED: Self = Self(1 << 6);
    /// Reads of absent keys.
    pub const KEY_MISS: Self = Self(1 << 7);
    /// Creation of keys.
    pub const NEW: Self = Self(1 << 8);
    /// Commands on counters, limiters, pools and series, and commits of counters; in Redis, types of
    /// modules.
    pub const MODULE: Self = Self(1 << 9);

    /// Commands on streams.
    pub const STREAM: Self = Self(1 << 10);

    /// Union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether this set contains all classes of the other.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Class of an event.
    pub fn of(name: &str) -> Option<Self> {
        EVENTS.iter().find(|(_, names)| names.contains(&name)).map(|(class, _)| *class)
    }

    /// Whether the class has the events of a collection's elements.
    pub(crate) fn is_of_elements(self) -> bool {
        const COLLECTIONS: EventClasses = EventClasses::LIST
            .with(EventClasses::SET)
            .with(EventClasses::HASH)
            .with(EventClasses::SORTED_SET);
        COLLECTIONS.contains(self)
    }
}

/// Every event, by class.
pub const EVENTS: &[(EventClasses, &[&str])] = &[
    (EventClasses::STRING, &["set", "incrby", "incrbyfloat", "append", "setrange", "setbit", "pfadd"]),
    (
        EventClasses::GENERIC,
        &[
            DELETED,
            "expire",
            "persist",
            "rename_from",
            "rename_to",
            "move_from",
            "move_to",
            "copy_to",
            "restore",
        ],
    ),
    (
        EventClasses::LIST,
        &["lpush", "rpush", "lpop", "rpop", "lset", "linsert", "lrem", "ltrim", "sortstore"],
    ),
    (EventClasses::HASH, &["hset", "hdel", "hincrby", "hincrbyfloat", "hexpire", "hexpired", "hpersist"]),
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
            "georadiusstore",
            "geosearchstore",
        ],
    ),
    (
        EventClasses::STREAM,
        &[
            "xadd",
            "xdel",
            "xtrim",
            "xsetid",
            "xgroup-create",
            "xgroup-setid",
            "xgroup-destroy",
            "xgroup-createconsumer",
            "xgroup-delconsumer",
        ],
    ),
    (
        EventClasses::MODULE,
        &[
            "counter_set",
            "counter_limit",
            "counter_commit",
            "limit_create",
            "pool_create",
            "pool_draw",
            "pool_reserve",
            "pool_end",
            "pool_expire",
            "pool_return",
            "pool_update",
            "pool_epoch",
            "limit_check",
            "limit_refund",
            "limit_reset",
            "limit_acquire",
            "limit_renew",
            "limit_release",
            "ts.create",
            "ts.alter",
            "ts.add",
            "ts.incrby",
            "ts.decrby",
            "ts.del",
            "ts.createrule:src",
            "ts.createrule:dest",
            "ts.deleterule:src",
            "ts.deleterule:dest",
            "ts.add:dest",
            "lens.create",
        ],
    ),
    (EventClasses::EXPIRED, &[EXPIRED]),
    (EventClasses::NEW, &[NEW]),
    (EventClasses::KEY_MISS, &[MISSED]),
];

pub(crate) const DELETED: &str = "del";
pub(crate) const EXPIRED: &str = "expired";
pub(crate) const NEW: &str = "new";
pub(crate) const MISSED: &str = "keymiss";
