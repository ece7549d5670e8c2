//! The writer: it outlives every crash and knows what became of each of its writes.

use super::options::CrashOptions;
use super::progress::Progress;
use crate::client::{Client, ClientError, says_loading};
use crate::output;
use crate::target::Target;
use crate::watch::ledger::{Fate, Ledger, Number};
use std::time::{Duration, Instant};

/// How soon a server that is gone is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Writes the updates of one iteration, one at a time.
pub(super) struct Writer<'a> {
    options: &'a CrashOptions,
    target: &'a Target,
    keys: &'a [String],
    progress: &'a Progress,
    connection: Option<Connection>,
    /// Acknowledged writes that the restarted server did not have.
    lost_writes: u64,
}

/// A connection to the server as it was after so many kills, or later.
struct Connection {
    client: Client,
    kills: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        options: &'a CrashOptions,
        target: &'a Target,
        keys: &'a [String],
        progress: &'a Progress,
    ) -> Self {
        Writer { options, target, keys, progress, connection: None, lost_writes: 0 }
    }

    /// Writes until all updates are written; returns how many acknowledged writes the server has lost.
    pub(super) fn run(mut self) -> anyhow::Result<u64> {
        for update in 0..self.options.updates as usize {
            while update >= written_after_crash(self.options.updates) && !self.progress.crash_has_begun() {
                if self.progress.has_failed() {
                    return Ok(self.lost_writes);
                }
                std::thread::sleep(RETRY_INTERVAL);
            }
            if self.progress.has_failed() {
                break;
            }
            self.write(update % self.keys.len())?;
            self.progress.count_write();
            std::thread::sleep(self.options.update_interval);
        }
        self.progress.end_writing();
        Ok(self.lost_writes)
    }

    fn write(&mut self, key: usize) -> anyhow::Result<()> {
        let mut connection = self.take_connection()?;
        let (number, value) = self.progress.ledger().begin(key);
        match connection.client.call(&[b"SET", self.key(key).as_bytes(), &value, b"DURABLE"]) {
            Ok(reply) => {
                if reply.as_bytes() == Some(b"OK") {
                    self.progress.ledger().settle(number, Fate::Done);
                } else {
                    // An error may come after the change: it stays in doubt.
                    let text = String::from_utf8_lossy(reply.as_error().unwrap_or_default()).into_owned();
                    output::report(format_args!("update {number} was answered {text:?}: in doubt"));
                }
                self.connection = Some(connection);
                Ok(())
            }
            Err(error) if error.is_disconnection() => self.look_for(number, key, connection.kills),
            Err(error) => Err(error.into()),
        }
    }

    /// The answer to a write was lost. If the server that it was sent to was killed, the restarted one either has the value
    /// or never will: nothing of the old process is on its way any more. Otherwise the write stays in doubt.
    fn look_for(&mut self, number: Number, key: usize, kills_before: u32) -> anyhow::Result<()> {
        let deadline = Instant::now() + self.options.reconnect_patience();
        loop {
            let mut connection = self.take_connection()?;
            let was_killed = connection.kills > kills_before;
            match self.compare(&mut connection.client, number, key, was_killed) {
                // The kill may have been counted only after the connection was seen to break.
                Ok(()) if !was_killed && self.progress.kills() > kills_before => {}
                Ok(()) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(error) if error.is_disconnection() && Instant::now() < deadline => {
                    std::thread::sleep(RETRY_INTERVAL);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks what the keys hold now, and settles the write if that is certain.
    fn compare(
        &mut self,
        client: &mut Client,
        number: Number,
        key: usize,
        was_killed: bool,
    ) -> Result<(), ClientError> {
        let values = values_of(client, self.keys)?;
        if !was_killed {
            return Ok(());
        }
        let mut ledger = self.progress.ledger();
        let is_there = values.get(key).is_some_and(|value| *value == Some(ledger.value(number)));
        ledger.settle(number, if is_there { Fate::Done } else { Fate::Lost });
        self.lost_writes += lost_writes(&ledger, &values);
        Ok(())
    }

    /// The connection, or a new one as soon as there is a server.
    fn take_connection(&mut self) -> anyhow::Result<Connection> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let deadline = Instant::now() + self.options.reconnect_patience();
        loop {
            // In this order: who is connected to after a kill was counted is not the one that was killed.
            let kills = self.progress.kills();
            match self.connect() {
                Ok(client) => return Ok(Connection { client, kills }),
                Err(error) => {
                    let goes_on =
                        error.is_disconnection() && Instant::now() < deadline && !self.progress.has_failed();
                    anyhow::ensure!(goes_on, "the writer finds no server: {error}");
                    std::thread::sleep(RETRY_INTERVAL);
                }
            }
        }
    }

    /// Connects to a server that has loaded its data.
    fn connect(&self) -> Result<Client, ClientError> {
        let mut client = Client::connect(self.target, self.options.wait.max_wait)?;
        match client.call(&["PING"])?.as_error() {
            Some(error) if says_loading(error) => Err(ClientError::Loading),
            _ => Ok(client),
        }
    }

    fn key(&self, index: usize) -> &str {
        self.keys.get(index).map_or("", String::as_str)
    }
}

/// The first update that is written after the crash, however fast the writer is: the last tenth shows whether the stream goes
/// on.
fn written_after_crash(updates: u32) -> usize {
    updates as usize * 9 / 10
}

/// What the keys hold.
pub(super) fn values_of(client: &mut Client, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, ClientError> {
    keys.iter().map(|key| Ok(client.call(&["GET", key])?.as_bytes().map(<[u8]>::to_vec))).collect()
}

/// How many keys hold something else than the ledger allows.
pub(super) fn lost_writes(ledger: &Ledger, values: &[Option<Vec<u8>>]) -> u64 {
    let is_lost = |(key, value): &(usize, &Option<Vec<u8>>)| !ledger.may_hold(*key, value.as_deref());
    values.iter().enumerate().filter(is_lost).count() as u64
}
