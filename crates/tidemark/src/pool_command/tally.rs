//! What was checked of a pool, and the values that must have come up.

use crate::counted::counted;
use anyhow::bail;
use std::fmt;
use tidemark_engine::value::pool::Inner;
use tidemark_pool::{Chain, Commitment, Event, Secret};

/// Counts what was checked.
#[derive(Debug)]
pub(super) struct Tally {
    /// Whether the whole history is known: the pool was made within it.
    made: bool,
    first_lsn: u64,
    last_lsn: u64,
    first_draw: u64,
    next_draw: u64,
    frames: u64,
    /// Draws of epochs whose secret is not known, so their results cannot be computed yet.
    sealed_draws: u64,
    /// Frames whose chain was taken as stated, because they contain a secret that is not known.
    sealed_frames: u64,
    /// Epochs whose draws were computed again, and the last of them.
    epochs: u64,
    epoch: Option<u64>,
    changes: u64,
    returns: u64,
    reservations: u64,
    ends: u64,
    advances: u64,
    /// Chain at the beginning of the tally, and now.
    origin: Chain,
    chain: Chain,
}

impl Tally {
    /// Begins the tally of a pool in this state.
    pub(super) fn of(lsn: u64, pool: &Inner, chain: Chain, made: bool) -> Self {
        Self {
            made,
            first_lsn: lsn,
            last_lsn: lsn,
            first_draw: pool.next_draw(),
            next_draw: pool.next_draw(),
            frames: 0,
            sealed_draws: 0,
            sealed_frames: 0,
            epochs: 0,
            epoch: None,
            changes: 0,
            returns: 0,
            reservations: 0,
            ends: 0,
            advances: 0,
            origin: chain,
            chain,
        }
    }

    /// Returns the chain with which the tally began, which identifies the pool.
    pub(super) fn origin(&self) -> Chain {
        self.origin
    }

    /// Counts an event that was checked.
    pub(super) fn event(&mut self, pool: &Inner, event: &Event<'_>) {
        let draws = pool.next_draw() - self.next_draw;
        self.next_draw = pool.next_draw();
        let epoch = pool.epoch();
        if epoch.secret.is_sealed() {
            self.sealed_draws += draws;
        } else if draws > 0 && self.epoch != Some(epoch.index) {
            self.epoch = Some(epoch.index);
            self.epochs += 1;
        }
        match event {
            Event::Drew(_) | Event::DrewDifferent { .. } | Event::Epoch { .. } => {}
            Event::Reserved { .. } => self.reservations += 1,
            Event::Asked(asked) => self.reservations += u64::from(asked.until_us.is_some()),
            Event::Ended { .. } => self.ends += 1,
            Event::Changed { .. } | Event::Added { .. } | Event::Removed { .. } => self.changes += 1,
            Event::GivenBack { .. } | Event::GivenBackBy { .. } => self.returns += 1,
            Event::Advanced { .. } => self.advances += 1,
        }
    }

    /// Counts a frame that was checked.
    pub(super) fn frame(&mut self, lsn: u64, chain: Chain, is_sealed: bool) {
        self.last_lsn = lsn;
        self.frames += 1;
        self.sealed_frames += u64::from(is_sealed);
        self.chain = chain;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_lsn, last_lsn, first_draw, next_draw, frames, .. } = self;
        let from = if self.made { "made by" } else { "as it stood at" };
        writeln!(
            f,
            "{} of the log checked, {from} record {first_lsn}, up to record {last_lsn}",
            counted(*frames, "frame")
        )?;
        let draws = next_draw - first_draw;
        let known = counted(draws - self.sealed_draws, "draw");
        match self.epochs {
            0 => write!(f, "no draws made again")?,
            1 => write!(f, "{known} made again from the secret of 1 epoch")?,
            epochs => write!(f, "{known} made again from the secrets of {epochs} epochs")?,
        }
        let of = if self.sealed_draws > 0 { "of the " } else { "" };
        match draws {
            0 => {}
            1 => write!(f, " ({of}number {first_draw})")?,
            _ => write!(f, " ({of}numbers {first_draw} to {})", next_draw - 1)?,
        }
        writeln!(f)?;
        if self.sealed_draws > 0 {
            writeln!(
                f,
                "{} of epochs whose secrets are not known: stock and odds fit, the choice cannot be checked yet",
                counted(self.sealed_draws, "draw")
            )?;
        }
        if self.sealed_frames > 0 {
            writeln!(
                f,
                "{} of the chain taken as stated: {} secrets that are not known",
                counted(self.sealed_frames, "link"),
                if self.sealed_frames == 1 { "it covers" } else { "they cover" },
            )?;
        }
        writeln!(
            f,
            "{} of the catalogue, {}, {} made, {} ended",
            counted(self.changes, "change"),
            counted(self.returns, "return"),
            counted(self.reservations, "reservation"),
            self.ends,
        )?;
        if self.advances > 0 {
            writeln!(
                f,
                "the schedule went on {}, each time when it was due",
                counted(self.advances, "time")
            )?;
        }
        writeln!(f, "chain {}", self.chain)
    }
}

