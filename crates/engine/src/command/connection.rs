//! Rows of commands on connections and the whole server. Their handlers are in the server crate.

use super::{Command, ConnectionCommand, ConnectionCommand as C, Group, KeySpec, Run, flags::*};

const fn row(
    group: Group,
    id: u16,
    name: &'static str,
    arity: i16,
    flags: u32,
    run: ConnectionCommand,
) -> Command {
    Command::new(group, id, name, arity, flags, KeySpec::None, Run::Connection(run))
}

pub(super) const COMMANDS: &[Command] = &[
    row(Group::Connection, 900, "ping", -1, FAST, C::Ping)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc(
            "1.0.0",
            "O(1)",
            "[message]",
            "Answers PONG, or the message.",
        ),
    row(Group::Connection, 901, "echo", 2, FAST | LOADING | STALE, C::Echo).doc(
        "1.0.0",
        "O(1)",
        "message",
        "Answers the message.",
    ),
    row(Group::Connection, 902, "select", 2, LOADING | STALE | FAST, C::Select).doc(
        "1.0.0",
        "O(1)",
        "index",
        "Selects the database for the commands that follow.",
    ),
    row(Group::Connection, 903, "auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH, C::Auth).doc(
        "1.0.0",
        "O(1)",
        "[username] password",
        "Authenticates the connection.",
    ),
    row(Group::Connection, 904, "hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH, C::Hello).doc(
        "6.0.0",
        "O(1)",
        "[protover [AUTH username password] [SETNAME clientname]]",
        "Chooses the protocol and describes the server.",
    ),
    row(Group::Connection, 905, "quit", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH, C::Quit).doc(
        "1.0.0",
        "O(1)",
        "",
        "Closes the connection.",
    ),
    row(Group::Connection, 906, "reset", 1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH, C::Reset).doc(
        "6.2.0",
        "O(1)",
        "",
        "Puts the connection back into its first state.",
    ),
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
    .with(CLIENT_SUBCOMMANDS),
    row(Group::PubSub, 940, "subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, C::Subscribe).doc(
        "2.0.0",
        "O(N) with N the number of channels",
        "channel [channel ...]",
        "Listens for messages published to channels.",
    ),
    row(Group::PubSub, 941, "unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, C::Unsubscribe).doc(
        "2.0.0",
        "O(N) with N the number of channels",
        "[channel [channel ...]]",
        "Stops listening to channels.",
    ),
    row(Group::PubSub, 942, "psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, C::Psubscribe).doc(
        "2.0.0",
        "O(N) with N the number of patterns",
        "pattern [pattern ...]",
        "Listens for messages published to channels that match patterns.",
    ),
    row(Group::PubSub, 943, "punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, C::Punsubscribe).doc(
        "2.0.0",
        "O(N) with N the number of patterns",
        "[pattern [pattern ...]]",
        "Stops listening to patterns.",
    ),
    row(Group::PubSub, 944, "publish", 3, PUBSUB | LOADING | STALE | FAST, C::Publish).doc(
        "2.0.0",
        "O(N+M) with N the listeners of the channel and M the patterns",
        "channel message",
        "Sends a message to the listeners of a channel.",
    ),
    Command::new(Group::PubSub, 945, "pubsub", -2, PUBSUB | LOADING | STALE, KeySpec::None, Run::Container)
        .doc("2.8.0", "Depends on the subcommand", "", "Commands about listeners.")
        .with(PUBSUB_SUBCOMMANDS),
    row(Group::PubSub, 960, "ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, C::Ssubscribe).doc(
        "7.0.0",
        "O(N) with N the number of channels",
        "shardchannel [shardchannel ...]",
        "Listens for messages published to shard channels.",
    ),
    row(Group::PubSub, 961, "sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, C::Sunsubscribe).doc(
        "7.0.0",
        "O(N) with N the number of channels",
        "[shardchannel [shardchannel ...]]",
        "Stops listening to shard channels.",
    ),
    row(Group::PubSub, 962, "spublish", 3, PUBSUB | LOADING | STALE | FAST, C::Spublish).doc(
        "7.0.0",
        "O(N) with N the listeners of the channel",
        "shardchannel message",
        "Sends a message to the listeners of a shard channel.",
    ),
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
        Run::Connection(C::Watch),
    ).using(&["RO"])
    .doc(
        "2.2.0",
        "O(1) for each key",
        "key [key ...]",
        "Lets the next transaction fail if one of the keys changes before.",
    ),
    row(Group::Transactions, 974, "unwatch", -1, NOSCRIPT | LOADING | STALE | FAST, C::Unwatch).doc(
        "2.2.0",
        "O(1) for each watched key or subscription",
        "[NAMED name [name ...] | CHANNEL channel [subscription ...] | QUERY id [id ...] | subscription [subscription ...]]",
        "Forgets the keys watched for a transaction; with arguments, ends subscriptions to reads, their names, what is \
         published on a channel, or reads that any client watches.",
    ),
    row(Group::PubSub, 963, "watches", -1, PUBSUB | NOSCRIPT | NO_MULTI | FAST, C::Watches).doc(
        "tidemark 0.1.0",
        "O(N) with N the number of the connection's subscriptions, of names, of channels' reads, or of reads",
        "[NAMED [pattern] | CHANNELS [pattern] | ALL [pattern]]",
        "Lists the reads that the connection watches, with how far each has got; the server's named subscriptions; those that \
         are published on channels; or the reads that any client watches, the costliest first.",
    ),
    row(Group::PubSub, 946, "changes", -2, PUBSUB | NOSCRIPT | NO_MULTI, C::Changes).doc(
        "tidemark 0.1.0",
        "O(N) with N the bytes of the log from there on, which another thread reads",
        "FROM <lsn | $> [PREFIX prefix [PREFIX prefix ...]] [TYPE type [TYPE type ...]] [DB index [DB index ...]] \
         [FORMAT <JSON | BINARY>] [PROGRESS milliseconds] | STOP",
        "Follows the log: every durable change behind an LSN, and those to come; STOP ends it.",
    ),
    row(Group::PubSub, 964, "emitreconnect", -4, PUBSUB | NOSCRIPT | NO_MULTI, C::EmitReconnect).doc(
        "tidemark 0.1.0",
        "O(log N) with N the number of retained emissions",
        "key subscription lsn [| option ...]",
        "Goes on with a subscription behind the last emission that was received.",
    ),
    row(Group::PubSub, 965, "emitack", 4, PUBSUB | NOSCRIPT | FAST, C::EmitAck).doc(
        "tidemark 0.1.0",
        "O(1)",
        "key subscription lsn",
        "Says that the emissions of a subscription up to an LSN have been processed.",
    ),
    row(Group::Server, 980, "info", -1, LOADING | STALE, C::Info)
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
    row(Group::Server, 982, "shutdown", -1, ADMIN | NO_MULTI | NOSCRIPT | LOADING | STALE, C::Shutdown).doc(
        "1.0.0",
        "O(N) with N the bytes to flush",
        "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
        "Flushes and syncs the log and stops the server.",
    ),
    row(Group::Server, 983, "save", 1, ADMIN | NOSCRIPT | NO_MULTI, C::Save).doc(
        "1.0.0",
        "O(N) with N the number of keys",
        "",
        "Takes a snapshot and answers when it is complete.",
    ),
    row(Group::Server, 984, "bgsave", -1, ADMIN | NOSCRIPT, C::Bgsave).doc(
        "1.0.0",
        "O(1)",
        "[SCHEDULE]",
        "Starts a snapshot.",
    ),
    row(Group::Server, 985, "lastsave", 1, LOADING | STALE | FAST, C::LastSave)
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
    row(Group::Server, 988, "bgrewriteaof", 1, ADMIN | NOSCRIPT | NO_MULTI, C::Bgsave).doc(
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
        LOADING | STALE,
        KeySpec::None,
        Run::Connection(C::Command),
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
    Command::new(Group::Scripting, 995, "function", -2, 0, KeySpec::None, Run::Container)
        .doc("7.0.0", "Depends on the subcommand", "", "Commands about functions, of which there are none.")
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
];

