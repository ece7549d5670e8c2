//! A connection to a server, and questions to which an error is no answer.

use anyhow::bail;
use std::time::Duration;
use tidemark_lab::client::{Client, ClientError, says_loading};
use tidemark_lab::target::Target;
use tidemark_server::resp::Value;

/// Connects, in RESP3 if the server has it.
pub(crate) fn connect(target: &Target, timeout: Duration) -> Result<Client, ClientError> {
    let mut client = Client::connect(target, timeout)?;
    match client.hello(3) {
        // RESP2 works as well, and a missing password fails the next command.
        Ok(_) | Err(ClientError::Refused { .. }) => Ok(client),
        Err(error) => Err(error),
    }
}

/// Sends a command; fails on an error reply.
pub(crate) fn ask<A: AsRef<[u8]>>(client: &mut Client, command: &[A]) -> anyhow::Result<Value> {
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
