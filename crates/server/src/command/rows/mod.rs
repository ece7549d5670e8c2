//! The command table: the engine's rows, and those of the commands that the server executes because
//! they concern connections or the process.

mod client;
mod cluster;
mod connection;
mod pubsub;
mod sentinel;
mod server;
mod subscriptions;
mod transactions;
mod watched_reads;

use std::sync::LazyLock;
use tidemark_engine::command::{self, CommandTable, Group, KeySpec};
use tidemark_engine::{Command, Run};

/// Declares the enum, with a list of its variants by number.
macro_rules! connection_commands {
    ($($name:ident,)+) => {
        /// A command that the server executes. Each variant is the command of its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ConnectionCommand {
            $($name,)+
        }

        /// The variants, each at its own number.
        const ALL: &[ConnectionCommand] = &[$(ConnectionCommand::$name,)+];
    };
}

connection_commands! {
    Asking,
    Auth,
    Bgsave,
    Changes,
    ClientCaching,
    ClientGetName,
    ClientGetRedir,
    ClientId,
    ClientInfo,
    ClientKill,
    ClientList,
    ClientNoEvict,
    ClientNoTouch,
    ClientPause,
    ClientReply,
    ClientSetInfo,
    ClientSetName,
    ClientTracking,
    ClientTrackingInfo,
    ClientUnblock,
    ClientUnpause,
    ClusterFailover,
    ClusterForget,
    ClusterInfo,
    ClusterJoin,
    ClusterKeySlot,
    ClusterLinks,
    ClusterMyId,
    ClusterMyShardId,
    ClusterNodes,
    ClusterShards,
    ClusterSlots,
    ClusterStatus,
    ClusterTransfer,
    ClusterRecover,
    ClusterReport,
    Command,
    CommandCount,
    CommandDocs,
    CommandGetKeys,
    CommandGetKeysAndFlags,
    CommandInfo,
    CommandList,
    ConfigGet,
    ConfigResetStat,
    ConfigRewrite,
    ConfigSet,
    CounterTop,
    DebugDigest,
    DebugError,
    DebugNothing,
    DebugObject,
    DebugSetActiveExpire,
    DebugSleep,
    Discard,
    Durable,
    Echo,
    EmitAck,
    EmitReconnect,
    Exec,
    Hello,
    FunctionKill,
    FunctionStats,
    Help,
    Info,
    LastSave,
    Lolwut,
    Migrate,
    Multi,
    Once,
    Ping,
    Psubscribe,
    Publish,
    PubsubChannels,
    PubsubNumPat,
    PubsubNumSub,
    PubsubShardChannels,
    PubsubShardNumSub,
    Punsubscribe,
    Quit,
    ReadOnly,
    ReadWrite,
    Reset,
    Role,
    Save,
    Select,
    ScriptExists,
    ScriptFlush,
    ScriptKill,
    ScriptLoad,
    SentinelCkQuorum,
    SentinelGetMasterAddrByName,
    SentinelMaster,
    SentinelMasters,
    SentinelMyId,
    SentinelReplicas,
    SentinelSentinels,
    Shutdown,
    Spublish,
    Ssubscribe,
    Subscribe,
    Sunsubscribe,
    Time,
    Unsubscribe,
    Unwatch,
    Wait,
    WaitAof,
    Watch,
    WatchRead,
    Watches,
}

/// Creates a row without keys.
const fn row(
    group: Group,
    id: u16,
    name: &'static str,
    arity: i16,
    flags: u32,
    run: ConnectionCommand,
) -> Command {
    Command::new(group, id, name, arity, flags, KeySpec::None, Run::Outside(run as u16))
}

impl ConnectionCommand {
    /// Returns the command with a number that a row holds.
    #[inline]
    pub(crate) fn of_number(number: u16) -> Self {
        ALL[usize::from(number)]
    }
}

/// Returns which command of the server a row is, if it is one.
#[inline]
pub(crate) fn connection_command_of(row: &Command) -> Option<ConnectionCommand> {
    match row.run {
        Run::Outside(number) => Some(ConnectionCommand::of_number(number)),
        Run::Keys(_) | Run::Script(_) | Run::Container => None,
    }
}

/// All commands of the server, in the order of their chapters; watched reads come last.
static TABLE: LazyLock<CommandTable> = LazyLock::new(|| {
    let own = [
        connection::COMMANDS,
        pubsub::COMMANDS,
        transactions::COMMANDS,
        subscriptions::COMMANDS,
        server::COMMANDS,
        cluster::COMMANDS,
        sentinel::COMMANDS,
    ];
    let rows = command::all().chain(own.into_iter().flatten()).chain(watched_reads::COMMANDS.iter());
    CommandTable::new(rows)
});

/// Returns the table of all commands that clients can send.
#[inline]
pub fn command_table() -> &'static CommandTable {
    &TABLE
}

pub use watched_reads::{is_watching, read_of};
