//! The connection to the server, which a signal interrupts.

use crate::asking::connect;
use anyhow::bail;
use signal_hook::consts::SIGTERM;
use std::time::{Duration, Instant};
use tidemark_lab::client::{Client, ClientError};
use tidemark_lab::interrupt::Interrupt;
use tidemark_lab::target::Target;
use tidemark_server::resp::Value;

/// A signal has ended the work.
#[derive(Debug, thiserror::Error)]
#[error("interrupted{0}")]
pub(super) struct Interrupted(pub(super) &'static str);

/// How long a reply is awaited before the signals are looked at.
const SLICE: Duration = Duration::from_millis(100);

/// A connection whose replies come in the order of the requests.
pub(super) struct Link {
    client: Client,
    timeout: Duration,
    interrupt: Interrupt,
}

impl Link {
    /// Connects. Without `stops_on_signals`, signals end the program as they would without this.
    pub(super) fn connect(
        target: &Target,
        timeout: Duration,
        stops_on_signals: bool,
    ) -> anyhow::Result<Self> {
        let client = connect(target, timeout)?;
        let interrupt = if stops_on_signals {
            let interrupt = Interrupt::by_signal()?;
            interrupt.also_by(SIGTERM)?;
            interrupt
        } else {
            Interrupt::default()
        };
        Ok(Self { client, timeout, interrupt })
    }

    /// Fails if a signal asks for the end.
    pub(super) fn check_interrupt(&self) -> anyhow::Result<()> {
        if self.interrupt.is_asked_for() {
            bail!(Interrupted(""));
        }
        Ok(())
    }

    /// Sends requests that are encoded already.
    pub(super) fn send(&mut self, requests: &[u8]) -> anyhow::Result<()> {
        Ok(self.client.send_encoded(requests)?)
    }

    /// Waits for the next reply, which may be an error.
    pub(super) fn reply(&mut self) -> anyhow::Result<Value> {
        let deadline = Instant::now() + self.timeout;
        loop {
            self.check_interrupt()?;
            match self.client.receive(Some(SLICE))? {
                Some(Value::Push(_)) => {}
                Some(reply) => return Ok(reply),
                None if Instant::now() >= deadline => bail!(ClientError::TimedOut(self.timeout)),
                None => {}
            }
        }
    }

    /// Sends a request and waits for its reply, which may be an error.
    pub(super) fn call<A: AsRef<[u8]>>(&mut self, command: &[A]) -> anyhow::Result<Value> {
        self.client.send(command)?;
        self.reply()
    }

    /// As [`Link::call`]; fails on an error reply.
    pub(super) fn ask<A: AsRef<[u8]>>(&mut self, command: &[A]) -> anyhow::Result<Value> {
        let reply = self.call(command)?;
        if let Some(error) = reply.as_error() {
            let word = String::from_utf8_lossy(command[0].as_ref()).into_owned();
            bail!("the server answers {word} with {}", String::from_utf8_lossy(error));
        }
        Ok(reply)
    }
}
