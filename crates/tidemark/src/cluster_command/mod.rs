//! `tidemark cluster`: shows a running cluster in words, and changes it.
//!
//! ```text
//! mod ─► change (transfer, remove, replace) ─┐
//!     ─► recover, status ─► findings, builds ┴─► picture ─► what each member says
//! ```

mod builds;
mod change;
mod findings;
mod picture;
mod recover;
mod status;

use crate::server_args::ServerArgs;
use clap::{ArgAction, Args, Subcommand};
use std::process::ExitCode;
use std::time::Duration;
use tidemark_lab::duration;
use tidemark_lab::target::Target;

/// Show a cluster, and change who leads and who its members are
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

const AFTER_HELP: &str = "\
Any member can be asked: it names the leader, and the others.
A new member is started with `tidemark serve --cluster-node N --cluster-address PEERS/CLIENTS --cluster-join MEMBER`.
Exit codes: 0 all is good; 1 it is not, and the last lines say why; 2 the command line is wrong.";

#[derive(Subcommand)]
enum ClusterCommand {
    /// Say of each member whether it is well, and what to do if it is not
    Status(StatusArgs),
    /// Let another member lead
    Transfer(TransferArgs),
    /// Take a member out of the cluster
    Remove(RemoveArgs),
    /// Take a member out of the cluster once a new one votes in its place
    Replace(ReplaceArgs),
    /// Where no leader can be elected any more: say what is left, and go on with it
    Recover(RecoverArgs),
}

/// Which member is asked, and how long.
#[derive(Args)]
struct MemberArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Longest wait for the end of the change
    #[arg(short, long, default_value = "30s", value_parser = duration::parse)]
    timeout: Duration,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Args)]
#[command(disable_help_flag = true)]
struct StatusArgs {
    /// A member, as HOST:PORT
    #[arg(conflicts_with_all = ["host", "port", "uri"])]
    member: Option<Target>,
    #[command(flatten)]
    server: ServerArgs,
    /// Longest wait for the answer of a member
    #[arg(short, long, default_value = "2s", value_parser = duration::parse)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Args)]
#[command(disable_help_flag = true)]
struct TransferArgs {
    /// Number of the member that is to lead
    node: u64,
    #[command(flatten)]
    at: MemberArgs,
}

#[derive(Args)]
#[command(disable_help_flag = true)]
struct RemoveArgs {
    /// Number of the member
    node: u64,
    #[command(flatten)]
    at: MemberArgs,
}

#[derive(Args)]
#[command(disable_help_flag = true)]
struct ReplaceArgs {
    /// Number of the member that leaves
    old: u64,
    /// Number of the member that takes its place; it has joined
    new: u64,
    #[command(flatten)]
    at: MemberArgs,
}

#[derive(Args)]
#[command(disable_help_flag = true)]
struct RecoverArgs {
    /// Take what the members that are left do not have for lost
    #[arg(long)]
    accept_loss: bool,
    #[command(flatten)]
    at: MemberArgs,
}

/// Runs one of the subcommands.
pub(crate) fn run(args: ClusterArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        ClusterCommand::Status(args) => {
            let mut target = args.server.target();
            if let Some(member) = args.member {
                (target.host, target.port) = (member.host, member.port);
                target.password = target.password.or(member.password);
                target.username = target.username.or(member.username);
            }
            status::run(&target, args.timeout, args.json)
        }
        ClusterCommand::Transfer(args) => {
            change::transfer(&args.at.server.target(), args.node, args.at.timeout)
        }
        ClusterCommand::Remove(args) => change::remove(&args.at.server.target(), args.node, args.at.timeout),
        ClusterCommand::Replace(args) => {
            change::replace(&args.at.server.target(), args.old, args.new, args.at.timeout)
        }
        ClusterCommand::Recover(args) => {
            recover::run(&args.at.server.target(), args.accept_loss, args.at.timeout)
        }
    }
}
