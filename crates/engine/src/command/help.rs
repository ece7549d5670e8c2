//! The HELP answer of a container of subcommands.

use super::row::Command;
use crate::wire::reply::Reply;

/// Answers HELP: a line of usage and a summary line for each subcommand.
pub fn reply_help(reply: &mut Reply, name: &str, subcommands: &[Command]) {
    reply.array(1 + subcommands.len() * 2);
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for row in subcommands {
        let usage = format!("{} {}", row.name.to_ascii_uppercase(), row.syntax);
        reply.simple(usage.trim_end());
        reply.simple(&format!("    {}", row.summary));
    }
}
