//! Rows of commands about the group as Redis Sentinel.

use super::{ConnectionCommand as C, row};
use tidemark_engine::command::flags::{LOADING, RESERVED, STALE, WITHOUT_DATA};
use tidemark_engine::command::{Group, KeySpec};
use tidemark_engine::{Command, Run};

/// Rows of commands about the group as Redis Sentinel.
pub(super) const COMMANDS: &[Command] =
    &[Command::new(Group::Cluster, 1060, "sentinel", -2, 0, KeySpec::None, Run::Container)
        .doc("2.8.4", "Depends on the subcommand", "", "Commands about the group, as Redis Sentinel.")
        .with(SUBCOMMANDS)];

/// Creates the row of a subcommand that describes the group.
const fn view(id: u16, name: &'static str, arity: i16, run: C) -> Command {
    row(Group::Cluster, id, name, arity, LOADING | STALE | RESERVED | WITHOUT_DATA, run)
        .tips(&["nondeterministic_output"])
}

const SUBCOMMANDS: &[Command] = &[
    view(1061, "ckquorum", 3, C::SentinelCkQuorum).doc(
        "2.8.4",
        "O(N) with N the members",
        "name",
        "Says whether this member reaches most members.",
    ),
    view(1062, "get-master-addr-by-name", 3, C::SentinelGetMasterAddrByName).doc(
        "2.8.4",
        "O(N) with N the members",
        "name",
        "Returns the address of the leader, or of the last one that was known.",
    ),
    view(1063, "master", 3, C::SentinelMaster).doc(
        "2.8.4",
        "O(N) with N the members",
        "name",
        "Describes the leader.",
    ),
    view(1064, "masters", 2, C::SentinelMasters).doc(
        "2.8.4",
        "O(N) with N the members",
        "",
        "Describes the leader, in a list.",
    ),
    view(1065, "myid", 2, C::SentinelMyId).doc("6.2.0", "O(1)", "", "Returns the name of this member."),
    view(1066, "replicas", 3, C::SentinelReplicas).doc(
        "5.0.0",
        "O(N) with N the members",
        "name",
        "Lists the followers.",
    ),
    view(1067, "sentinels", 3, C::SentinelSentinels).doc(
        "2.8.4",
        "O(N) with N the members",
        "name",
        "Lists the other members, which all answer as sentinels.",
    ),
    view(1068, "slaves", 3, C::SentinelReplicas).doc(
        "2.8.0",
        "O(N) with N the members",
        "name",
        "Lists the followers: the older name of REPLICAS.",
    ),
    row(Group::Cluster, 1069, "help", 2, LOADING | STALE | RESERVED | WITHOUT_DATA, C::Help).doc(
        "6.2.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];
