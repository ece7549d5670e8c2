//! The server that is asked again and again.

use anyhow::bail;
use std::time::Duration;
use tidemark_lab::client::{Client, ClientError, says_loading};
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

    /// Takes a reading with `read`. Connects if there is no connection; an error of the connection
    /// ends it, and is a [`ClientError`].
    pub(super) fn read<R>(
        &mut self,
        read: impl FnOnce(&mut Client) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        let result = self.connected().and_then(read);
        if result.is_err() {
            self.client = None;
        }
        result
    }

    fn connected(&mut self) -> anyhow::Result<&mut Client> {
        Ok(match &mut self.client {
            Some(client) => client,
            none => none.insert(connect(&self.target, self.timeout)?),
        })
    }
}

/// Returns whether the server cannot be reached, so that asking again may help.
pub(super) fn is_disconnection(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_disconnection)
}

fn connect(target: &Target, timeout: Duration) -> Result<Client, ClientError> {
    let mut client = Client::connect(target, timeout)?;
    match client.hello(3) {
        // RESP2 works as well, and a missing password fails the next command.
        Ok(_) | Err(ClientError::Refused { .. }) => Ok(client),
        Err(error) => Err(error),
    }
}

/// Sends a command; fails on an error reply.
pub(super) fn ask<A: AsRef<[u8]>>(client: &mut Client, command: &[A]) -> anyhow::Result<Value> {
    let reply = client.call(command)?;
    if let Some(error) = reply.as_error() {
        if says_loading(error) {
            return Err(ClientError::Loading.into());
        }
        let words: Vec<_> = command.iter().map(|word| String::from_utf8_lossy(word.as_ref())).collect();
        bail!("the server answers {} with {}", words.join(" "), String::from_utf8_lossy(error));
    }
    Ok(reply)
}
