//! Rows of `CLIENT`.

use super::{ConnectionCommand as C, row};
use tidemark_engine::Command;
use tidemark_engine::command::Group;
use tidemark_engine::command::flags::{ADMIN, LOADING, NOSCRIPT, RESERVED, STALE, WITHOUT_DATA};

/// Subcommands of `CLIENT`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    row(Group::Connection, 920, "id", 2, NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA, C::ClientId)
        .doc("5.0.0", "O(1)", "", "Returns the number of the connection."),
    row(
        Group::Connection,
        921,
        "setname",
        3,
        NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ClientSetName,
    )
    .doc("2.6.9", "O(1)", "connection-name", "Names the connection."),
    row(
        Group::Connection,
        922,
        "getname",
        2,
        NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ClientGetName,
    )
    .doc("2.6.9", "O(1)", "", "Returns the name of the connection."),
    row(
        Group::Connection,
        923,
        "setinfo",
        4,
        NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ClientSetInfo,
    )
    .doc("7.2.0", "O(1)", "attr value", "Records the name or version of the client library."),
    row(
        Group::Connection,
        924,
        "list",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ClientList,
    )
    .tips(&["nondeterministic_output"])
    .doc(
        "2.4.0",
        "O(N) with N the number of connections",
        "[TYPE normal | master | replica | pubsub] [ID client-id [client-id ...]]",
        "Lists open connections.",
    ),
    row(
        Group::Connection,
        925,
        "info",
        2,
        NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ClientInfo,
    )
    .tips(&["nondeterministic_output"])
    .doc("6.2.0", "O(1)", "", "Describes the connection."),
    row(
        Group::Connection,
        926,
        "kill",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ClientKill,
    )
    .doc(
        "2.4.0",
        "O(N) with N the number of connections",
        "old-format | filter [filter ...]",
        "Closes connections by address, id, type, user or laddr.",
    ),
    row(Group::Connection, 927, "reply", 3, NOSCRIPT | LOADING | STALE | WITHOUT_DATA, C::ClientReply).doc(
        "3.2.0",
        "O(1)",
        "ON | OFF | SKIP",
        "Turns answers on or off.",
    ),
    row(
        Group::Connection,
        928,
        "no-evict",
        3,
        ADMIN | NOSCRIPT | LOADING | STALE | WITHOUT_DATA,
        C::ClientNoEvict,
    )
    .doc("7.0.0", "O(1)", "ON | OFF", "Keeps the connection when memory is short."),
    row(Group::Connection, 929, "no-touch", 3, NOSCRIPT | LOADING | STALE | WITHOUT_DATA, C::ClientNoTouch)
        .doc("7.2.0", "O(1)", "ON | OFF", "Lets commands leave keys' access times alone."),
    row(Group::Connection, 930, "unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE, C::ClientUnblock).doc(
        "5.0.0",
        "O(1)",
        "client-id [TIMEOUT | ERROR]",
        "Ends another connection's wait.",
    ),
    row(Group::Connection, 932, "pause", -3, ADMIN | NOSCRIPT | LOADING | STALE, C::ClientPause).doc(
        "3.0.0",
        "O(1)",
        "timeout [WRITE | ALL]",
        "Lets all commands, or those that change something, wait for some milliseconds.",
    ),
    row(Group::Connection, 933, "unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::ClientUnpause).doc(
        "6.2.0",
        "O(N) with N the number of connections",
        "",
        "Lets commands run that CLIENT PAUSE made wait.",
    ),
    row(Group::Connection, 934, "tracking", -3, NOSCRIPT | LOADING | STALE, C::ClientTracking).doc(
        "6.0.0",
        "O(1), and O(N) with N the number of prefixes",
        "ON | OFF [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        "Tells the client when keys change that it has read, so that it can keep them.",
    ),
    row(Group::Connection, 935, "caching", 3, NOSCRIPT | LOADING | STALE, C::ClientCaching).doc(
        "6.0.0",
        "O(1)",
        "YES | NO",
        "Says whether the client keeps what the next command or transaction reads.",
    ),
    row(Group::Connection, 936, "getredir", 2, NOSCRIPT | LOADING | STALE, C::ClientGetRedir).doc(
        "6.0.0",
        "O(1)",
        "",
        "Returns the number of the client that is notified instead of this one.",
    ),
    row(Group::Connection, 937, "trackinginfo", 2, NOSCRIPT | LOADING | STALE, C::ClientTrackingInfo).doc(
        "6.2.0",
        "O(1)",
        "",
        "Describes what CLIENT TRACKING has asked for.",
    ),
    row(
        Group::Connection,
        931,
        "help",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::Help,
    )
    .doc("5.0.0", "O(1)", "", "Lists the subcommands."),
];
