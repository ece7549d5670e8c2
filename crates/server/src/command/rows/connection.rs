//! Rows of commands about the connection itself.

use super::{ConnectionCommand as C, client, row};
use tidemark_engine::command::flags::{
    ADMIN, FAST, LOADING, NO_AUTH, NOSCRIPT, RESERVED, STALE, WHILE_SUBSCRIBED, WITHOUT_DATA,
};
use tidemark_engine::command::{Group, KeySpec};
use tidemark_engine::{Command, Run};

/// Rows of commands about the connection itself.
pub(super) const COMMANDS: &[Command] = &[
    row(Group::Connection, 900, "ping", -1, FAST | WHILE_SUBSCRIBED, C::Ping)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("1.0.0", "O(1)", "[message]", "Answers PONG, or the message."),
    row(Group::Connection, 901, "echo", 2, FAST | LOADING | STALE | WITHOUT_DATA, C::Echo).doc(
        "1.0.0",
        "O(1)",
        "message",
        "Answers the message.",
    ),
    row(Group::Connection, 902, "select", 2, LOADING | STALE | FAST | RESERVED | WITHOUT_DATA, C::Select)
        .doc("1.0.0", "O(1)", "index", "Selects the database for the commands that follow."),
    row(
        Group::Connection,
        903,
        "auth",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | RESERVED | WITHOUT_DATA,
        C::Auth,
    )
    .doc("1.0.0", "O(1)", "[username] password", "Authenticates the connection."),
    row(
        Group::Connection,
        904,
        "hello",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | RESERVED | WITHOUT_DATA,
        C::Hello,
    )
    .doc(
        "6.0.0",
        "O(1)",
        "[protover [AUTH username password] [SETNAME clientname]]",
        "Chooses the protocol and describes the server.",
    ),
    row(
        Group::Connection,
        905,
        "quit",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | RESERVED | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Quit,
    )
    .doc("1.0.0", "O(1)", "", "Closes the connection."),
    row(
        Group::Connection,
        906,
        "reset",
        1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Reset,
    )
    .doc("6.2.0", "O(1)", "", "Puts the connection back into its first state."),
    Command::new(
        Group::Connection,
        907,
        "client",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        KeySpec::None,
        Run::Container,
    )
    .doc("2.4.0", "Depends on the subcommand", "", "Commands about connections.")
    .with(client::SUBCOMMANDS),
];
