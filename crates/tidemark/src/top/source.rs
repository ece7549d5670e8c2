//! The server that is asked, again and again.

use super::reading::Reading;
use super::sort::Sort;
use anyhow::{Context, bail};
use std::time::{Duration, Instant};
use tidemark_lab::client::{Client, ClientError};
use tidemark_lab::target::Target;
use tidemark_server::resp::Value;

/// A server, and the connection to it while there is one.
pub(super) struct Source {
    target: Target,
    timeout: Duration,
    client: Option<Client>,
}

impl Source {
    pub(super) fn new(target: Target, timeout: Duration) -> Self {
        Self { target, timeout, client: None }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Asks for everything, with so many of the counters that move most. Connects if there is no connection; an error of the connection
    /// ends it, and is a [`ClientError`].
    pub(super) fn read(&mut self, sort: Sort, keys: usize) -> anyhow::Result<Reading> {
        let result = self.try_read(sort, keys);
        if result.is_err() {
            self.client = None;
        }
        result
    }

    fn try_read(&mut self, sort: Sort, keys: usize) -> anyhow::Result<Reading> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(connect(&self.target, self.timeout)?),
        };
        let info = ask(client, &["INFO", "counters"])?;
        let at = Instant::now();
        let top = ask(client, &["COUNTER.TOP", &keys.to_string(), "BY", sort.word()])?;
        Reading::of(&info, &top, at).context("the server describes no counters, or not those of this version")
    }
}

/// Whether the server is not there: asking again may help.
pub(super) fn is_disconnection(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_disconnection)
}

fn connect(target: &Target, timeout: Duration) -> Result<Client, ClientError> {
    let mut client = Client::connect(target, timeout)?;
    match client.hello(3) {
        // Without RESP3 it goes as well, and without a password the next command says so.
        Ok(_) | Err(ClientError::Refused { .. }) => Ok(client),
        Err(error) => Err(error),
    }
}

fn ask(client: &mut Client, command: &[&str]) -> anyhow::Result<Value> {
    let reply = client.call(command)?;
    if let Some(error) = reply.as_error() {
        bail!("the server answers {} with {}", command.join(" "), String::from_utf8_lossy(error));
    }
    Ok(reply)
}
