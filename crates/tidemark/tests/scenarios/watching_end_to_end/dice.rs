//! A subscriber over DiceDB's protocol, whose emissions have no LSNs: it counts, and resumes after
//! a number.

use super::browser::{latest, name_now};
use super::dice_wire::{Connection, Result};
use super::inbound::PATIENCE;
use super::judge::{Allowance, Evidence};
use super::read::{Form, Read};
use super::received::{Begin, End, Name, Received, Stretch, Subscription};
use super::world::World;
use crate::commands::Generator;
use std::io;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use tidemark_engine::Protocol;

/// Reads of this protocol, with `#` for a number, and the same reads as commands of Redis.
const READS: [(&str, &str); 8] = [
    ("GET string:#", "GET string:#"),
    ("GET counter:#", "GET counter:#"),
    ("HGET hash:# a", "HGET hash:# a"),
    ("HGETALL hash:#", "HGETALL hash:#"),
    ("ZCARD zset:#", "ZCARD zset:#"),
    ("ZCOUNT zset:# 0 10", "ZCOUNT zset:# 0 10"),
    ("ZRANGE zset:# 1 3", "ZRANGE zset:# 0 2 WITHSCORES"),
    ("ZRANK zset:# 1", "ZRANK zset:# 1 WITHSCORE"),
];

/// What a subscriber that counts has noted.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) read: Read,
    pub(crate) query: u64,
    /// Possible numbers at which its own numbers begin.
    pub(crate) bases: RangeInclusive<u64>,
    pub(crate) stretches: Vec<Run>,
    pub(crate) refusal: Option<Refused>,
}

/// A refusal of the server to resume or to continue.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The number after which it was to resume.
    pub(crate) behind: u64,
    pub(crate) word: String,
    /// Highest LSN up to which the log may have been removed by then.
    pub(crate) highest: u64,
}

/// What was received on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The answer, if it began with one, and the number of the last emission at that time.
    pub(crate) answer: Option<Vec<u8>>,
    pub(crate) behind: u64,
    pub(crate) received: Vec<Vec<u8>>,
    /// Set if it had received everything when the log ended here.
    pub(crate) complete: Option<u64>,
}

impl Run {
    fn last(&self) -> u64 {
        self.behind + self.received.len() as u64
    }
}

/// A subscriber over DiceDB's protocol.
pub(crate) struct Dice<'w> {
    world: &'w World,
    generator: Generator,
    connection: Option<Connection>,
    /// The words of the watched read, its fingerprint, and what was received.
    open: Option<(Vec<String>, u64, Counted)>,
    closed: Vec<Counted>,
}

impl<'w> Dice<'w> {
    pub(crate) fn new(world: &'w World, generator: Generator) -> Self {
        Self { world, generator, connection: None, open: None, closed: Vec::new() }
    }

