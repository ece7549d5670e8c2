//! A consumer without state: it watches under a name, does its work for each emission, and crashes.
//! Several consumers share the names and take them over from each other.

use super::errand::{Errand, Errands, Fate, Manner, lock};
use super::inbound::PATIENCE;
use super::names::{Held, effect};
use super::received::{Begin, End, Floor, Name, Received, Refusal, Stretch};
use super::stream::{Connection, Frame, content, elements, number};
use super::world::World;
use crate::commands::Generator;
use std::io;
use std::time::{Duration, Instant};

/// Database in which consumers do their work. No read of it is watched.
const EFFECTS_DB: &str = "5";

/// Longest time that a consumer waits before it processes an emission.
const LONGEST_PAUSE_MS: u64 = 20;

/// A consumer of named subscriptions.
pub(crate) struct Consumer<'w> {
    world: &'w World,
    errands: &'w Errands,
    generator: Generator,
    /// Number of the errand that it completes when all writes are done.
    number: usize,
    held: Vec<Held>,
}

/// A name that a connection owns.
struct Tenure {
    connection: Connection,
    /// Connection on which it does its work.
    worker: Connection,
    /// Run of the server, and whether that is certain.
    life: usize,
    is_life_certain: bool,
    held: Held,
    /// Emissions that it has received and not processed.
    undone: Vec<u64>,
    has_ended: bool,
}

impl<'w> Consumer<'w> {
    pub(crate) fn new(world: &'w World, errands: &'w Errands, generator: Generator, number: usize) -> Self {
        Self { world, errands, generator, number, held: Vec::new() }
    }

