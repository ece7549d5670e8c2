//! Rows of commands about the server and its data as a whole.

use super::{ConnectionCommand as C, row};
use tidemark_engine::command::flags::{
    ADMIN, BLOCKING, DENYOOM, FAST, LOADING, MOVABLE_KEYS, NO_MULTI, NOSCRIPT, READONLY, RESERVED, STALE,
    WITHOUT_DATA, WRITE,
};
use tidemark_engine::command::{Group, KeySpec, LibraryAction, ScriptAction};
use tidemark_engine::record::level;
use tidemark_engine::{Command, Run};

/// Rows of commands about the server.
pub(super) const COMMANDS: &[Command] = &[
    row(Group::Server, 980, "info", -1, LOADING | STALE | RESERVED | WITHOUT_DATA, C::Info)
        .in_categories(&["@dangerous"], &[])
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc(
            "1.0.0",
            "O(1)",
            "[section [section ...]]",
            "Describes the server.",
        ),
    row(Group::Server, 981, "time", 1, LOADING | STALE | FAST, C::Time)
        .tips(&["nondeterministic_output"])
        .doc(
            "2.6.0",
            "O(1)",
            "",
            "Returns the server's time in seconds and microseconds.",
        ),
    row(
        Group::Server,
        982,
        "shutdown",
        -1,
        ADMIN | NO_MULTI | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::Shutdown,
    )
    .doc(
        "1.0.0",
        "O(N) with N the bytes to flush",
        "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
        "Flushes and syncs the log and stops the server.",
    ),
    row(Group::Server, 983, "save", 1, ADMIN | NOSCRIPT | NO_MULTI | RESERVED, C::Save).doc(
        "1.0.0",
        "O(N) with N the number of keys",
        "",
        "Takes a snapshot and answers when it is complete.",
    ),
    row(Group::Server, 984, "bgsave", -1, ADMIN | NOSCRIPT | RESERVED, C::Bgsave).doc(
        "1.0.0",
        "O(1)",
        "[SCHEDULE]",
        "Starts a snapshot.",
    ),
    row(Group::Server, 985, "lastsave", 1, LOADING | STALE | FAST | RESERVED | WITHOUT_DATA, C::LastSave)
        .in_categories(&["@admin", "@dangerous"], &[])
        .tips(&["nondeterministic_output"])
        .doc(
            "1.0.0",
            "O(1)",
            "",
            "Returns the time of the latest snapshot in seconds since 1970.",
        ),
    row(Group::Server, 986, "waitaof", 4, BLOCKING | NOSCRIPT, C::WaitAof)
        .in_categories(&["@connection"], &["@blocking"])
        .doc(
            "7.2.0",
            "O(1)",
            "numlocal numreplicas timeout",
            "Waits until this connection's changes are durable.",
        ),
    row(Group::Server, 987, "wait", 3, BLOCKING | NOSCRIPT, C::Wait)
        .in_categories(&["@connection"], &["@blocking"])
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .doc(
            "3.0.0",
            "O(1)",
            "numreplicas timeout",
            "Waits until this connection's changes have reached replicas.",
        ),
    row(Group::Server, 988, "bgrewriteaof", 1, ADMIN | NOSCRIPT | NO_MULTI | RESERVED, C::Bgsave).doc(
        "1.0.0",
        "O(1)",
        "",
        "Starts a snapshot, after which the log before it can go.",
    ),
    Command::new(
        Group::Server,
        989,
        "config",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        KeySpec::None,
        Run::Container,
    )
    .doc("2.0.0", "Depends on the subcommand", "", "Commands about settings.")
    .with(CONFIG_SUBCOMMANDS),
    Command::new(
        Group::Server,
        990,
        "command",
        -1,
        LOADING | STALE | RESERVED | WITHOUT_DATA,
        KeySpec::None,
        Run::Outside(C::Command as u16),
    ).in_categories(&["@connection"], &[]).tips(&["nondeterministic_output_order"])
    .doc("2.8.13", "Depends on the subcommand", "", "Describes commands.")
    .with(COMMAND_SUBCOMMANDS),
    Command::new(
        Group::Server,
        991,
        "debug",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        KeySpec::None,
        Run::Container,
    ).in_categories(&["@admin", "@dangerous"], &[])
    .doc("1.0.0", "Depends on the subcommand", "", "Commands for tests.")
    .with(DEBUG_SUBCOMMANDS),
    Command::new(
        Group::Generic,
        1120,
        "migrate",
        -6,
        WRITE | NOSCRIPT | NO_MULTI | MOVABLE_KEYS,
        KeySpec::Migrated,
        Run::Outside(C::Migrate as u16),
    ).using(&["RW access delete", "RW access delete incomplete"])
    .in_categories(&["@dangerous"], &[])
    .tips(&["nondeterministic_output"])
    .doc(
        "2.6.0",
        "That of DUMP and DEL here, and of RESTORE at the target",
        "host port key destination-db timeout [COPY] [REPLACE] [AUTH auth-password] [AUTH2 username password] [KEYS key [key ...]]",
        "Moves keys to another server, here or Redis.",
    ),
    Command::new(Group::Scripting, 1084, "script", -2, 0, KeySpec::None, Run::Container)
        .doc("2.6.0", "Depends on the subcommand", "", "Commands about scripts.")
        .with(SCRIPT_SUBCOMMANDS),
    Command::new(Group::Scripting, 995, "function", -2, 0, KeySpec::None, Run::Container)
        .doc("7.0.0", "Depends on the subcommand", "", "Commands about functions.")
        .with(FUNCTION_SUBCOMMANDS),
    row(Group::Server, 992, "durable", -2, WRITE | MOVABLE_KEYS, C::Durable).doc(
        "tidemark 0.1.0",
        "That of the command",
        "command [arg [arg ...]]",
        "Runs a command and answers when its change is on disk.",
    ),
    row(Group::Server, 993, "lolwut", -1, READONLY | FAST, C::Lolwut).doc(
        "5.0.0",
        "O(1)",
        "[VERSION version]",
        "Shows the server's version and a piece of art.",
    ),
    row(Group::Server, 994, "role", 1, ADMIN | NOSCRIPT | LOADING | STALE | FAST, C::Role).doc(
        "2.8.12",
        "O(1)",
        "",
        "Returns the part that the server plays in replication.",
    ),
    row(Group::Counter, 410, "counter.top", -1, READONLY | RESERVED, C::CounterTop).doc(
        "tidemark 0.1.0",
        "O(N log N) with N the keys that are looked at, at most 128 for each of the 64 parts of the keyspace",
        "[count] [BY <MOVES | UNITS | CHURN>]",
        "Returns the counters of all databases that have moved most in the last minute or half of it, as moves chosen at random show them.",
    ),
];

