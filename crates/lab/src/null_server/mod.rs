//! A server that parses requests and answers them, and does nothing else: what the machine, its network stack and the
//! protocol allow. No server on one thread can be expected to do better.

mod options;
mod server;

pub use options::{NullProtocol, NullServerOptions};
pub use server::NullServer;

use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use anyhow::Context;
use std::io::{self, Write};

/// The null server. It runs until its process ends.
pub struct NullServerScenario;

impl Scenario for NullServerScenario {
    const NAME: &'static str = "null-server";
    type Options = NullServerOptions;

    fn run(options: &NullServerOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        serve(options, console.out).with_context(|| format!("null server on port {}", options.port))?;
        Ok(Verdict::passed())
    }
}

fn serve(options: &NullServerOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut server = NullServer::bind(options.port, options.protocol)?;
    writeln!(
        out,
        "null server: parses every request, answers OK, stores nothing; listening on {}",
        server.address()?
    )?;
    server.run()
}