    /// Consumes until there is nothing more to receive; returns all that it received.
    pub(crate) fn run(mut self) -> Vec<Held> {
        while self.world.head().is_none() {
            if self.world.is_given_up() {
                return Vec::new();
            }
            let errand = self.errands.any(&mut self.generator.random);
            if self.live(&errand, Self::work).is_err() {
                // The server has gone, or will be back soon.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.finish();
        self.held
    }

    /// Runs the consumer once, and notes what it received, however the run ends.
    fn live(
        &mut self,
        errand: &Errand,
        work: impl FnOnce(&mut Self, &mut Tenure) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(mut tenure) = self.begin(errand)? else { return Ok(()) };
        self.errands.note_holder(&errand.name, true);
        let worked = work(self, &mut tenure);
        self.errands.note_holder(&errand.name, false);
        self.held.push(tenure.held);
        worked
    }

    /// Takes over the name; returns `None` if the server refuses.
    fn begin(&mut self, errand: &Errand) -> io::Result<Option<Tenure>> {
        let life = self.world.life();
        let mut connection = Connection::open(self.world.port(), self.generator.random.once_in(3))?;
        ask(&mut connection, &["HELLO", "3"])?;
        ask(&mut connection, &["SELECT", &errand.read.db.to_string()])?;
        let mut worker = Connection::open(self.world.port(), false)?;
        ask(&mut worker, &["SELECT", EFFECTS_DB])?;
        let at_least = self.errands.done(&errand.name, life);
        let place = self.place(errand);
        let (begin, answer) = match place {
            Some(behind) => {
                let answer = ask(&mut connection, &errand.words("EMITRECONNECT", behind))?;
                (reconnected(behind, &answer), answer)
            }
            None => {
                let fate = self.errands.fate(&errand.name);
                let fate = lock(&fate);
                if *fate != Fate::Lives {
                    return Ok(None);
                }
                let answer = ask(&mut connection, &errand.read.watch(&self.options(errand)))?;
                (begun(&answer), answer)
            }
        };
        let Some(begin) = begin else { return self.refused(errand, place.unwrap_or(at_least), &answer) };
        let first = match &begin {
            Begin::Answer { lsn, .. } if errand.manner == Manner::Exactly => Some(*lsn),
            _ => None,
        };
        let stretch = Stretch::new(Name { query: 0, base: 0 }, begin);
        let is_same = self.world.life() == life;
        let held = Held {
            errand: errand.clone(),
            stretch,
            at_least: if is_same { at_least } else { 0 },
            refusal: None,
            has_lost_name: false,
        };
        let undone = first.into_iter().collect();
        let is_life_certain = is_same;
        Ok(Some(Tenure { connection, worker, life, is_life_certain, held, undone, has_ended: false }))
    }

    /// Returns an earlier LSN that it received, to resume after although the server keeps the
    /// position.
    fn place(&mut self, errand: &Errand) -> Option<u64> {
        if errand.manner != Manner::AtLeast || !self.generator.random.once_in(4) {
            return None;
        }
        let last = self.held.iter().rev().find(|held| held.errand.name == errand.name)?;
        Some(last.stretch.reached())
    }

    fn options(&mut self, errand: &Errand) -> Vec<String> {
        let mut options = vec!["AS".to_owned(), errand.name.clone()];
        if errand.manner == Manner::AtMost {
            options.push("ATMOSTONCE".to_owned());
        }
        if self.generator.random.once_in(4) {
            options.push("UPDATES".to_owned());
        }
        options
    }

    fn refused(&mut self, errand: &Errand, behind: u64, answer: &Frame) -> io::Result<Option<Tenure>> {
        let text = answer.text().replace(['\r', '\n'], " ");
        let mut words = text.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
        let word = words.find(|word| word.len() > 2).unwrap_or_default().to_owned();
        let lsn = text.split([' ', ':']).find_map(|word| word.parse().ok()).unwrap_or(0);
        match word.as_str() {
            "TRYAGAIN" => return Err(io::ErrorKind::Interrupted.into()),
            // The position has moved during the search.
            "INVALID_SEQUENCE" if errand.manner == Manner::AtMost => return Ok(None),
            "STALE_SEQUENCE" => {
                let lsn = elements(&answer.0).get(1).map_or(lsn, |lsn| number(lsn));
                let refusal = Refusal { behind, word, lsn, highest: self.world.floor() };
                let stretch = Stretch::new(Name { query: 0, base: 0 }, Begin::Resumed { behind, seq: None });
                let errand = errand.clone();
                let refusal = Some(refusal);
                self.held.push(Held { errand, stretch, at_least: 0, refusal, has_lost_name: false });
            }
            // A read that cannot be watched.
            "ERR" | "WRONGTYPE" => {}
            "SUBSCRIPTION_NOT_FOUND" if self.errands.is_doomed(&errand.name) => {}
            _ => panic!("{} of {} is answered {text}", errand.name, errand.read.shown()),
        }
        self.errands.replace(errand, &mut self.generator);
        Ok(None)
    }

    fn work(&mut self, tenure: &mut Tenure) -> io::Result<()> {
        while !tenure.has_ended && self.world.head().is_none() && !self.world.is_given_up() {
            if self.has_ended(tenure) {
                return tenure.await_end(self.world);
            }
            let random = &mut self.generator.random;
            match random.below(60) {
                // Crashes, even with unprocessed emissions.
                0 => return Ok(()),
                1 => {
                    let answer = tenure.ask(self.world, &["UNWATCH", &tenure.held.errand.name.clone()])?;
                    assert!([":1", ":0"].contains(&answer.text().as_str()), "{}", answer.text());
                    return Ok(());
                }
                2 => std::thread::sleep(Duration::from_millis(20 + random.below(150))),
                3..6 => self.acknowledge(tenure)?,
                6 if random.once_in(2) => self.end_name(tenure)?,
                _ => {
                    let pause = 1 + random.below(LONGEST_PAUSE_MS);
                    tenure.listen(self.world, Duration::from_millis(pause))?;
                    self.process(tenure)?;
                }
            }
        }
        Ok(())
    }

    /// Acknowledges what it has received, if its manner requires that.
    fn acknowledge(&mut self, tenure: &mut Tenure) -> io::Result<()> {
        let Held { errand, stretch, .. } = &tenure.held;
        if errand.manner != Manner::AtLeast || stretch.received.is_empty() {
            return Ok(());
        }
        let at = self.generator.random.below(stretch.received.len() as u64) as usize;
        let lsn = stretch.received[at].lsn();
        let words = errand.words("EMITACK", lsn);
        let answer = if self.generator.random.once_in(2) {
            ask(&mut tenure.worker, &words)?
        } else {
            tenure.ask(self.world, &words)?
        };
        let (name, text) = (&tenure.held.errand.name, answer.text());
        let has_moved = text == "+OK";
        assert!(has_moved || self.errands.is_doomed(name), "{name} has reported {lsn}: {text}");
        if has_moved {
            self.note_done(tenure, lsn);
        }
        Ok(())
    }

    /// Ends a name permanently: its own, one that another consumer owns, or one without an owner.
    fn end_name(&mut self, tenure: &mut Tenure) -> io::Result<()> {
        let random = &mut self.generator.random;
        let (errand, is_by_worker) = match random.below(3) {
            0 => (tenure.held.errand.clone(), random.once_in(2)),
            _ => (self.errands.any(random), random.once_in(2)),
        };
        let (fate, is_own) = (self.errands.fate(&errand.name), errand.name == tenure.held.errand.name);
        {
            let mut fate = lock(&fate);
            if *fate != Fate::Lives {
                return Ok(());
            }
            *fate = Fate::Doomed;
        }
        self.errands.replace(&errand, &mut self.generator);
        let words = ["UNWATCH", "NAMED", &errand.name];
        let answer =
            if is_by_worker { ask(&mut tenure.worker, &words)? } else { tenure.ask(self.world, &words)? };
        let text = answer.text();
        assert!(text == ":1" || text == ":0" && !is_own, "the end of {} is answered {text}", errand.name);
        if tenure.is_life_certain {
            *lock(&fate) = Fate::Ended(tenure.life);
        }
        if text == ":1" {
            self.errands.note_end(&errand.name, is_own);
        }
        Ok(())
    }

    /// Returns whether the server that gave it the name has ended the name.
    fn has_ended(&self, tenure: &Tenure) -> bool {
        let fate = self.errands.fate(&tenure.held.errand.name);
        tenure.is_life_certain && *lock(&fate) == Fate::Ended(tenure.life)
    }

    /// Processes the received emissions.
    fn process(&mut self, tenure: &mut Tenure) -> io::Result<()> {
        match tenure.held.errand.manner {
            Manner::AtLeast => {}
            Manner::AtMost => {
                let received = tenure.held.stretch.received.last().map(Received::lsn);
                received.into_iter().for_each(|lsn| self.note_done(tenure, lsn));
            }
            Manner::Exactly => {
                while !tenure.undone.is_empty() {
                    let most = 1 + self.generator.random.below(3) as usize;
                    self.transact(tenure, most)?;
                    if self.generator.random.once_in(50) {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Processes the next emissions in one transaction, each exactly once.
    fn transact(&mut self, tenure: &mut Tenure, most: usize) -> io::Result<()> {
        let batch: Vec<u64> = tenure.undone.iter().copied().take(most).collect();
        let errand = tenure.held.errand.clone();
        let name = &errand.name;
        ask(&mut tenure.worker, &["MULTI"])?;
        for lsn in &batch {
            ask(&mut tenure.worker, &["RPUSH", "done", &effect(name, *lsn)])?;
            ask(&mut tenure.worker, &errand.words("EMITACK", *lsn))?;
        }
        let answer = ask(&mut tenure.worker, &["EXEC"])?;
        if answer.is_error() && self.errands.is_doomed(name) {
            tenure.undone.clear();
            return Ok(());
        }
        let is_done_before = answer.text() == "*-1";
        assert!(
            is_done_before || answer.elements().len() == 2 * batch.len(),
            "{name} has reported {batch:?}: {}",
            answer.text()
        );
        if is_done_before && batch.len() > 1 {
            // The first of them was already processed by an earlier owner of the name.
            return self.transact(tenure, 1);
        }
        tenure.undone.drain(..batch.len());
        batch.last().into_iter().for_each(|lsn| self.note_done(tenure, *lsn));
        Ok(())
    }

    fn note_done(&self, tenure: &Tenure, lsn: u64) {
        self.errands.note_done(&tenure.held.errand.name, tenure.life, lsn);
    }

    /// Completes its errand, even if another consumer takes over the name.
    fn finish(&mut self) {
        let (began, mut is_complete) = (Instant::now(), false);
        while !is_complete {
            assert!(began.elapsed() < PATIENCE, "what is behind is sent");
            let Some(errand) = self.errands.of_number(self.number) else { return };
            let finished = self.live(&errand, |consumer, tenure| {
                is_complete = consumer.take_rest(tenure)?;
                Ok(())
            });
            if finished.is_err() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Receives and processes all that there is; returns whether it has everything.
    fn take_rest(&mut self, tenure: &mut Tenure) -> io::Result<bool> {
        let began = Instant::now();
        while !tenure.has_ended {
            assert!(began.elapsed() < PATIENCE, "what is behind is sent");
            if self.has_ended(tenure) {
                tenure.await_end(self.world)?;
                break;
            }
            let watches = tenure.ask(self.world, &["WATCHES"])?;
            let is_behind = |watch: &&[u8]| {
                elements(watch).chunks(2).any(|pair| content(pair[0]) == b"lag" && number(pair[1]) > 0)
            };
            self.process(tenure)?;
            if !tenure.has_ended && !watches.elements().iter().any(is_behind) {
                tenure.held.stretch.end = End::Complete { head: self.world.head().unwrap_or_default() };
                return Ok(true);
            }
            tenure.listen(self.world, Duration::from_millis(5))?;
        }
        Ok(false)
    }
}

impl Tenure {
    /// Sends a command; returns its answer and notes the pushes before it.
    fn ask<W: AsRef<[u8]>>(&mut self, world: &World, words: &[W]) -> io::Result<Frame> {
        self.connection.send(words)?;
        loop {
            let frame = self.connection.next(PATIENCE)?.expect("a server that runs answers");
            if !self.take(world, &frame) {
                return Ok(frame);
            }
        }
    }

    /// Waits for a push and notes it; `time` is the longest wait.
    fn listen(&mut self, world: &World, time: Duration) -> io::Result<()> {
        if let Some(frame) = self.connection.next(time)? {
            assert!(self.take(world, &frame), "unrequested: {}", frame.text());
        }
        Ok(())
    }

    /// Notes pushes until one says that the name has ended, which must be the last.
    fn await_end(&mut self, world: &World) -> io::Result<()> {
        let began = Instant::now();
        while !self.has_ended {
            let name = &self.held.errand.name;
            assert!(began.elapsed() < PATIENCE, "the client of {name} is notified that it has ended");
            self.listen(world, Duration::from_millis(5))?;
        }
        self.held.has_lost_name = true;
        self.ask(world, &["PING"]).map(drop)
    }

    /// Notes a frame; returns whether it is about the subscription.
    fn take(&mut self, world: &World, frame: &Frame) -> bool {
        let parts = frame.elements();
        let had_ended = self.has_ended;
        let (name, stretch) = (self.held.errand.name.as_bytes(), &mut self.held.stretch);
        match (frame.word(), parts.as_slice()) {
            (b"emission", [_, of, lsn, seq, value]) if content(of) == name => {
                let (lsn, seq) = (number(lsn), number(seq));
                if self.held.errand.manner == Manner::Exactly {
                    self.undone.push(lsn);
                }
                stretch.received.push(Received::Emission { lsn, seq, value: value.to_vec(), old: None });
            }
            (b"stale", [_, of, at, floor]) if content(of) == name => {
                let floor = Floor { received: number(floor), highest: world.floor() };
                (stretch.end, self.has_ended) = (End::Stale { at: number(at), floor }, true);
            }
            (b"ended", [_, of, _]) if content(of) == name => self.has_ended = true,
            _ => return false,
        }
        assert!(!had_ended, "nothing follows the end: {}", frame.text());
        true
    }
}

/// Returns the beginning of a subscription from its answer.
fn begun(answer: &Frame) -> Option<Begin> {
    let [_, _, _, lsn, _, seq, _, value] = answer.elements()[..] else { return None };
    let value = Some(value.to_vec()).filter(|value| value != b"_\r\n");
    Some(Begin::Answer { lsn: number(lsn), seq: Some(number(seq)), value })
}

fn reconnected(behind: u64, answer: &Frame) -> Option<Begin> {
    let [word, next] = answer.elements()[..] else { return None };
    (content(word) == b"OK").then(|| Begin::Resumed { behind, seq: Some(number(next) - 1) })
}

fn ask<W: AsRef<[u8]>>(connection: &mut Connection, words: &[W]) -> io::Result<Frame> {
    connection.send(words)?;
    Ok(connection.next(PATIENCE)?.expect("a server that runs answers"))
}