const CONFIG_SUBCOMMANDS: &[Command] = &[
    row(
        Group::Server,
        1000,
        "get",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ConfigGet,
    )
    .doc("2.0.0", "O(1)", "parameter [parameter ...]", "Returns settings."),
    row(
        Group::Server,
        1001,
        "set",
        -4,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ConfigSet,
    )
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .doc("2.0.0", "O(1)", "parameter value [parameter value ...]", "Changes settings."),
    row(
        Group::Server,
        1002,
        "resetstat",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::ConfigResetStat,
    )
    .doc("2.0.0", "O(1)", "", "Sets the server's counters to zero."),
    row(Group::Server, 1003, "rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::ConfigRewrite).doc(
        "2.8.0",
        "O(1)",
        "",
        "Is refused: the server writes no configuration file.",
    ),
    row(
        Group::Server,
        1004,
        "help",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::Help,
    )
    .doc("5.0.0", "O(1)", "", "Lists the subcommands."),
];

const COMMAND_SUBCOMMANDS: &[Command] = &[
    row(Group::Server, 1010, "count", 2, LOADING | STALE | WITHOUT_DATA, C::CommandCount)
        .in_categories(&["@connection"], &[])
        .doc("2.8.13", "O(1)", "", "Counts the commands."),
    row(Group::Server, 1011, "docs", -2, LOADING | STALE | RESERVED | WITHOUT_DATA, C::CommandDocs)
        .in_categories(&["@connection"], &[])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "7.0.0",
            "O(N) with N the items answered",
            "[command-name [command-name ...]]",
            "Documents commands.",
        ),
    row(Group::Server, 1012, "info", -2, LOADING | STALE | WITHOUT_DATA, C::CommandInfo)
        .in_categories(&["@connection"], &[])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "2.8.13",
            "O(N) with N the items answered",
            "[command-name [command-name ...]]",
            "Describes commands.",
        ),
    row(Group::Server, 1013, "list", -2, LOADING | STALE | WITHOUT_DATA, C::CommandList)
        .in_categories(&["@connection"], &[])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "7.0.0",
            "O(N) with N the items answered",
            "[FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]",
            "Lists the names of commands.",
        ),
    row(Group::Server, 1014, "getkeys", -3, LOADING | STALE | WITHOUT_DATA, C::CommandGetKeys)
        .in_categories(&["@connection"], &[])
        .doc("2.8.13", "O(1)", "command [arg [arg ...]]", "Finds the keys among the arguments of a command."),
    row(
        Group::Server,
        1015,
        "getkeysandflags",
        -3,
        LOADING | STALE | WITHOUT_DATA,
        C::CommandGetKeysAndFlags,
    )
    .in_categories(&["@connection"], &[])
    .doc(
        "7.0.0",
        "O(1)",
        "command [arg [arg ...]]",
        "Finds the keys among the arguments of a command, and how it uses them.",
    ),
    row(Group::Server, 1016, "help", 2, LOADING | STALE | RESERVED | WITHOUT_DATA, C::Help)
        .in_categories(&["@connection"], &[])
        .doc("5.0.0", "O(1)", "", "Lists the subcommands."),
];

