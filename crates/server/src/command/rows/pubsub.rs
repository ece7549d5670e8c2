//! Rows of publish and subscribe.

use super::{ConnectionCommand as C, row};
use tidemark_engine::command::flags::{
    FAST, LOADING, NOSCRIPT, PUBSUB, RESERVED, STALE, WHILE_SUBSCRIBED, WITHOUT_DATA,
};
use tidemark_engine::command::{Group, KeySpec};
use tidemark_engine::{Command, Run};

/// Rows of publish and subscribe.
pub(super) const COMMANDS: &[Command] = &[
    row(
        Group::PubSub,
        940,
        "subscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Subscribe,
    )
    .doc(
        "2.0.0",
        "O(N) with N the number of channels",
        "channel [channel ...]",
        "Listens for messages published to channels.",
    ),
    row(
        Group::PubSub,
        941,
        "unsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Unsubscribe,
    )
    .doc(
        "2.0.0",
        "O(N) with N the number of channels",
        "[channel [channel ...]]",
        "Stops listening to channels.",
    ),
    row(
        Group::PubSub,
        942,
        "psubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Psubscribe,
    )
    .doc(
        "2.0.0",
        "O(N) with N the number of patterns",
        "pattern [pattern ...]",
        "Listens for messages published to channels that match patterns.",
    ),
    row(
        Group::PubSub,
        943,
        "punsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Punsubscribe,
    )
    .doc(
        "2.0.0",
        "O(N) with N the number of patterns",
        "[pattern [pattern ...]]",
        "Stops listening to patterns.",
    ),
    row(Group::PubSub, 944, "publish", 3, PUBSUB | LOADING | STALE | FAST | WITHOUT_DATA, C::Publish).doc(
        "2.0.0",
        "O(N+M) with N the listeners of the channel and M the patterns",
        "channel message",
        "Sends a message to the listeners of a channel.",
    ),
    Command::new(Group::PubSub, 945, "pubsub", -2, PUBSUB | LOADING | STALE, KeySpec::None, Run::Container)
        .doc("2.8.0", "Depends on the subcommand", "", "Commands about listeners.")
        .with(PUBSUB_SUBCOMMANDS),
    row(
        Group::PubSub,
        960,
        "ssubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Ssubscribe,
    )
    .doc(
        "7.0.0",
        "O(N) with N the number of channels",
        "shardchannel [shardchannel ...]",
        "Listens for messages published to shard channels.",
    ),
    row(
        Group::PubSub,
        961,
        "sunsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE | WITHOUT_DATA | WHILE_SUBSCRIBED,
        C::Sunsubscribe,
    )
    .doc(
        "7.0.0",
        "O(N) with N the number of channels",
        "[shardchannel [shardchannel ...]]",
        "Stops listening to shard channels.",
    ),
    row(Group::PubSub, 962, "spublish", 3, PUBSUB | LOADING | STALE | FAST | WITHOUT_DATA, C::Spublish).doc(
        "7.0.0",
        "O(N) with N the listeners of the channel",
        "shardchannel message",
        "Sends a message to the listeners of a shard channel.",
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
    row(Group::PubSub, 955, "help", 2, PUBSUB | LOADING | STALE | RESERVED | WITHOUT_DATA, C::Help).doc(
        "6.2.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];
