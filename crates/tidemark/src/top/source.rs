//! The server that is asked again and again.

use crate::asking::connect;
use std::time::Duration;
use tidemark_lab::client::{Client, ClientError};
use tidemark_lab::target::Target;

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