const CLIENT_SUBCOMMANDS: &[Command] = &[
    row(Group::Connection, 920, "id", 2, NOSCRIPT | LOADING | STALE, C::ClientId).doc(
        "5.0.0",
        "O(1)",
        "",
        "Returns the number of the connection.",
    ),
    row(Group::Connection, 921, "setname", 3, NOSCRIPT | LOADING | STALE, C::ClientSetName).doc(
        "2.6.9",
        "O(1)",
        "connection-name",
        "Names the connection.",
    ),
    row(Group::Connection, 922, "getname", 2, NOSCRIPT | LOADING | STALE, C::ClientGetName).doc(
        "2.6.9",
        "O(1)",
        "",
        "Returns the name of the connection.",
    ),
    row(Group::Connection, 923, "setinfo", 4, NOSCRIPT | LOADING | STALE, C::ClientSetInfo).doc(
        "7.2.0",
        "O(1)",
        "attr value",
        "Records the name or version of the client library.",
    ),
    row(Group::Connection, 924, "list", -2, ADMIN | NOSCRIPT | LOADING | STALE, C::ClientList)
        .tips(&["nondeterministic_output"])
        .doc(
            "2.4.0",
            "O(N) with N the number of connections",
            "[TYPE normal | master | replica | pubsub] [ID client-id [client-id ...]]",
            "Lists open connections.",
        ),
    row(Group::Connection, 925, "info", 2, NOSCRIPT | LOADING | STALE, C::ClientInfo)
        .tips(&["nondeterministic_output"])
        .doc("6.2.0", "O(1)", "", "Describes the connection."),
    row(Group::Connection, 926, "kill", -3, ADMIN | NOSCRIPT | LOADING | STALE, C::ClientKill).doc(
        "2.4.0",
        "O(N) with N the number of connections",
        "old-format | filter [filter ...]",
        "Closes connections by address, id, type, user or laddr.",
    ),
    row(Group::Connection, 927, "reply", 3, NOSCRIPT | LOADING | STALE, C::ClientReply).doc(
        "3.2.0",
        "O(1)",
        "ON | OFF | SKIP",
        "Turns answers on or off.",
    ),
    row(Group::Connection, 928, "no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE, C::ClientNoEvict).doc(
        "7.0.0",
        "O(1)",
        "ON | OFF",
        "Keeps the connection when memory is short.",
    ),
    row(Group::Connection, 929, "no-touch", 3, NOSCRIPT | LOADING | STALE, C::ClientNoTouch).doc(
        "7.2.0",
        "O(1)",
        "ON | OFF",
        "Lets commands leave keys' access times alone.",
    ),
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
        "Returns the number of the client that is told instead of this one.",
    ),
    row(Group::Connection, 937, "trackinginfo", 2, NOSCRIPT | LOADING | STALE, C::ClientTrackingInfo).doc(
        "6.2.0",
        "O(1)",
        "",
        "Describes what CLIENT TRACKING has asked for.",
    ),
    row(Group::Connection, 931, "help", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::Help).doc(
        "5.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

const PUBSUB_SUBCOMMANDS: &[Command] = &[
    row(Group::PubSub, 950, "channels", -2, PUBSUB | LOADING | STALE, C::PubsubChannels).doc(
        "2.8.0",
        "O(N) with N the items answered",
        "[pattern]",
        "Lists channels that someone listens to.",
    ),
    row(Group::PubSub, 951, "numsub", -2, PUBSUB | LOADING | STALE, C::PubsubNumSub).doc(
        "2.8.0",
        "O(N) with N the items answered",
        "[channel [channel ...]]",
        "Counts the listeners of channels.",
    ),
    row(Group::PubSub, 952, "numpat", 2, PUBSUB | LOADING | STALE, C::PubsubNumPat).doc(
        "2.8.0",
        "O(1)",
        "",
        "Counts the patterns that someone listens to.",
    ),
    row(Group::PubSub, 953, "shardchannels", -2, PUBSUB | LOADING | STALE, C::PubsubShardChannels).doc(
        "7.0.0",
        "O(N) with N the items answered",
        "[pattern]",
        "Lists shard channels that someone listens to.",
    ),
    row(Group::PubSub, 954, "shardnumsub", -2, PUBSUB | LOADING | STALE, C::PubsubShardNumSub).doc(
        "7.0.0",
        "O(N) with N the items answered",
        "[shardchannel [shardchannel ...]]",
        "Counts the listeners of shard channels.",
    ),
    row(Group::PubSub, 955, "help", 2, PUBSUB | LOADING | STALE, C::Help).doc(
        "6.2.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

const CONFIG_SUBCOMMANDS: &[Command] = &[
    row(Group::Server, 1000, "get", -3, ADMIN | NOSCRIPT | LOADING | STALE, C::ConfigGet).doc(
        "2.0.0",
        "O(1)",
        "parameter [parameter ...]",
        "Returns settings.",
    ),
    row(Group::Server, 1001, "set", -4, ADMIN | NOSCRIPT | LOADING | STALE, C::ConfigSet)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("2.0.0", "O(1)", "parameter value [parameter value ...]", "Changes settings."),
    row(Group::Server, 1002, "resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::ConfigResetStat).doc(
        "2.0.0",
        "O(1)",
        "",
        "Sets the server's counters to zero.",
    ),
    row(Group::Server, 1003, "rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::ConfigRewrite).doc(
        "2.8.0",
        "O(1)",
        "",
        "Is refused: the server writes no configuration file.",
    ),
    row(Group::Server, 1004, "help", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::Help).doc(
        "5.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

const COMMAND_SUBCOMMANDS: &[Command] = &[
    row(Group::Server, 1010, "count", 2, LOADING | STALE, C::CommandCount)
        .in_categories(&["@connection"], &[])
        .doc("2.8.13", "O(1)", "", "Counts the commands."),
    row(Group::Server, 1011, "docs", -2, LOADING | STALE, C::CommandDocs)
        .in_categories(&["@connection"], &[])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "7.0.0",
            "O(N) with N the items answered",
            "[command-name [command-name ...]]",
            "Documents commands.",
        ),
    row(Group::Server, 1012, "info", -2, LOADING | STALE, C::CommandInfo)
        .in_categories(&["@connection"], &[])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "2.8.13",
            "O(N) with N the items answered",
            "[command-name [command-name ...]]",
            "Describes commands.",
        ),
    row(Group::Server, 1013, "list", -2, LOADING | STALE, C::CommandList)
        .in_categories(&["@connection"], &[])
        .tips(&["nondeterministic_output_order"])
        .doc(
            "7.0.0",
            "O(N) with N the items answered",
            "[FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]",
            "Lists the names of commands.",
        ),
    row(Group::Server, 1014, "getkeys", -3, LOADING | STALE, C::CommandGetKeys)
        .in_categories(&["@connection"], &[])
        .doc("2.8.13", "O(1)", "command [arg [arg ...]]", "Finds the keys among the arguments of a command."),
    row(Group::Server, 1015, "getkeysandflags", -3, LOADING | STALE, C::CommandGetKeysAndFlags)
        .in_categories(&["@connection"], &[])
        .doc(
            "7.0.0",
            "O(1)",
            "command [arg [arg ...]]",
            "Finds the keys among the arguments of a command, and how it uses them.",
        ),
    row(Group::Server, 1016, "help", 2, LOADING | STALE, C::Help).in_categories(&["@connection"], &[]).doc(
        "5.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

const FUNCTION_SUBCOMMANDS: &[Command] = &[
    row(Group::Scripting, 1030, "flush", -2, NOSCRIPT, C::FunctionFlush)
        .in_categories(&["@write"], &[])
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("7.0.0", "O(1)", "[ASYNC | SYNC]", "Does nothing: there are no functions to delete."),
    row(Group::Scripting, 1031, "help", 2, LOADING | STALE, C::Help).doc(
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
    .doc("1.0.0", "O(1)", "0 | 1", "Stops or restarts the removal of keys that nobody touches."),
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
    row(Group::Server, 1024, "help", 2, ADMIN | NOSCRIPT | LOADING | STALE, C::Help).doc(
        "1.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];
