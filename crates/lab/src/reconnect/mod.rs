//! The reconnection scenario: how soon a subscriber that comes back has what it missed, and whether it has all of it, once.
//!
//! ```text
//! watch ─► warm-up emissions ─► leave ─► updates while away ─► connect ─► EMITRECONNECT ─► missed emissions ─► one more
//!                                                             └─────── timed ─────────────────────┘
//! ```
//!
//! What arrived, before and after, is held against what was written: values, numbers and positions.

mod options;
mod report;

pub use options::ReconnectOptions;

use crate::client::Client;
use crate::facts::ServerFacts;
use crate::interrupt::Interrupt;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use crate::target::Target;
use crate::wall_time;
use crate::watch::answer::{Push, Resumed, Watched};
use crate::watch::delivery::{Delivery, Receipt, Start};
use crate::watch::ledger::{Fate, Ledger};
use crate::watch::subscriber::{Subscriber, SubscriberError};
use anyhow::Context;
use report::{Iteration, ReconnectResults};
use std::time::{Duration, Instant, SystemTime};

/// How soon a subscriber that comes back has what it missed.
pub struct ReconnectScenario;

impl Scenario for ReconnectScenario {
    const NAME: &'static str = "reconnect";
    type Options = ReconnectOptions;

    fn run(options: &ReconnectOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        let target = options.server.target();
        let mut control = Client::connect(&target, options.wait.max_wait)?;
        let server = ServerFacts::ask(&mut control)?;
        let start = SystemTime::now();
        let interrupt = Interrupt::by_signal()?;
        let mut iterations = Vec::new();
        for number in 1..=options.iterations {
            if interrupt.is_asked_for() {
                console.note(format_args!("interrupted behind {} iterations", number - 1));
                break;
            }
            let run = wall_time::run_number(start) ^ u64::from(number);
            let iteration = Exchange::begin(options, &target, number, run)
                .and_then(Exchange::run)
                .with_context(|| format!("iteration {number} on {target}"))?;
            console.note(format_args!("iteration {number}/{}: {iteration}", options.iterations));
            iterations.push(iteration);
        }
        let is_interrupted = interrupt.is_asked_for();
        let results = ReconnectResults::new(options, &target, server, start, is_interrupted, iterations);
        console.print::<Self>(options, &results, options.report.json)
    }
}

/// One subscription from its beginning to its end, and who publishes to it.
struct Exchange<'a> {
    options: &'a ReconnectOptions,
    target: &'a Target,
    number: u32,
    key: String,
    publisher: Client,
    subscriber: Subscriber,
    watched: Watched,
    ledger: Ledger,
    receipts: Vec<Receipt>,
}

impl<'a> Exchange<'a> {
    fn begin(
        options: &'a ReconnectOptions,
        target: &'a Target,
        number: u32,
        run: u64,
    ) -> anyhow::Result<Self> {
        let key = format!("{}-key-{number}", options.client_prefix);
        let mut subscriber = Subscriber::connect(target, options.wait.max_wait)?;
        subscriber.set_name(&format!("{}-{number}-{run:x}", options.client_prefix))?;
        let watched = subscriber.watch(&key)?;
        let publisher = Client::connect(target, options.wait.max_wait)?;
        let (ledger, receipts) = (Ledger::new(run), Vec::new());
        Ok(Exchange { options, target, number, key, publisher, subscriber, watched, ledger, receipts })
    }

    fn run(mut self) -> anyhow::Result<Iteration> {
        for _ in 0..self.options.warmup_emissions {
            self.publish()?;
            self.receive_all()?;
        }
        let last_lsn = self.receipts.last().map_or(self.watched.lsn, |receipt| receipt.lsn);
        let last_seq = self.receipts.last().map_or(self.watched.seq, |receipt| receipt.seq);
        let before = self.receipts.len();
        self.subscriber.disconnect();
        for _ in 0..self.options.updates_while_away {
            self.publish()?;
        }

        let began = Instant::now();
        self.subscriber = Subscriber::connect(self.target, self.options.wait.max_wait)?;
        let connected = began.elapsed();
        let answer = self.subscriber.resume(&self.key, &self.watched.subscription, last_lsn)?;
        let resumed = began.elapsed();
        let has_missed_some = self.options.updates_while_away > 0 && matches!(answer, Resumed::Ok { .. });
        let first_missed = if has_missed_some && self.receive_one(self.options.wait.max_wait)? {
            Some(began.elapsed())
        } else {
            None
        };
        let has_all = self.receive_all()?;
        let all_missed = (first_missed.is_some() && has_all).then(|| began.elapsed());
        self.publish()?;
        self.receive_all()?;
        self.receive_what_should_not_come()?;
        self.publisher.call(&["DEL", &self.key])?;

        let start = Start { lsn: self.watched.lsn, seq: self.watched.seq };
        Ok(Iteration::new(report::Parts {
            number: self.number,
            reconnect: connected,
            resume: resumed.checked_sub(connected).expect("it was connected before it was resumed"),
            total: resumed,
            first_missed,
            all_missed,
            updates_while_away: self.options.updates_while_away,
            last_lsn_before: last_lsn,
            first_lsn_after: self.receipts.get(before).map(|receipt| receipt.lsn),
            answer,
            expected_next: last_seq + 1,
            delivery: Delivery::of(&self.ledger, &[start], &self.receipts),
        }))
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        let (number, value) = self.ledger.begin(0);
        let reply = self.publisher.call(&[b"SET", self.key.as_bytes(), &value])?;
        if let Some(text) = reply.as_error() {
            anyhow::bail!("SET was answered {:?}", String::from_utf8_lossy(text));
        }
        self.ledger.settle(number, Fate::Done);
        Ok(())
    }

    /// Waits until the last update has been received, as long as that may take; whether it was. What comes behind it is late, and
    /// what does not come at all is not worth waiting for.
    fn receive_all(&mut self) -> Result<bool, SubscriberError> {
        let deadline = Instant::now() + self.options.wait.max_wait;
        let last = self.ledger.value(self.ledger.len());
        // Each receipt is looked at once: there may be very many.
        let mut looked = 0;
        while self.ledger.len() > 0 {
            if self.receipts.iter().skip(looked).any(|receipt| receipt.value == last) {
                return Ok(true);
            }
            looked = self.receipts.len();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.receive_one(left)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Listens for what would be one emission too many, then ends the subscription and takes what came before its end.
    fn receive_what_should_not_come(&mut self) -> Result<(), SubscriberError> {
        while self.receive_one(self.options.wait.poll_interval)? {}
        self.subscriber.unwatch(std::iter::once(&self.watched.subscription[..]))?;
        while self.receive_one(Duration::ZERO)? {}
        Ok(())
    }

    /// Takes the next push; returns whether there was one.
    fn receive_one(&mut self, wait: Duration) -> Result<bool, SubscriberError> {
        let Some(push) = self.subscriber.next(wait)? else { return Ok(false) };
        if let Push::Emission(emission) = push {
            // A foreign subscription is ignored.
            let key = if emission.subscription == self.watched.subscription { 0 } else { usize::MAX };
            let (lsn, seq, value) = (emission.lsn, emission.seq, emission.value);
            self.receipts.push(Receipt { key, lsn, seq, value });
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