/// Values that the user has noted or that were published; each of them must come up.
#[derive(Debug, Default)]
pub(super) struct Demands {
    chains: Vec<(Chain, bool)>,
    commitments: Vec<(Commitment, bool)>,
    /// Arguments with secrets, with their commitments. Each needs an epoch with one of its secrets,
    /// and is removed when one has come up.
    secrets: Vec<(String, Vec<Commitment>)>,
}

impl Demands {
    pub(super) fn new(chains: &[[u8; 32]], commitments: &[[u8; 32]]) -> Self {
        Self {
            chains: chains.iter().map(|bytes| (Chain::from(*bytes), false)).collect(),
            commitments: commitments.iter().map(|bytes| (Commitment(*bytes), false)).collect(),
            secrets: Vec::new(),
        }
    }

    /// Requires also an epoch of one of these secrets, which an argument has given.
    pub(super) fn secrets(&mut self, argument: String, secrets: &[[u8; 32]]) {
        let commitments = secrets.iter().map(|secret| Secret::new(*secret).commitment()).collect();
        self.secrets.push((argument, commitments));
    }

    /// Notes the secrets of epochs that had ended before the export began.
    pub(super) fn pass_over(&mut self, pool: &Inner) {
        let over = (0..pool.epoch().index).rev().map_while(|epoch| pool.revealed(epoch));
        let over: Vec<_> = over.map(|revealed| revealed.epoch.secret.commitment()).collect();
        self.meet_secrets(&over);
    }

    fn meet_secrets(&mut self, known: &[Commitment]) {
        self.secrets.retain(|(_, wanted)| !wanted.iter().any(|commitment| known.contains(commitment)));
    }

    /// Notes the chain's current value and the pool's commitments.
    pub(super) fn pass(&mut self, pool: &Inner, chain: Chain) {
        for (wanted, is_met) in &mut self.chains {
            *is_met |= *wanted == chain;
        }
        if !self.secrets.is_empty() || self.commitments.iter().any(|(_, is_met)| !is_met) {
            let published = [pool.commitment(), pool.next_commitment()];
            for (wanted, is_met) in &mut self.commitments {
                *is_met |= published.contains(wanted);
            }
            self.meet_secrets(&published);
        }
    }

    /// Fails if a value has not come up.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some((argument, commitments)) = self.secrets.first() {
            match &commitments[..] {
                [commitment] => bail!(
                    "not good\n{argument} is the secret of no epoch here: its commitment is {commitment}, which the audit does not have"
                ),
                _ => bail!("not good\n{argument} has the secret of no epoch in the audit"),
            }
        }
        if let Some((chain, _)) = self.chains.iter().find(|(_, is_met)| !is_met) {
            bail!(
                "the chain never has the value {chain}: earlier records are missing, or were changed after it was noted"
            );
        }
        if let Some((commitment, _)) = self.commitments.iter().find(|(_, is_met)| !is_met) {
            bail!("no epoch has the commitment {commitment}: the secrets are not those that were promised");
        }
        Ok(())
    }
}
