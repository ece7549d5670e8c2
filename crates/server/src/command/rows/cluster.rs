//! Rows of commands about the group as a Redis Cluster.

use super::{ConnectionCommand as C, row};
use tidemark_engine::command::flags::{
    ADMIN, FAST, LOADING, NO_MULTI, NOSCRIPT, RESERVED, STALE, WITHOUT_DATA,
};
use tidemark_engine::command::{COUNT_KEYS_IN_SLOT, Group, KEYS_IN_SLOT, KeySpec};
use tidemark_engine::{Command, Run};

/// Rows of commands about the group as a Redis Cluster.
pub(super) const COMMANDS: &[Command] =
    &[
        Command::new(Group::Cluster, 1040, "cluster", -2, 0, KeySpec::None, Run::Container)
            .doc("3.0.0", "Depends on the subcommand", "", "Commands about the group, as a Redis Cluster.")
            .with(SUBCOMMANDS),
        row(Group::Connection, 1041, "readonly", 1, LOADING | STALE | FAST | WITHOUT_DATA, C::ReadOnly).doc(
            "3.0.0",
            "O(1)",
            "",
            "Lets this connection read a follower.",
        ),
        row(Group::Connection, 1042, "readwrite", 1, LOADING | STALE | FAST | WITHOUT_DATA, C::ReadWrite)
            .doc("3.0.0", "O(1)", "", "Ends what READONLY began."),
        row(Group::Connection, 1043, "asking", 1, FAST, C::Asking).doc(
            "3.0.0",
            "O(1)",
            "",
            "Is accepted in a group, where no slot moves.",
        ),
    ];

/// Creates the row of a subcommand that describes the group.
const fn view(id: u16, name: &'static str, run: C) -> Command {
    row(Group::Cluster, id, name, 2, STALE | RESERVED | WITHOUT_DATA, run)
}

/// Creates the row of a subcommand that changes the group.
const fn change(id: u16, name: &'static str, arity: i16, run: C) -> Command {
    row(Group::Cluster, id, name, arity, ADMIN | NO_MULTI | NOSCRIPT | STALE | WITHOUT_DATA, run)
}

const SUBCOMMANDS: &[Command] = &[
    change(1055, "failover", -2, C::ClusterFailover).doc(
        "3.0.0",
        "O(1)",
        "[FORCE | TAKEOVER]",
        "Begins to ask the leader to give this member the lead.",
    ),
    change(1056, "forget", 3, C::ClusterForget).doc(
        "3.0.0",
        "O(1)",
        "node",
        "Begins to remove a member; CLUSTER STATUS says how it ended.",
    ),
    change(1057, "join", 7, C::ClusterJoin).doc(
        "1.0.0",
        "O(1)",
        "node peers clients directory cluster",
        "Begins to add a member; CLUSTER STATUS says how it ended.",
    ),
    change(1095, "recover", 3, C::ClusterRecover).doc(
        "1.0.0",
        "O(1)",
        "VOTE | ALONE",
        "Accepts a loss where no leader can be elected: this member votes with what it has, or begins a cluster \
         of its own.",
    ),
    change(1270, "report", 5, C::ClusterReport).doc(
        "1.0.0",
        "O(1)",
        "node directory problem",
        "Notes why a member cannot take part; CLUSTER STATUS shows it until this member reaches that one.",
    ),
    row(Group::Cluster, 1058, "status", 2, ADMIN | LOADING | STALE | WITHOUT_DATA, C::ClusterStatus)
        .tips(&["nondeterministic_output"])
        .doc("1.0.0", "O(N) with N the members", "", "Describes the group as this member sees it."),
    change(1059, "transfer", 3, C::ClusterTransfer).doc(
        "1.0.0",
        "O(1)",
        "node",
        "Begins to give another member the lead; CLUSTER STATUS says how it ended.",
    ),
    view(1044, "info", C::ClusterInfo).tips(&["nondeterministic_output"]).doc(
        "3.0.0",
        "O(1)",
        "",
        "Describes the state of the group.",
    ),
    COUNT_KEYS_IN_SLOT,
    KEYS_IN_SLOT,
    row(Group::Cluster, 1045, "keyslot", 3, STALE | WITHOUT_DATA, C::ClusterKeySlot).doc(
        "3.0.0",
        "O(N) with N the bytes of the key",
        "key",
        "Returns the slot of a key.",
    ),
    view(1046, "links", C::ClusterLinks).tips(&["nondeterministic_output"]).doc(
        "7.0.0",
        "O(1)",
        "",
        "Returns no links: members have no cluster bus.",
    ),
    view(1047, "myid", C::ClusterMyId).doc("3.0.0", "O(1)", "", "Returns the name of this member."),
    view(1048, "myshardid", C::ClusterMyShardId).tips(&["nondeterministic_output"]).doc(
        "7.2.0",
        "O(1)",
        "",
        "Returns the name of the shard, which all members share.",
    ),
    view(1049, "nodes", C::ClusterNodes).tips(&["nondeterministic_output"]).doc(
        "3.0.0",
        "O(N) with N the members",
        "",
        "Lists the members as lines.",
    ),
    view(1050, "shards", C::ClusterShards).tips(&["nondeterministic_output"]).doc(
        "7.0.0",
        "O(N) with N the members",
        "",
        "Lists the members, and the slots of the group.",
    ),
    view(1051, "slots", C::ClusterSlots).tips(&["nondeterministic_output"]).doc(
        "3.0.0",
        "O(N) with N the members",
        "",
        "Returns which members serve which slots.",
    ),
    row(Group::Cluster, 1052, "help", 2, LOADING | STALE | RESERVED | WITHOUT_DATA, C::Help).doc(
        "5.0.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];