    /// Watches until there is nothing more to receive; returns all that it received.
    pub(crate) fn run(mut self) -> Vec<Counted> {
        while self.world.head().is_none() {
            if self.world.is_given_up() {
                return Vec::new();
            }
            if self.step().is_err() {
                self.connection = None;
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.connection = None;
        while let Err(error) = self.finish() {
            assert_eq!(error.kind(), io::ErrorKind::Interrupted, "the server is no longer killed: {error}");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.closed.extend(self.open.take().map(|(_, _, counted)| counted));
        self.closed
    }

    fn step(&mut self) -> io::Result<()> {
        if self.connection.is_none() {
            let goes_back = self.generator.random.once_in(4);
            self.connect(goes_back)?;
        }
        match self.generator.random.below(30) {
            0 => self.connection = None,
            1 => std::thread::sleep(Duration::from_millis(20 + self.generator.random.below(200))),
            2 if self.generator.random.once_in(2) => {
                self.connection = None;
                self.closed.extend(self.open.take().map(|(_, _, counted)| counted));
            }
            _ => {
                let pause = 1 + self.generator.random.below(40);
                self.listen(Duration::from_millis(pause))?;
            }
        }
        Ok(())
    }

    fn connect(&mut self, goes_back: bool) -> io::Result<()> {
        let mut connection = Connection::open(self.world.port())?;
        match &mut self.open {
            None => self.open = watch(self.world, &mut connection, &mut self.generator)?,
            Some((words, fingerprint, counted)) => {
                let last = counted.stretches.last().map_or(0, Run::last);
                let behind = if goes_back { self.generator.random.below(last + 1) } else { last };
                let subscription = format!("id:{fingerprint}");
                let answer =
                    connection.ask(&["EMITRECONNECT", &words[1], &subscription, &behind.to_string()])?;
                if answer.message.contains("TRYAGAIN") {
                    // The server stops, or is overloaded.
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if answer.is_ok {
                    assert_eq!(answer.message, format!("OK {}", behind + 1), "{words:?}");
                    counted.stretches.push(Run {
                        answer: None,
                        behind,
                        received: Vec::new(),
                        complete: None,
                    });
                } else {
                    let highest = self.world.floor();
                    counted.refusal = Some(Refused { behind, word: answer.message, highest });
                    self.closed.extend(self.open.take().map(|(_, _, counted)| counted));
                }
            }
        }
        self.connection = self.open.is_some().then_some(connection);
        Ok(())
    }

    /// Receives emissions for a while.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        while let (Some(connection), Some((words, fingerprint, counted))) =
            (&mut self.connection, &mut self.open)
        {
            let left = until.saturating_duration_since(Instant::now());
            let Some(received) = connection.next(left)? else { break };
            assert_eq!(received.fingerprint, *fingerprint, "{words:?} only is watched: {received:?}");
            let stretch = counted.stretches.last_mut().expect("it has begun");
            if received.message == "STALE_SEQUENCE" && !received.is_ok {
                let (behind, highest) = (stretch.last(), self.world.floor());
                counted.refusal = Some(Refused { behind, word: received.message, highest });
                self.closed.extend(self.open.take().map(|(_, _, counted)| counted));
                self.connection = None;
            } else {
                stretch.received.push(noted(&words[0], &received));
            }
        }
        Ok(())
    }

    /// Receives the rest: up to the number of the last emission at the time when the head was
    /// known.
    fn finish(&mut self) -> io::Result<()> {
        if self.open.is_none() {
            return Ok(());
        }
        self.connect(false)?;
        let Some((_, _, counted)) = &self.open else { return Ok(()) };
        if counted.bases.start() != counted.bases.end() {
            // Its last number is unknown.
            return Ok(());
        }
        let name = Name { query: counted.query, base: *counted.bases.start() };
        let Some(latest) = latest(self.world, &counted.read, name)? else { return Ok(()) };
        let began = Instant::now();
        while let Some((_, _, counted)) = &mut self.open {
            let stretch = counted.stretches.last_mut().expect("it has begun");
            if stretch.last() >= latest {
                stretch.complete = self.world.head();
                break;
            }
            assert!(began.elapsed() < PATIENCE, "what is behind is sent");
            self.listen(Duration::from_millis(5))?;
        }
        Ok(())
    }
}

/// Watches a read; `None` if that fails, or if the name of its query cannot be determined.
fn watch(
    world: &World,
    connection: &mut Connection,
    generator: &mut Generator,
) -> io::Result<Option<(Vec<String>, u64, Counted)>> {
    let (line, redis) = READS[generator.random.below(READS.len() as u64) as usize];
    let number = generator.random.below(5).to_string();
    let words: Vec<String> = line.split(' ').map(|word| word.replace('#', &number)).collect();
    let read = Read {
        db: 0,
        protocol: Protocol::Resp3,
        words: redis.split(' ').map(|word| word.replace('#', &number).into_bytes()).collect(),
        operators: String::new(),
        form: Form::Dice,
    };
    let life = world.life();
    let Some(before) = name_now(world, &read)? else { return Ok(None) };
    let mut watching: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = format!("{}.WATCH", words[0]);
    watching[0] = &name;
    let answer = connection.ask(&watching)?;
    let Some(after) = name_now(world, &read)? else { return Ok(None) };
    if !answer.is_ok || before.query != after.query || world.life() != life {
        return Ok(None);
    }
    let bases = before.base..=after.base;
    let stretch = Run {
        answer: Some(answer.said.to_string().into_bytes()),
        behind: 0,
        received: Vec::new(),
        complete: None,
    };
    let counted = Counted { read, query: before.query, bases, stretches: vec![stretch], refusal: None };
    Ok(Some((words, answer.fingerprint, counted)))
}

/// Returns what is noted of an emission. Its message is the value itself for `GET`.
fn noted(name: &str, received: &Result) -> Vec<u8> {
    if name == "GET" && received.is_ok {
        assert_eq!(received.said, received.message.as_str(), "the message is the value");
    }
    received.said.to_string().into_bytes()
}

impl Counted {
    /// Returns what was received with LSNs from the log, if the numbers begin at `base`.
    fn with_lsns(&self, base: u64, lsn_of: impl Fn(u64) -> Option<u64>) -> Option<Subscription> {
        let name = Name { query: self.query, base };
        let mut stretches = Vec::new();
        for run in &self.stretches {
            let lsn = lsn_of(base + run.behind)?;
            let begin = match &run.answer {
                Some(value) => Begin::Answer { lsn, seq: Some(run.behind), value: Some(value.clone()) },
                None => Begin::Resumed { behind: lsn, seq: Some(run.behind) },
            };
            let mut stretch = Stretch::new(name, begin);
            for (seq, value) in (run.behind + 1..).zip(&run.received) {
                let lsn = lsn_of(base + seq)?;
                stretch.received.push(Received::Emission { lsn, seq, value: value.clone(), old: None });
            }
            if let Some(head) = run.complete {
                stretch.end = End::Complete { head };
            }
            stretches.push(stretch);
        }
        Some(Subscription { read: self.read.clone(), stretches, refusal: None })
    }

    /// Checks that what was received equals the log, for one of the possible bases.
    pub(crate) fn judge(
        &self,
        evidence: &Evidence,
        allowance: &Allowance,
    ) -> std::result::Result<(), String> {
        let mut fault = None;
        for base in self.bases.clone() {
            let lsn_of = |number| evidence.lsn_of(self.query, number);
            let judged = match self.with_lsns(base, lsn_of) {
                Some(subscription) => evidence.judge(&subscription, allowance),
                None => Err("more was delivered than there was".to_owned()),
            };
            match judged {
                Ok(()) => match self.judge_refusal(base, evidence, allowance) {
                    Ok(()) => return Ok(()),
                    Err(why) => fault = Some(why),
                },
                Err(why) => fault = Some(why),
            }
        }
        let shown = self.read.shown();
        Err(format!("{shown} by DiceDB's protocol: {}", fault.unwrap_or_default()))
    }

    /// Checks that emissions reported as gone were gone, if the numbers begin at `base`.
    fn judge_refusal(
        &self,
        base: u64,
        evidence: &Evidence,
        allowance: &Allowance,
    ) -> std::result::Result<(), String> {
        let Some(Refused { behind, word, highest }) = &self.refusal else { return Ok(()) };
        match word.as_str() {
            "STALE_SEQUENCE" => evidence.judge_missing(self.query, base + behind, *highest, allowance),
            "SUBSCRIPTION_NOT_FOUND" if allowance.abandons || evidence.has_ended(self.query) => Ok(()),
            word => Err(format!("it was to go on behind number {behind} and was refused: {word}")),
        }
    }
}
