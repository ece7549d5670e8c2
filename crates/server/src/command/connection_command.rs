//! Commands about connections and the server: passes each to the module that implements it.

use crate::command::rows::{ConnectionCommand as C, is_watching};
use crate::command::{
    changes_command, client_command, cluster_change, cluster_command, command_command, config_command,
    counter_command, handshake, info, sentinel_command, server_command, subscribe_command, tracking_command,
    transaction, watch_command,
};
use crate::context::Context;
use crate::events::publication::Kind;
use crate::migrate;
use crate::net::inbox::Unblock;
use crate::scripts::script_command;
use crate::session::Session;
use crate::wait;
use tidemark_engine::{Command, CommandError};

/// Runs a command of the connection; an error replaces anything that the command wrote.
pub(crate) fn run(
    session: &mut Session,
    which: C,
    command: &'static Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) {
    let mark = session.outbox.reply.len();
    if let Err(error) = dispatch(session, which, command, args, cx) {
        session.outbox.rewrite(mark);
        session.outbox.reply.error(&explained(command, args, error));
    }
}

/// Returns the error with the argument that does not fit, if the command is one of ours. A watched
/// read keeps Redis's messages, as the read itself.
#[cold]
fn explained(command: &'static Command, args: &[&[u8]], error: CommandError) -> CommandError {
    if is_watching(command) { error } else { command.explain(args, error) }
}

/// Like [`run`], within `EXEC`: a command that would wait answers immediately as if timed out.
pub(crate) fn run_in_transaction(
    session: &mut Session,
    which: C,
    command: &'static Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) {
    run(session, which, command, args, cx);
    wait::end(session, Unblock::Timeout, cx);
}

