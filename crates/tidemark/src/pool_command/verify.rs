//! `tidemark pool verify`: computes again all that can be computed of a pool, and reports the first
//! difference.

use super::history::{History, NotGood};
use super::outsider;
use super::tally::{Demands, Tally};
use super::{PoolName, hexadecimal, progress};
use anyhow::{Context, bail};
use clap::Args;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tidemark_engine::value::Pool;
use tidemark_engine::value::pool::{NotFollowed, Sight};
use tidemark_engine::watch::{PoolChange, PoolObserver, PoolTrail, TrailError};
use tidemark_log::Lsn;
use tidemark_pool::{Chain, Divergence};

/// Arguments of `tidemark pool verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The pool's key; with --audit the file says it
    #[arg(required_unless_present = "audit", conflicts_with = "audit")]
    key: Option<OsString>,
    /// Database
    #[arg(short = 'n', long, default_value_t = 0, value_parser = super::database())]
    db: u8,
    /// A value of the chain that must come up: POOL.STATE showed it once
    #[arg(long, value_name = "HEX", value_parser = hexadecimal::decode)]
    chain: Vec<[u8; 32]>,
    /// A commitment that was published, which an epoch must have
    #[arg(long, value_name = "HEX", value_parser = hexadecimal::decode)]
    commitment: Vec<[u8; 32]>,
    /// Check an exported audit (JSON Lines) in place of a server's log
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// With --audit: the secret of an epoch that is over; those that the file tells are known
    #[arg(long, value_name = "HEX", requires = "audit", conflicts_with = "key", value_parser = hexadecimal::decode)]
    secret: Vec<[u8; 32]>,
    /// With --audit: such secrets, one a line of 64 hexadecimal digits or as POOL.REVEAL shows it,
    /// or as digits in place of a file
    #[arg(long, value_name = "FILE|HEX", requires = "audit", conflicts_with = "key")]
    revealed: Vec<String>,
}

/// Checks, and reports what was checked.
pub(super) fn run(args: &VerifyArgs, dir: &std::path::Path) -> anyhow::Result<ExitCode> {
    let demands = Demands::new(&args.chain, &args.commitment);
    let Some(key) = &args.key else {
        let audit = args.audit.as_deref().context("an audit or a key is needed")?;
        return outsider::run(audit, &args.secret, &args.revealed, demands);
    };
    let name = PoolName { key: key.clone().into_encoded_bytes(), db: args.db };
    let bar = progress(dir);
    let mut history = History::open(dir, &name.key, &bar)?;
    let mut verifier = Verifier::new(&name, demands);
    let followed = history.follow(&mut verifier, Some(&name), &bar);
    let snapshots = followed.map_err(|error| explained(error, &history, &name))?;
    bar.finish_and_clear();
    verifier.demands.check()?;
    let unread = history.unread();
    report(&verifier, snapshots, history.last(), unread.as_deref())
}

/// Counts the events that the trail checks.
struct Verifier<'a> {
    name: &'a PoolName,
    demands: Demands,
    /// Tallies of all pools, by their chain: a pool keeps its tally when it is moved to another
    /// key.
    tallies: HashMap<Chain, Tally>,
    /// Tally of the pool in the current frame.
    current: Option<Tally>,
    /// Chain of the pool at the key, or of the last pool that was there.
    here: Option<Chain>,
    /// Origins of the pools that were at the key.
    pools: HashSet<Chain>,
    /// The record that left the key without a pool.
    gone: Option<Lsn>,
}

impl<'a> Verifier<'a> {
    fn new(name: &'a PoolName, demands: Demands) -> Self {
        Self {
            name,
            demands,
            tallies: HashMap::new(),
            current: None,
            here: None,
            pools: HashSet::new(),
            gone: None,
        }
    }

    /// Notes the pool at the key.
    fn meet(&mut self, lsn: Lsn, pool: &Pool) {
        let chain = pool.chain();
        let tally = self.tallies.entry(chain).or_insert_with(|| Tally::of(lsn.0, pool.inner(), chain, false));
        self.pools.insert(tally.origin());
        self.demands.pass(pool.inner(), chain);
        (self.here, self.gone) = (Some(chain), None);
    }
}

