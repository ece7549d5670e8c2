//! Guarantees of named subscriptions: what the log says of names, and the judgement of what
//! consumers received under them.

use super::errand::{Errand, Manner};
use super::judge::{Allowance, judge_end, judge_floor, judge_stretch};
use super::model::Signal;
use super::received::{Begin, Floor, Name, Received, Refusal, Stretch};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_engine::record::{ACKNOWLEDGEMENT, Cursor, LoggedCommand, kind, put_varint};
use tidemark_log::Record;

/// What a consumer received while it owned a name. The stretch's own name comes from the log.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) errand: Errand,
    pub(crate) stretch: Stretch,
    /// The position was acknowledged up to here before the consumer asked.
    pub(crate) at_least: u64,
    /// The server refused to continue.
    pub(crate) refusal: Option<Refusal>,
    /// It was notified that it lost the name because a client had ended it.
    pub(crate) has_lost_name: bool,
}

/// Returns what a consumer writes as its work for the emission of an LSN.
pub(crate) fn effect(name: &str, lsn: u64) -> String {
    format!("effect {name} {lsn}")
}

/// What the log says of a name.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) name: Name,
    /// Position at the beginning.
    from: u64,
    /// Whether the first answer was acknowledged from the beginning.
    has_begun: bool,
    /// Positions in the order of the log.
    positions: Vec<u64>,
    /// LSNs whose work was done.
    effects: Vec<u64>,
    /// The record that ended the name.
    ended: Option<u64>,
    /// The last record that moved the position.
    moved: u64,
}

/// What the log says of all names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    logged: BTreeMap<String, Logged>,
}

impl Names {
    /// Notes what the next record says of names.
    pub(crate) fn see(&mut self, record: &Record<'_>) {
        match record.kind {
            kind::NAMED => {
                let (name, logged) = begun(record.payload).expect("the record of a name");
                let before = self.logged.insert(name, logged);
                assert!(before.is_none(), "no name is used twice");
            }
            kind::UNNAMED => {
                let name = Cursor::new(record.payload).bytes().expect("the record of a name's end");
                let logged = self.logged.get_mut(&*String::from_utf8_lossy(name));
                let before = logged.expect("what ends has begun").ended.replace(record.lsn.0);
                assert!(before.is_none(), "no name ends twice");
            }
            kind::COMMAND => self.see_command(record.lsn.0, record.payload),
            kind::TRANSACTION => {
                commands_of(record.payload).for_each(|command| self.see_command(record.lsn.0, command));
            }
            _ => {}
        }
    }

    fn see_command(&mut self, record: u64, command: &[u8]) {
        let LoggedCommand { id, args, .. } = decode(command);
        let text = |arg: &[u8]| String::from_utf8_lossy(arg).into_owned();
        if id == ACKNOWLEDGEMENT {
            let logged = self.logged.get_mut(&text(args[0])).expect("what is acknowledged has a name");
            logged.positions.push(text(args[1]).parse().expect("an LSN"));
            logged.moved = record;
        }
        for arg in args {
            let effect = text(arg);
            let Some((name, lsn)) = effect.strip_prefix("effect ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let logged = self.logged.get_mut(name).expect("what is done is done for a name");
            logged.effects.push(lsn.parse().expect("an LSN"));
        }
    }

    /// Returns the subscription of a name, if the log has it.
    pub(crate) fn find(&self, name: &str) -> Option<Name> {
        self.logged.get(name).map(|logged| logged.name)
    }

    /// Checks that consumers received what the log says under the names, as often as their manner
    /// allows.
    pub(crate) fn judge(
        &self,
        held: &[Held],
        signals: &BTreeMap<u64, Signal>,
        last: u64,
        allowance: &Allowance,
    ) -> Result<(), String> {
        let mut by_name: BTreeMap<&str, Vec<&Held>> = BTreeMap::new();
        held.iter().for_each(|held| by_name.entry(&held.errand.name).or_default().push(held));
        for (name, held) in by_name {
            let fault = |fault| format!("{name} of {}: {fault}", held[0].errand.read.shown());
            let logged = self.logged.get(name).ok_or_else(|| fault("the log does not have it".to_owned()))?;
            let signal = signals.get(&logged.name.query);
            let signal = signal.ok_or_else(|| fault("the log does not have its query".to_owned()))?;
            for held in &held {
                logged.judge_held(held, signal, last, allowance).map_err(fault)?;
            }
            logged.judge_name_end().map_err(fault)?;
            logged.judge_manner(&held, signal).map_err(fault)?;
        }
        Ok(())
    }
}

impl Logged {
    /// Returns the final position.
    fn position(&self) -> u64 {
        self.positions.iter().copied().fold(self.from, u64::max)
    }

    /// Checks that no position of a name was moved after its end.
    fn judge_name_end(&self) -> Result<(), String> {
        match self.ended {
            Some(ended) if self.moved > ended => {
                Err(format!("it has ended at {ended}, and its position was moved at {}", self.moved))
            }
            _ => Ok(()),
        }
    }