fn dispatch(
    session: &mut Session,
    which: C,
    command: &'static Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    match which {
        C::Ping => handshake::ping(session, args),
        C::Echo => handshake::echo(session, args),
        C::Hello => handshake::hello(session, args, cx),
        C::Auth => handshake::auth(session, args, cx),
        C::Select => handshake::select(session, args),
        C::Quit => handshake::quit(session),
        C::Reset => handshake::reset(session, cx),

        C::ClientId => client_command::id(session),
        C::ClientGetName => client_command::get_name(session),
        C::ClientSetName => client_command::set_name(session, args),
        C::ClientSetInfo => client_command::set_info(session, args),
        C::ClientInfo => client_command::info(session, args),
        C::ClientList => client_command::list(session, args, cx),
        C::ClientKill => client_command::kill(session, args, cx),
        C::ClientReply => client_command::reply(session, args),
        C::ClientNoEvict => client_command::no_evict(session, args),
        C::ClientNoTouch => client_command::no_touch(session, args),
        C::ClientPause => client_command::pause(session, args, cx),
        C::ClientUnpause => client_command::unpause(session, cx),
        C::ClientUnblock => client_command::unblock(session, args, cx),
        C::ClientTracking => tracking_command::tracking(session, args, cx),
        C::ClientCaching => tracking_command::caching(session, args),
        C::ClientGetRedir => tracking_command::get_redirect(session),
        C::ClientTrackingInfo => tracking_command::tracking_info(session),

        C::Subscribe => subscribe_command::subscribe(session, Kind::Channel, args, cx),
        C::Psubscribe => subscribe_command::subscribe(session, Kind::Pattern, args, cx),
        C::Ssubscribe => subscribe_command::subscribe(session, Kind::Shard, args, cx),
        C::Unsubscribe => subscribe_command::unsubscribe(session, Kind::Channel, args, cx),
        C::Punsubscribe => subscribe_command::unsubscribe(session, Kind::Pattern, args, cx),
        C::Sunsubscribe => subscribe_command::unsubscribe(session, Kind::Shard, args, cx),
        C::Publish => subscribe_command::publish(session, Kind::Channel, args, cx),
        C::Spublish => subscribe_command::publish(session, Kind::Shard, args, cx),
        C::PubsubChannels => subscribe_command::channels(session, Kind::Channel, args, cx),
        C::PubsubShardChannels => subscribe_command::channels(session, Kind::Shard, args, cx),
        C::PubsubNumSub => subscribe_command::numsub(session, Kind::Channel, args, cx),
        C::PubsubShardNumSub => subscribe_command::numsub(session, Kind::Shard, args, cx),
        C::PubsubNumPat => subscribe_command::numpat(session, cx),

        C::Multi => transaction::multi(session),
        C::Discard => transaction::discard(session, cx),
        C::Watch => transaction::watch(session, args, cx),
        C::Unwatch if args.len() > 1 => watch_command::unwatch(session, args, cx),
        C::Unwatch => {
            transaction::unwatch(session, cx);
            Ok(())
        }

        C::WatchRead => watch_command::watch(session, command, args, cx),
        C::Watches => watch_command::watches(session, args, cx),
        C::EmitReconnect => watch_command::reconnect(session, args, cx),
        C::EmitAck => watch_command::acknowledge(session, args, cx),

        C::Changes => changes_command::changes(session, args, cx),

        C::Wait => wait::wait_replicas(session, args, cx),
        C::WaitAof => wait::wait_aof(session, args, cx),

        C::ClusterFailover => cluster_change::failover(session, args, cx),
        C::ClusterForget => cluster_change::forget(session, args, cx),
        C::ClusterInfo => cluster_command::info(session, cx),
        C::ClusterJoin => cluster_change::join(session, args, cx),
        C::ClusterKeySlot => cluster_command::key_slot(session, args),
        C::ClusterLinks => cluster_command::links(session, cx),
        C::ClusterMyId => cluster_command::my_id(session, cx),
        C::ClusterMyShardId => cluster_command::my_shard_id(session, cx),
        C::ClusterNodes => cluster_command::nodes(session, cx),
        C::ClusterShards => cluster_command::shards(session, cx),
        C::ClusterSlots => cluster_command::slots(session, cx),
        C::ScriptExists => script_command::exists(session, args, cx),
        C::ScriptFlush => script_command::flush(session, args, cx),
        C::ScriptKill => script_command::kill(session, false, cx),
        C::ScriptLoad => script_command::load(session, args, cx),
        C::SentinelCkQuorum => sentinel_command::check_quorum(session, args, cx),
        C::SentinelGetMasterAddrByName => sentinel_command::leader_address(session, args, cx),
        C::SentinelMaster => sentinel_command::leader(session, args, cx),
        C::SentinelMasters => sentinel_command::leaders(session, cx),
        C::SentinelMyId => sentinel_command::my_id(session, cx),
        C::SentinelReplicas => sentinel_command::followers(session, args, cx),
        C::SentinelSentinels => sentinel_command::sentinels(session, args, cx),
        C::ClusterStatus => cluster_change::status(session, cx),
        C::ClusterRecover => cluster_change::recover(session, args, cx),
        C::ClusterReport => cluster_change::report(session, args, cx),
        C::ClusterTransfer => cluster_change::transfer(session, args, cx),
        C::ReadOnly => cluster_command::read_followers(session, true, cx),
        C::ReadWrite => cluster_command::read_followers(session, false, cx),
        C::Asking => cluster_command::asking(session, cx),

        C::Command
        | C::CommandCount
        | C::CommandDocs
        | C::CommandInfo
        | C::CommandList
        | C::CommandGetKeys
        | C::CommandGetKeysAndFlags => command_command::run(session, which, args),

        C::ConfigGet => config_command::get(session, args, cx),
        C::ConfigSet => config_command::set(session, args, cx),
        C::ConfigResetStat => config_command::reset_stat(session, cx),
        C::ConfigRewrite => Err(CommandError::text(
            "ERR The server writes no configuration file. `tidemark serve --print-config` prints one",
        )),

        C::CounterTop => counter_command::top(session, args, cx),
        C::Info => info::info(session, args, cx),
        C::Time => server_command::time(session, cx),
        C::Role => server_command::role(session, cx),
        C::Shutdown => server_command::shutdown(session, args, cx),
        C::Save => server_command::save(session, cx),
        C::Bgsave => server_command::background_save(session, args, cx),
        C::LastSave => server_command::last_save(session, cx),
        C::Lolwut => server_command::lolwut(session),
        C::Help => server_command::help(session, args),
        C::DebugDigest => server_command::debug_digest(session, cx),
        C::DebugError => server_command::debug_error(session, args, cx),
        C::DebugObject => server_command::debug_object(session, args, cx),
        C::FunctionKill => script_command::kill(session, true, cx),
        C::FunctionStats => script_command::stats(session, cx),
        C::Migrate => migrate::begin(session, args, cx),
        C::DebugSleep => server_command::debug_sleep(session, args, cx),
        C::DebugSetActiveExpire => server_command::debug_set_active_expire(session, args, cx),
        C::DebugNothing => server_command::debug_nothing(session, cx),

        // These run commands on keys; `dispatch` and `exec` handle them.
        C::Durable | C::Exec | C::Once => Err(CommandError::Syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::explained;
    use crate::command::rows::command_table;
    use tidemark_engine::CommandError;

    #[test]
    fn an_error_names_the_argument_that_does_not_fit() {
        for (line, reason) in [
            ("WATCHES EVERYTHING", ": WATCHES takes NAMED, CHANNELS or ALL, not 'EVERYTHING'"),
            ("WATCHES NAMED a b", ": WATCHES takes nothing after 'a', not 'b'"),
            (
                "CHANGES FROM 0 EVERYTHING 1",
                ": CHANGES takes PREFIX, TYPE, DB, FORMAT or PROGRESS after '0', not 'EVERYTHING'",
            ),
            ("CHANGES FROM 0 PREFIX a PREFIX", ": CHANGES ends after 'PREFIX', where it takes prefix"),
            ("GET.WATCH k WRONG", ""),
        ] {
            let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
            let command = command_table().find(args[0]).expect("a command");
            let error = explained(command, &args, CommandError::Syntax);
            assert_eq!(error.to_string(), format!("ERR syntax error{reason}"), "{line}");
        }
    }
}
