//! Rows of transactions.

use super::{ConnectionCommand as C, row};
use tidemark_engine::command::flags::{
    FAST, LOADING, MOVABLE_KEYS, NO_MULTI, NOSCRIPT, STALE, WHILE_SUBSCRIBED, WRITE,
};
use tidemark_engine::command::{Group, KeySpec};
use tidemark_engine::{Command, Run};

/// Rows of transactions.
pub(super) const COMMANDS: &[Command] = &[
    row(Group::Transactions, 970, "multi", 1, NOSCRIPT | LOADING | STALE | FAST | NO_MULTI, C::Multi).doc(
        "1.2.0",
        "O(1)",
        "",
        "Starts a transaction.",
    ),
    row(Group::Transactions, 971, "exec", 1, NOSCRIPT | LOADING | STALE | NO_MULTI, C::Exec).doc(
        "1.2.0",
        "The sum of the queued commands",
        "",
        "Executes the queued commands together.",
    ),
    row(Group::Transactions, 972, "discard", 1, NOSCRIPT | LOADING | STALE | FAST | NO_MULTI, C::Discard)
        .doc("2.0.0", "O(N) with N the queued commands", "", "Forgets the queued commands."),
    Command::new(
        Group::Transactions,
        973,
        "watch",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | NO_MULTI,
        KeySpec::REST,
        Run::Outside(C::Watch as u16),
    ).using(&["RO"])
    .doc(
        "2.2.0",
        "O(1) for each key",
        "key [key ...]",
        "Lets the next transaction fail if one of the keys changes before.",
    ),
    row(
        Group::Transactions,
        974,
        "unwatch",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | WHILE_SUBSCRIBED,
        C::Unwatch,
    )
    .doc(
        "2.2.0",
        "O(1) for each watched key or subscription",
        "[NAMED name [name ...] | CHANNEL channel [subscription ...] | QUERY id [id ...] | subscription [subscription ...]]",
        "Forgets the keys watched for a transaction; with arguments, ends subscriptions to reads, their names, what is \
         published on a channel, or reads that any client watches.",
    ),
    row(Group::Transactions, 975, "once", -4, WRITE | NOSCRIPT | NO_MULTI | MOVABLE_KEYS, C::Once).doc(
        "tidemark 0.1.0",
        "That of the command",
        "session number command [arg [arg ...]]",
        "Runs a command that changes keys, or EXEC, unless the session has run one under the number: then answers what that answered.",
    ),
];
