//! A connection that watches keys: it subscribes, resumes and returns emissions one by one.

use super::answer::{AnswerError, Push, Resumed, Watched};
use crate::client::{Client, ClientError};
use crate::target::Target;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tidemark_server::resp::Value;

/// A watching client.
pub(crate) struct Subscriber {
    client: Client,
    /// Pushes that arrived before an answer. [`Client::call`] would keep a limited number and drop
    /// the oldest.
    arrived: VecDeque<Value>,
    timeout: Duration,
}

/// Why a subscriber has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubscriberError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl SubscriberError {
    /// Returns whether the server is absent or not ready yet, so that a retry makes sense.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            SubscriberError::Client(ClientError::Refused { text, .. })
            | SubscriberError::Answer(AnswerError::Refused { text, .. }) => text.starts_with("LOADING"),
            SubscriberError::Client(error) => error.is_disconnection(),
            SubscriberError::Answer(AnswerError::Unknown { .. }) => false,
        }
    }
}

impl Subscriber {
    /// Connects and selects RESP3, which has pushes. `timeout` limits the connection attempt and
    /// every answer.
    pub(crate) fn connect(target: &Target, timeout: Duration) -> Result<Self, SubscriberError> {
        let mut client = Client::connect(target, timeout)?;
        client.hello(3)?;
        Ok(Subscriber { client, arrived: VecDeque::new(), timeout })
    }

    /// Names the connection for `CLIENT LIST`. Does nothing on servers without names.
    pub(crate) fn set_name(&mut self, name: &str) -> Result<(), SubscriberError> {
        self.call(&["CLIENT", "SETNAME", name])?;
        Ok(())
    }

    pub(crate) fn watch(&mut self, key: &str) -> Result<Watched, SubscriberError> {
        Ok(Watched::read(&self.call(&["GET.WATCH", key])?)?)
    }

    /// Requests the emissions that the subscription missed after `last_lsn`.
    pub(crate) fn resume(
        &mut self,
        key: &str,
        subscription: &[u8],
        last_lsn: u64,
    ) -> Result<Resumed, SubscriberError> {
        let lsn = last_lsn.to_string();
        Ok(Resumed::read(&self.call(&[b"EMITRECONNECT", key.as_bytes(), subscription, lsn.as_bytes()])?)?)
    }

    /// Ends subscriptions; pushes that arrive before the answer are still returned.
    pub(crate) fn unwatch<'a>(
        &mut self,
        subscriptions: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), SubscriberError> {
        let request: Vec<&[u8]> = std::iter::once(&b"UNWATCH"[..]).chain(subscriptions).collect();
        self.call(&request)?;
        Ok(())
    }

    /// Disconnects as a crashed client does: received pushes that were not returned are lost.
    pub(crate) fn disconnect(&mut self) {
        self.arrived.clear();
        self.client.disconnect();
    }

    /// Returns the next push, or `None` after `wait`.
    pub(crate) fn next(&mut self, wait: Duration) -> Result<Option<Push>, SubscriberError> {
        let frame = match self.arrived.pop_front() {
            Some(frame) => Some(frame),
            None => self.client.receive(Some(wait))?,
        };
        Ok(frame.as_ref().map(Push::read).transpose()?)
    }

    fn call<Argument: AsRef<[u8]>>(&mut self, arguments: &[Argument]) -> Result<Value, SubscriberError> {
        self.client.send(arguments)?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.client.receive(Some(left))? {
                Some(push @ Value::Push(_)) => self.arrived.push_back(push),
                Some(reply) => return Ok(reply),
                None => return Err(ClientError::TimedOut(self.timeout).into()),
            }
        }
    }
}