const SCRIPT_SUBCOMMANDS: &[Command] = &[
    row(Group::Scripting, 1085, "load", 3, NOSCRIPT | STALE, C::ScriptLoad)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("2.6.0", "O(N) with N the bytes of the script", "script", "Keeps a script and returns its SHA-1."),
    row(Group::Scripting, 1086, "exists", -3, NOSCRIPT, C::ScriptExists)
        .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
        .doc("2.6.0", "O(N) with N the scripts", "sha1 [sha1 ...]", "Says which scripts the server knows."),
    row(Group::Scripting, 1087, "flush", -2, NOSCRIPT, C::ScriptFlush)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("2.6.0", "O(N) with N the scripts", "[ASYNC | SYNC]", "Forgets all scripts."),
    row(Group::Scripting, 1088, "kill", 2, NOSCRIPT | STALE, C::ScriptKill)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
        .doc(
            "2.6.0",
            "O(1)",
            "",
            "Ends the scripts that have run longer than busy-reply-threshold, unless they have changed something.",
        ),
    row(Group::Scripting, 1089, "help", 2, LOADING | STALE | RESERVED | WITHOUT_DATA, C::Help).doc(
        "5.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

const fn on_libraries(id: u16, name: &'static str, arity: i16, flags: u32, action: LibraryAction) -> Command {
    let run = Run::Script(ScriptAction::Libraries(action));
    Command::new(Group::Scripting, id, name, arity, flags, KeySpec::All, run).at_level(level::FUNCTIONS)
}

const FUNCTION_SUBCOMMANDS: &[Command] = &[
    on_libraries(1110, "load", -3, NOSCRIPT | WRITE | DENYOOM, LibraryAction::Load)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc(
            "7.0.0",
            "O(N) with N the bytes of the code",
            "[REPLACE] function-code",
            "Loads a library of functions.",
        ),
    on_libraries(1111, "delete", 3, NOSCRIPT | WRITE, LibraryAction::Delete)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("7.0.0", "O(1)", "library-name", "Deletes a library and its functions."),
    on_libraries(1030, "flush", -2, NOSCRIPT | WRITE, LibraryAction::Flush)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("7.0.0", "O(N) with N the libraries", "[ASYNC | SYNC]", "Deletes all libraries and functions."),
    on_libraries(1112, "list", -2, NOSCRIPT | READONLY, LibraryAction::List)
        .in_categories(&[], &["@read"])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "7.0.0",
            "O(N) with N the functions",
            "[LIBRARYNAME library-name-pattern] [WITHCODE]",
            "Returns the libraries, and their functions.",
        ),
    on_libraries(1115, "dump", 2, NOSCRIPT | READONLY, LibraryAction::Dump).in_categories(&[], &["@read"]).doc(
        "7.0.0",
        "O(N) with N the bytes of the libraries",
        "",
        "Returns the libraries as bytes that FUNCTION RESTORE takes, here and in Redis 7.",
    ),
    on_libraries(1116, "restore", -3, NOSCRIPT | WRITE | DENYOOM, LibraryAction::Restore)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc(
            "7.0.0",
            "O(N) with N the bytes of the libraries",
            "serialized-value [FLUSH | APPEND | REPLACE]",
            "Loads the libraries that FUNCTION DUMP has returned, all or none.",
        ),
    row(Group::Scripting, 1113, "kill", 2, NOSCRIPT | STALE, C::FunctionKill)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
        .doc(
            "7.0.0",
            "O(1)",
            "",
            "Ends the functions that have run longer than busy-reply-threshold, unless they have changed something.",
        ),
    row(Group::Scripting, 1114, "stats", 2, NOSCRIPT | STALE, C::FunctionStats)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc("7.0.0", "O(1)", "", "Returns the function that runs, and how many there are."),
    row(Group::Scripting, 1031, "help", 2, LOADING | STALE | RESERVED | WITHOUT_DATA, C::Help).doc(
        "7.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

const DEBUG_SUBCOMMANDS: &[Command] = &[
    row(Group::Server, 1020, "digest", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::DebugDigest).doc(
        "1.0.0",
        "O(N) with N the number of keys",
        "",
        "Returns a digest of the whole state, equal for equal states.",
    ),
    row(Group::Server, 1021, "sleep", 3, ADMIN | NOSCRIPT | LOADING | STALE, C::DebugSleep).doc(
        "1.0.0",
        "O(1)",
        "seconds",
        "Stops the connection's thread for some time.",
    ),
    row(
        Group::Server,
        1022,
        "set-active-expire",
        3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        C::DebugSetActiveExpire,
    )
    .doc("1.0.0", "O(1)", "0 | 1", "Stops or restarts the background removal of expired keys."),
    row(Group::Server, 1023, "jmap", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::DebugNothing).doc(
        "1.0.0",
        "O(1)",
        "",
        "Does nothing.",
    ),
    row(Group::Server, 1026, "object", 3, ADMIN | NOSCRIPT | LOADING | STALE, C::DebugObject).doc(
        "1.0.0",
        "O(N) with N the bytes of the value",
        "key",
        "Describes how a key's value is kept.",
    ),
    row(Group::Server, 1025, "error", 3, ADMIN | NOSCRIPT | LOADING | STALE, C::DebugError).doc(
        "1.0.0",
        "O(1)",
        "text",
        "Answers with an error of this text.",
    ),
    row(
        Group::Server,
        1024,
        "help",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | RESERVED | WITHOUT_DATA,
        C::Help,
    )
    .doc("1.0.0", "O(1)", "", "Lists the subcommands."),
];
