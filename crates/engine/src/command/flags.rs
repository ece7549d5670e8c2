//! Properties of a command, as bits.

/// May change keys.
pub const WRITE: u32 = 1;
/// Only reads keys.
pub const READONLY: u32 = 1 << 1;
/// May use more memory, so that it is refused when there is none.
pub const DENYOOM: u32 = 1 << 2;
/// For administrators.
pub const ADMIN: u32 = 1 << 3;
/// Has to do with pub/sub.
pub const PUBSUB: u32 = 1 << 4;
/// Not for scripts.
pub const NOSCRIPT: u32 = 1 << 5;
/// May let the client wait.
pub const BLOCKING: u32 = 1 << 6;
/// Allowed while data is loaded.
pub const LOADING: u32 = 1 << 7;
/// Allowed on a replica that lost its leader.
pub const STALE: u32 = 1 << 8;
/// O(1) or O(log n).
pub const FAST: u32 = 1 << 9;
/// Allowed before authentication.
pub const NO_AUTH: u32 = 1 << 10;
/// Not allowed in a transaction.
pub const NO_MULTI: u32 = 1 << 11;
/// Keys are found by reading the arguments, not by position alone.
pub const MOVABLE_KEYS: u32 = 1 << 12;
/// What it changes is volatile at first: it runs while the log takes nothing, as long as it need not be logged. Clients are not
/// told of this one.
pub const VOLATILE: u32 = 1 << 13;

/// Bits with the names that `COMMAND` uses.
pub const NAMES: [(u32, &str); 13] = [
    (WRITE, "write"),
    (READONLY, "readonly"),
    (DENYOOM, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MULTI, "no_multi"),
    (MOVABLE_KEYS, "movablekeys"),
];
