//! Rows of commands about subscriptions to reads, and of the change stream.

use super::{ConnectionCommand as C, row};
use tidemark_engine::Command;
use tidemark_engine::command::Group;
use tidemark_engine::command::flags::{FAST, NO_MULTI, NOSCRIPT, PUBSUB, WHILE_SUBSCRIBED};

/// Rows of commands about subscriptions, and of the change stream.
pub(super) const COMMANDS: &[Command] = &[
    row(
        Group::PubSub,
        963,
        "watches",
        -1,
        PUBSUB | NOSCRIPT | NO_MULTI | FAST | WHILE_SUBSCRIBED,
        C::Watches,
    )
    .doc(
        "tidemark 0.1.0",
        "O(N) with N the number of the connection's subscriptions, of names, of channels' reads, or of reads",
        "[NAMED [pattern] | CHANNELS [pattern] | ALL [pattern]]",
        "Lists the reads that the connection watches, with how far each has got; the server's named subscriptions; those that \
         are published on channels; or the reads that any client watches, the costliest first.",
    ),
    row(Group::PubSub, 946, "changes", -2, PUBSUB | NOSCRIPT | NO_MULTI | WHILE_SUBSCRIBED, C::Changes).doc(
        "tidemark 0.1.0",
        "O(N) with N the bytes of the log from there on, which another thread reads",
        "FROM <lsn | $> [PREFIX prefix [PREFIX prefix ...]] [TYPE type [TYPE type ...]] [DB index [DB index ...]] \
         [FORMAT <JSON | BINARY>] [PROGRESS milliseconds] | STOP",
        "Follows the log: every durable change behind an LSN, and those to come; STOP ends it.",
    ),
    row(
        Group::PubSub,
        964,
        "emitreconnect",
        -4,
        PUBSUB | NOSCRIPT | NO_MULTI | WHILE_SUBSCRIBED,
        C::EmitReconnect,
    )
    .doc(
        "tidemark 0.1.0",
        "O(log N) with N the number of retained emissions",
        "key subscription lsn [| option ...]",
        "Goes on with a subscription behind the last emission that was received.",
    ),
    row(Group::PubSub, 965, "emitack", 4, PUBSUB | NOSCRIPT | FAST | WHILE_SUBSCRIBED, C::EmitAck).doc(
        "tidemark 0.1.0",
        "O(1)",
        "key subscription lsn",
        "Says that the emissions of a subscription up to an LSN have been processed.",
    ),
];
