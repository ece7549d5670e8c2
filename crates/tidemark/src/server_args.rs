//! The server that a command of the client side connects to.

use clap::{ArgAction, Args};
use std::time::Duration;
use tidemark_lab::duration;
use tidemark_lab::target::{DEFAULT_PORT, Target};

/// Flags that name a server, and the user.
#[derive(Args)]
pub(crate) struct ServerArgs {
    /// Server host
    #[arg(short = 'h', long, default_value = "127.0.0.1")]
    host: String,
    /// Server port
    #[arg(short, long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Server as redis://USER:PASSWORD@HOST:PORT/DATABASE, of which only the host is needed
    #[arg(short, long, conflicts_with_all = ["host", "port"])]
    uri: Option<Target>,
    /// Password
    #[arg(short = 'a', long, env = "TIDEMARK_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// User of the password
    #[arg(long, requires = "password")]
    user: Option<String>,
}

impl ServerArgs {
    /// Returns the server, with the database that the URI names.
    pub(crate) fn target(&self) -> Target {
        let mut target = self.uri.clone().unwrap_or_else(|| Target::new(&self.host, self.port));
        target.password = self.password.clone().or(target.password);
        target.username = self.user.clone().or(target.username);
        target
    }
}

/// Flags of a subcommand that does its work in one database of a server, and then ends.
#[derive(Args)]
pub(crate) struct DatabaseArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Database of the server
    #[arg(short = 'n', long)]
    database: Option<u32>,
    /// Longest wait for a connection, and for an answer
    #[arg(short, long, default_value = "30s", value_parser = duration::parse)]
    pub(crate) timeout: Duration,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl DatabaseArgs {
    /// Returns the server, with the database.
    pub(crate) fn target(&self) -> Target {
        let mut target = self.server.target();
        target.database = self.database.unwrap_or(target.database);
        target
    }
}
