//! The keys of one type: found by one full scan of the keyspace, then updated by a partial scan with
//! each reading.

use crate::asking::ask;
use anyhow::Context;
use std::collections::BTreeSet;
use tidemark_lab::client::Client;

/// Keys that the server scans per call.
const KEYS_AT_ONCE: &str = "1000";
/// Calls per reading after the first: a scan of a large keyspace spans several readings.
const ANSWERS_MAX: usize = 20;
/// Most keys that are followed.
const FOLLOWED_MAX: usize = 1000;

/// The keys that were found.
pub(super) struct Listing {
    /// The command that lists them, before its cursor, and words behind.
    command: &'static str,
    words: &'static [&'static str],
    pattern: Option<String>,
    found: BTreeSet<Vec<u8>>,
    /// Keys of the current scan.
    coming: BTreeSet<Vec<u8>>,
    cursor: String,
    is_complete: bool,
    /// Whether the whole keyspace was scanned once.
    is_begun: bool,
}

impl Listing {
    /// Lists keys by a command with a cursor, such as `SCAN`, with `words` behind it.
    pub(super) fn new(
        command: &'static str,
        words: &'static [&'static str],
        pattern: Option<String>,
    ) -> Self {
        Self {
            command,
            words,
            pattern,
            found: BTreeSet::new(),
            coming: BTreeSet::new(),
            cursor: "0".to_owned(),
            is_complete: true,
            is_begun: false,
        }
    }

    /// Returns whether all keys are followed: there are not too many.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Continues the scan and returns the keys known so far.
    pub(super) fn read(&mut self, client: &mut Client) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut answers = 0;
        while !self.is_begun || answers < ANSWERS_MAX {
            answers += 1;
            if self.step(client)? {
                self.is_begun = true;
                break;
            }
        }
        Ok(self
            .found
            .iter()
            .chain(&self.coming)
            .take(FOLLOWED_MAX)
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }

    /// Makes one call; returns whether it completes the scan.
    fn step(&mut self, client: &mut Client) -> anyhow::Result<bool> {
        let mut command = vec![self.command, &self.cursor, "COUNT", KEYS_AT_ONCE];
        command.extend(self.words);
        if let Some(pattern) = &self.pattern {
            command.extend(["MATCH", pattern]);
        }
        let answer = ask(client, &command)?;
        let parts = answer
            .as_elements()
            .and_then(|parts| Some((parts.first()?.as_bytes()?, parts.get(1)?.as_elements()?)));
        let (cursor, keys) = parts.context("the server lists keys in another way than this version does")?;
        for key in keys.iter().filter_map(|key| key.as_bytes()) {
            if self.coming.len() < FOLLOWED_MAX {
                self.coming.insert(key.to_vec());
            } else {
                self.is_complete = false;
            }
        }
        self.cursor = String::from_utf8_lossy(cursor).into_owned();
        let is_done = self.cursor == "0";
        if is_done {
            self.found = std::mem::take(&mut self.coming);
        }
        Ok(is_done)
    }
}