    /// Checks that one consumer received a part of the sequence, from a position that existed.
    fn judge_held(
        &self,
        held: &Held,
        signal: &Signal,
        last: u64,
        allowance: &Allowance,
    ) -> Result<(), String> {
        // Emissions that were claimed for another connection are left out.
        let is_squashed = held.errand.manner == Manner::AtMost;
        let stretch = Stretch { name: self.name, is_squashed, ..held.stretch.clone() };
        if let Some(Refusal { behind, lsn, highest, .. }) = &held.refusal {
            let floor = Floor { received: *lsn, highest: *highest };
            return judge_floor(signal, self.name, *behind, floor, (last, allowance));
        }
        if let Begin::Answer { lsn, value, .. } = &stretch.begin {
            if *lsn != self.from && !self.positions.contains(lsn) {
                return Err(format!("it went on behind {lsn}, where its position never was"));
            }
            if *lsn < held.at_least {
                return Err(format!("it went on behind {lsn}, and {} was acknowledged", held.at_least));
            }
            if value.is_some() && *lsn != self.from {
                return Err(format!("an answer was given where it went on behind {lsn}"));
            }
        }
        let (place, mut next) = judge_stretch(signal, &held.errand.read, &stretch, last)?;
        if is_squashed {
            self.judge_skipped(&stretch, signal)?;
            next = next.max(signal.count_at(self.position()));
        }
        judge_end(signal, &stretch, (place, next), last, allowance)
    }

    /// Checks that emissions which a consumer did not receive had been claimed for another one: up
    /// to an existing position.
    fn judge_skipped(&self, stretch: &Stretch, signal: &Signal) -> Result<(), String> {
        let mut next = signal.count_at(stretch.began_at()).max(self.name.base);
        for lsn in stretch.received.iter().map(Received::lsn) {
            let count = signal.count_at(lsn);
            let skipped = signal.emissions.get(next as usize..count.saturating_sub(1) as usize);
            match skipped.and_then(<[_]>::last) {
                Some(last) if !self.positions.contains(&last.lsn) => {
                    return Err(format!("{} was neither delivered nor claimed", last.lsn));
                }
                _ => next = count,
            }
        }
        Ok(())
    }

    fn judge_manner(&self, held: &[&Held], signal: &Signal) -> Result<(), String> {
        let received = || held.iter().flat_map(|held| &held.stretch.received).map(Received::lsn);
        let emissions = signal.emissions.iter().skip(self.name.base as usize).map(|emission| emission.lsn);
        let done: Vec<u64> = emissions.take_while(|lsn| *lsn <= self.position()).collect();
        match held[0].errand.manner {
            Manner::AtLeast => {
                let received: BTreeSet<u64> = received().collect();
                match done.iter().find(|lsn| !received.contains(lsn)) {
                    Some(lsn) => Err(format!("{lsn} is acknowledged, and was delivered to no subscriber")),
                    None => Ok(()),
                }
            }
            Manner::AtMost => {
                let mut once = BTreeSet::new();
                if let Some(lsn) = received().find(|lsn| !once.insert(*lsn)) {
                    return Err(format!("{lsn} was delivered twice"));
                }
                match once.last() {
                    Some(lsn) if *lsn > self.position() => {
                        Err(format!("{lsn} was delivered, and the position is {}", self.position()))
                    }
                    _ => Ok(()),
                }
            }
            Manner::Exactly => {
                let first = (!self.has_begun && !self.positions.is_empty()).then_some(self.from);
                let expected: Vec<u64> = first.into_iter().chain(done).collect();
                if self.effects == expected && self.effects.len() == self.positions.len() {
                    return Ok(());
                }
                Err(format!(
                    "it was done for {:?}, acknowledged are {:?}, and it was to be for {expected:?}",
                    self.effects, self.positions
                ))
            }
        }
    }
}

/// Returns the commands of a transaction, each as its own record would contain it.
fn commands_of(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Cursor::new(payload);
    std::iter::from_fn(move || (!rest.is_empty()).then(|| rest.bytes().expect("a command")))
}

fn decode(command: &[u8]) -> LoggedCommand<'_> {
    LoggedCommand::decode(&mut Cursor::new(command)).expect("a command")
}

fn begun(payload: &[u8]) -> Option<(String, Logged)> {
    let mut fields = Cursor::new(payload);
    let name = String::from_utf8_lossy(fields.bytes()?).into_owned();
    let (query, base, from) = (fields.varint()?, fields.varint()?, fields.varint()?);
    let _guarantee = fields.u8()?;
    let has_begun = fields.u8()? != 0;
    let logged = Logged {
        name: Name { query, base },
        from,
        has_begun,
        positions: Vec::new(),
        effects: Vec::new(),
        ended: None,
        moved: 0,
    };
    Some((name, logged))
}

/// Returns the changes of a record without the positions that it moves, because the model has no
/// names. `None` if it only moves positions.
pub(crate) fn without_positions(record: &Record<'_>) -> Option<Vec<u8>> {
    let moves = |command: &[u8]| decode(command).id == ACKNOWLEDGEMENT;
    match record.kind {
        kind::COMMAND => (!moves(record.payload)).then(|| record.payload.to_vec()),
        kind::TRANSACTION => {
            let mut payload = Vec::new();
            for command in commands_of(record.payload).filter(|command| !moves(command)) {
                put_varint(&mut payload, command.len() as u64);
                payload.extend_from_slice(command);
            }
            (!payload.is_empty()).then_some(payload)
        }
        _ => Some(record.payload.to_vec()),
    }
}