impl PoolObserver for Verifier<'_> {
    fn created(&mut self, place: &PoolChange<'_>, pool: &Pool) -> io::Result<()> {
        let chain = pool.chain();
        self.tallies.insert(chain, Tally::of(place.lsn.0, pool.inner(), chain, true));
        self.demands.pass(pool.inner(), chain);
        Ok(())
    }

    fn frame_begins(&mut self, place: &PoolChange<'_>, pool: &Pool, _: &[u8]) -> io::Result<()> {
        let chain = pool.chain();
        let known = self.tallies.remove(&chain);
        self.current = Some(known.unwrap_or_else(|| Tally::of(place.lsn.0, pool.inner(), chain, false)));
        Ok(())
    }

    fn observe(&mut self, _: &PoolChange<'_>, sight: Sight<'_>) -> io::Result<()> {
        if let (Some(tally), Sight::Behind(pool, event)) = (&mut self.current, sight) {
            tally.event(pool, event);
        }
        Ok(())
    }

    fn frame_ends(&mut self, place: &PoolChange<'_>, pool: &Pool) -> io::Result<()> {
        let chain = pool.chain();
        if let Some(mut tally) = self.current.take() {
            tally.frame(place.lsn.0, chain, false);
            self.tallies.insert(chain, tally);
        }
        self.demands.pass(pool.inner(), chain);
        if self.name.is(place) {
            self.here = Some(chain);
        }
        Ok(())
    }

    fn keys_changed(&mut self, lsn: Lsn, _: u64, trail: &PoolTrail) -> io::Result<()> {
        trail.look(self.name.db, &self.name.key, |pool| match pool {
            Some(pool) => self.meet(lsn, pool),
            None if self.here.is_some() && self.gone.is_none() => self.gone = Some(lsn),
            None => {}
        });
        Ok(())
    }
}

/// Writes for people what was checked.
fn report(
    verifier: &Verifier<'_>,
    snapshots: u64,
    last: Lsn,
    unread: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let name = verifier.name;
    let Some(tally) = verifier.here.and_then(|chain| verifier.tallies.get(&chain)) else {
        bail!("the log has no pool {name}, up to record {last}");
    };
    let mut out = io::stdout().lock();
    match unread {
        None => writeln!(out, "pool {name}: good")?,
        Some(unread) => writeln!(out, "pool {name}: good, as far as the log could be read\n{unread}")?,
    }
    write!(out, "{tally}")?;
    match snapshots {
        0 => {}
        1 => writeln!(out, "1 snapshot agrees with the log")?,
        _ => writeln!(out, "{snapshots} snapshots agree with the log")?,
    }
    match verifier.pools.len().saturating_sub(1) {
        0 => {}
        others => writeln!(out, "earlier pools at this key: {others}, good as well")?,
    }
    if let Some(lsn) = verifier.gone {
        writeln!(out, "the pool was removed at record {lsn}")?;
    }
    writeln!(out, "the log was read up to record {last}")?;
    Ok(if unread.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Adds to the error the ids of the items that it names by number.
fn explained(error: anyhow::Error, history: &History, name: &PoolName) -> anyhow::Error {
    let Some(NotGood { lsn, error: cause }) = error.downcast_ref::<NotGood>() else { return error };
    let items: Vec<u32> = match &**cause {
        TrailError::Pool(NotFollowed::Divergence(divergence)) => named(divergence),
        TrailError::Pool(NotFollowed::Both { divergence, .. }) => named(divergence),
        _ => Vec::new(),
    };
    let ids: Vec<String> = history.trail().look(name.db, &name.key, |pool| {
        let urn = pool.map(|pool| pool.inner().urn());
        let id = |item: u32| {
            urn.filter(|urn| (item as usize) < urn.len())
                .map(|urn| format!("item {item} is {:?}", urn.id(item)))
        };
        items.into_iter().filter_map(id).collect()
    });
    let ids = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    anyhow::anyhow!("pool {name}: not good\nrecord {lsn}: {cause}{ids}")
}

fn named(divergence: &Divergence) -> Vec<u32> {
    match divergence {
        Divergence::OtherItem { recorded, computed, .. } => {
            recorded.iter().chain(computed).copied().collect()
        }
        Divergence::NoneLeft { item, .. } => vec![*item],
        _ => Vec::new(),
    }
}
