//! The fan-out scenario: how soon the last of many subscribers of one key has its new value.
//!
//! ```text
//!           ┌ SET ─► server ─► N emissions ─► receiver ┐
//! a round ──┤                                          ├─► the median subscriber's time, and the last one's
//!           └ a byte ─► floor ─► N times the same ─────┘
//! ```
//!
//! Most of what it takes is the system's sending. So the same bytes are sent to as many connections by a process that does nothing
//! else, in turns with the server, and what a report is about is the ratio of the two.

mod descriptors;
mod floor;
mod frame;
mod options;
mod receiver;
mod report;
mod values;

pub use floor::{FloorOptions, FloorScenario};
pub use options::FanOutOptions;

use crate::client::Client;
use crate::facts::{self, ServerFacts};
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use crate::target::Target;
use crate::wall_time;
use crate::watch::answer::Watched;
use anyhow::Context;
use floor::{Floor, Likeness};
use receiver::{Receiver, Times};
use report::{FanOutResults, Memory, Parts, Round};
use std::time::{Duration, SystemTime};
use values::Values;

/// How soon the last of many subscribers of one key has its new value.
pub struct FanOutScenario;

impl Scenario for FanOutScenario {
    const NAME: &'static str = "fan-out";
    type Options = FanOutOptions;

    fn run(options: &FanOutOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        descriptors::provide_for(options.subscribers)?;
        let target = options.server.target();
        let start = SystemTime::now();
        let values = Values { run: wall_time::run_number(start), bytes: options.value_bytes as usize };
        let mut writer = Writer {
            client: Client::connect(&target, options.wait.max_wait)?,
            key: format!("fan-out-bench:{:x}", values.run),
            max_wait: options.wait.max_wait,
        };
        let server = ServerFacts::ask(&mut writer.client)?;
        check_room(&mut writer.client, options.subscribers)?;
        let mut memory = Memory { before: facts::resident_bytes(&mut writer.client)?, ..Memory::default() };
        let (mut receiver, likeness) = subscribe(options, &target, &writer.key, values)?;
        memory.subscribed = facts::resident_bytes(&mut writer.client)?;
        let start_floor = || Floor::start(&likeness, options.subscribers, options.wait.max_wait);
        let mut floor = options.floor.then(start_floor).transpose()?;
        let interrupt = Interrupt::by_signal()?;
        let rounds = measure(options, &mut writer, &mut receiver, floor.as_mut(), &interrupt, console)?;
        drop(floor);
        memory.after = facts::resident_bytes(&mut writer.client)?;
        memory.peak = facts::peak_resident_bytes(&mut writer.client)?;
        memory.waiting_output = facts::waiting_output_bytes(&mut writer.client)?;
        receiver.listen(options.wait.poll_interval)?;
        let parts = Parts {
            start,
            end: SystemTime::now(),
            is_interrupted: interrupt.is_asked_for(),
            target: target.to_string(),
            rounds,
            memory,
            faults: receiver.faults(),
            received: receiver.received(),
            bytes_per_emission: receiver.bytes_per_emission(),
            server,
            machine: Machine::this(),
        };
        // The subscribers leave first, or they would receive the removal of the key.
        drop(receiver);
        writer.client.call(&["DEL", &writer.key])?;
        console.print::<Self>(options, &FanOutResults::new(options, parts), options.report.json)
    }
}

/// Who sets the key.
struct Writer {
    client: Client,
    key: String,
    max_wait: Duration,
}

impl Writer {
    fn send(&mut self, value: &[u8]) -> anyhow::Result<()> {
        Ok(self.client.send(&[b"SET", self.key.as_bytes(), value])?)
    }

    fn check_answer(&mut self) -> anyhow::Result<()> {
        let wait = self.max_wait;
        let reply = self
            .client
            .receive(Some(wait))?
            .with_context(|| format!("SET was not answered within {wait:?}"))?;
        match reply.as_error() {
            Some(text) => anyhow::bail!("SET was answered {:?}", String::from_utf8_lossy(text)),
            None => Ok(()),
        }
    }
}

/// Says before ten thousand connections are made that the server will not take them. One that does not tell is tried.
fn check_room(client: &mut Client, subscribers: u32) -> anyhow::Result<()> {
    let Some(limit) = facts::setting(client, "maxclients")? else { return Ok(()) };
    let limit: u64 = limit.parse().with_context(|| {
        format!("the server says that maxclients is {limit:?}, which is no number of clients")
    })?;
    let needed = u64::from(subscribers) + 1;
    anyhow::ensure!(
        limit >= needed,
        "{subscribers} subscribers and the writers are {needed} clients, and the server takes {limit}: start it with \
         --maxclients {needed}, and with as many open files (ulimit -n)"
    );
    Ok(())
}

/// Connects all subscribers; says too what the emissions to them will look like.
fn subscribe(
    options: &FanOutOptions,
    target: &Target,
    key: &str,
    values: Values,
) -> anyhow::Result<(Receiver, Likeness)> {
    let mut receiver = Receiver::new(values, options.subscribers as usize)?;
    let mut likeness = Likeness { values, subscription: String::new(), lsn: 0 };
    for number in 1..=options.subscribers {
        let watched = subscribe_one(options, target, key, &mut receiver)
            .with_context(|| format!("subscriber {number} of {} on {target}", options.subscribers))?;
        likeness.lsn = watched.lsn;
        likeness.subscription = String::from_utf8_lossy(&watched.subscription).into_owned();
    }
    Ok((receiver, likeness))
}

fn subscribe_one(
    options: &FanOutOptions,
    target: &Target,
    key: &str,
    receiver: &mut Receiver,
) -> anyhow::Result<Watched> {
    let mut client = Client::connect(target, options.wait.max_wait)?;
    client.hello(3).context("pushes need RESP3")?;
    let watched = Watched::read(&client.call(&["GET.WATCH", key])?)?;
    receiver.add(client.into_stream()?, &watched.subscription, watched.seq, watched.lsn)?;
    Ok(watched)
}

/// Runs all rounds, of the server and of the floor in turns; returns those that are to be reported.
fn measure(
    options: &FanOutOptions,
    writer: &mut Writer,
    receiver: &mut Receiver,
    mut floor: Option<&mut Floor>,
    interrupt: &Interrupt,
    console: &mut Console<'_>,
) -> anyhow::Result<Vec<Round>> {
    let mut rounds = Vec::new();
    for number in 1..=options.warmup_rounds + options.rounds {
        if interrupt.is_asked_for() {
            console.note(format_args!("interrupted behind {} rounds", rounds.len()));
            break;
        }
        let mut of_server = || -> anyhow::Result<Option<Times>> {
            let times = receiver.round(number, options.wait.max_wait, |value| writer.send(value))?;
            writer.check_answer()?;
            Ok(times)
        };
        let mut of_floor = || floor.as_mut().map(|floor| floor.round(number)).transpose();
        // The first of both finds the caches as the other has left them.
        let (server, floor) = if number % 2 == 0 {
            let floor = of_floor()?;
            (of_server()?, floor)
        } else {
            (of_server()?, of_floor()?)
        };
        let measured = number.saturating_sub(options.warmup_rounds);
        let round = Round::new(measured, server, floor);
        if measured > 0 {
            console.note(format_args!("round {measured}/{}: {round}", options.rounds));
            rounds.push(round);
        }
    }
    Ok(rounds)
}

#[cfg(test)]
mod tests;
