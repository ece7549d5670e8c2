//! The judge: compares the notes of subscribers, and the answers to writers, with the log.

use super::dice::Counted;
use super::model::{Expected, Model, Signal};
use super::names::{Held, Names};
use super::read::Read;
use super::received::{Begin, End, Floor, Name, Received, Refusal, Stretch, Subscription};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_log::Record;

/// What may be missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance {
    /// All later records can be read: the LSN of the oldest snapshot that was kept at the end, or 0
    /// if the log was whole.
    pub(crate) floor: u64,
    /// Memory retains little, and what it has evicted is not replayed from the log.
    pub(crate) forgets: bool,
    /// Reads without a subscriber are kept so briefly that a subscriber may find its own gone. The
    /// server reports this before the record of it is durable.
    pub(crate) abandons: bool,
}

/// A write that was acknowledged and must be in the log.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    /// Bytes that no other write contains.
    pub(crate) token: Vec<u8>,
    /// Why the write must be there.
    pub(crate) reason: &'static str,
}

/// What the judge knows from the log.
pub(crate) struct Evidence {
    signals: BTreeMap<u64, Signal>,
    reads: BTreeMap<u64, Read>,
    names: Names,
    /// The last record.
    last: u64,
    /// The tokens of [`Promise`]s found in records.
    tokens: BTreeSet<Vec<u8>>,
    pub(crate) records: u64,
}

/// Prefix and end of every token.
pub(crate) const TOKEN: &[u8] = b"token-";
pub(crate) const TOKEN_END: u8 = b'.';

impl Evidence {
    /// Reads the log; `records` shows every record, in order.
    pub(crate) fn of(
        subscriptions: &[Subscription],
        (held, counted): (&[Held], &[Counted]),
        records: impl Fn(&mut dyn FnMut(&Record<'_>)),
    ) -> Result<Self, String> {
        let mut names = Names::default();
        records(&mut |record| names.see(record));
        let mut reads = BTreeMap::new();
        for errand in held.iter().map(|held| &held.errand) {
            let query = names.find(&errand.name).map(|name| name.query);
            query.into_iter().for_each(|query| drop(reads.insert(query, errand.read.clone())));
        }
        for counted in counted {
            reads.insert(counted.query, counted.read.clone());
        }
        for subscription in subscriptions {
            for stretch in &subscription.stretches {
                let known = reads.entry(stretch.name.query).or_insert_with(|| subscription.read.clone());
                if !known.is_same(&subscription.read) {
                    let (one, other) = (known.shown(), subscription.read.shown());
                    return Err(format!("query {} is that of {one} and of {other}", stretch.name.query));
                }
            }
        }
        let (mut model, mut tokens, mut count) = (Model::new(), BTreeSet::new(), 0);
        records(&mut |record| {
            model.see(record, &reads);
            tokens_in(record.payload, &mut tokens);
            count += 1;
        });
        Ok(Self { last: model.last, signals: model.signals(), reads, names, tokens, records: count })
    }

    /// Checks that every acknowledged write is in the log.
    pub(crate) fn judge_promises(&self, promises: &[Promise]) -> Result<(), String> {
        match promises.iter().find(|promise| !self.tokens.contains(&promise.token)) {
            Some(Promise { token, reason }) => {
                Err(format!("{} was acknowledged {reason} and is not in the log", token.escape_ascii()))
            }
            None => Ok(()),
        }
    }

    /// Checks that consumers received what the log says under their names, as often as their manner
    /// allows.
    pub(crate) fn judge_names(&self, held: &[Held], allowance: &Allowance) -> Result<(), String> {
        self.names.judge(held, &self.signals, self.last, allowance)
    }

    /// Checks that a subscription received what the log says, from its first LSN to its last.
    pub(crate) fn judge(&self, subscription: &Subscription, allowance: &Allowance) -> Result<(), String> {
        let in_context = |fault: String| format!("{}: {fault}", subscription.read.shown());
        let mut reached = None;
        for (at, stretch) in subscription.stretches.iter().enumerate() {
            let (name, count) = (stretch.name, at + 1);
            let fault = |fault| in_context(format!("subscription {name}, stretch {count}: {fault}"));
            let signal = self.signal(name).map_err(fault)?;
            if let (Begin::Resumed { behind, .. }, Some(reached)) = (&stretch.begin, reached) {
                assert!(*behind <= reached, "a subscriber goes on behind what it has");
            }
            let place = judge_stretch(signal, &subscription.read, stretch, self.last).map_err(fault)?;
            judge_end(signal, stretch, place, self.last, allowance).map_err(fault)?;
            reached = reached.max(Some(stretch.reached()));
        }
        self.judge_whole(subscription).map_err(in_context)?;
        match (&subscription.refusal, subscription.stretches.last()) {
            (Some(refusal), Some(last)) => {
                let floor = match subscription.stretches[0].begin {
                    Begin::Answer { .. } => None,
                    Begin::Resumed { behind, .. } => Some(behind),
                };
                self.judge_refusal(last.name, refusal, floor, allowance).map_err(in_context)
            }
            _ => Ok(()),
        }
    }

    /// Returns the LSN of a query's emission by number, or of its beginning for 0.
    pub(crate) fn lsn_of(&self, query: u64, number: u64) -> Option<u64> {
        let Some(before) = number.checked_sub(1) else { return Some(query) };
        self.signals.get(&query)?.emissions.get(before as usize).map(|emission| emission.lsn)
    }

    /// Checks that the emission after the first `count` of a query was gone when at most the
    /// records up to `highest` had been removed.
    pub(crate) fn judge_missing(
        &self,
        query: u64,
        count: u64,
        highest: u64,
        allowance: &Allowance,
    ) -> Result<(), String> {
        let signal = self.signal(Name { query, base: 0 })?;
        judge_missing(signal, count, Floor { received: u64::MAX, highest }, allowance)
    }

    /// Returns whether the server has removed a query.
    pub(crate) fn has_ended(&self, query: u64) -> bool {
        self.signals.get(&query).is_some_and(|signal| signal.ended.is_some())
    }

    fn signal(&self, name: Name) -> Result<&Signal, String> {
        self.signals.get(&name.query).ok_or_else(|| match self.reads.get(&name.query) {
            Some(_) => format!("the log has no record {} that begins it", name.query),
            None => "its read is unknown".to_owned(),
        })
    }

    /// Checks all stretches together, with each emission once: they are the sequence of the log,
    /// without a gap.
    fn judge_whole(&self, subscription: &Subscription) -> Result<(), String> {
        let Some(first) = subscription.stretches.first() else { return Ok(()) };
        let signal = self.signal(first.name)?;
        let mut sequence: BTreeMap<u64, &[u8]> = BTreeMap::new();
        for received in subscription.stretches.iter().flat_map(|stretch| &stretch.received) {
            let Received::Emission { lsn, value, .. } = received else { continue };
            if *sequence.entry(*lsn).or_insert(value) != value.as_slice() {
                return Err(format!("two values were delivered for LSN {lsn}"));
            }
        }
        let from = match first.begin {
            Begin::Answer { lsn, .. } | Begin::Resumed { behind: lsn, .. } => {
                // As in `judge_begin`.
                signal.count_at(lsn).max(first.name.base)
            }
        };
        let to = signal.count_at(subscription.reached());
        let expected = &signal.emissions[from.min(to) as usize..to as usize];
        let has_received = |expected: &&Expected| {
            let value = sequence.get(&expected.lsn);
            value.is_some_and(|value| subscription.read.has_received(value, &expected.value))
        };
        let count = expected.iter().filter(has_received).count();
        // A subscriber that wants only the latest emissions may miss the others.
        let is_squashed = subscription.stretches.iter().any(|stretch| stretch.is_squashed);
        if count != sequence.len() || (count != expected.len() && !is_squashed) {
            let expected: Vec<u64> = expected.iter().map(|emission| emission.lsn).collect();
            let sequence: Vec<u64> = sequence.into_keys().collect();
            return Err(format!(
                "the sequence differs from that of the log: LSNs {sequence:?} for {expected:?}"
            ));
        }
        Ok(())
    }

    /// Checks a refusal. `floor` is where the subscription began, if it continued a stale one after
    /// its missing part.
    fn judge_refusal(
        &self,
        name: Name,
        refusal: &Refusal,
        floor: Option<u64>,
        allowance: &Allowance,
    ) -> Result<(), String> {
        let Refusal { behind, word, lsn, highest } = refusal;
        let signal = self.signal(name)?;
        match word.as_str() {
            "STALE_SEQUENCE" => {
                let floor = Floor { received: *lsn, highest: *highest };
                judge_floor(signal, name, *behind, floor, (self.last, allowance))
            }
            "SUBSCRIPTION_NOT_FOUND" if signal.ended.is_some() || allowance.abandons => Ok(()),
            // A floor is reported immediately, and may be lost in a crash together with its record.
            "INVALID_SEQUENCE" if floor == Some(*behind) => Ok(()),
            // All other positions must be valid: no killed process has emitted a record that is
            // missing in the log.
            _ => Err(format!("{name} was to go on behind {behind} and was refused: {word} {lsn}")),
        }
    }
}

/// Checks that one connection received exactly what it had to, in order, as far as it goes. Returns
/// the last LSN and the number of emissions.
pub(crate) fn judge_stretch(
    signal: &Signal,
    read: &Read,
    stretch: &Stretch,
    last: u64,
) -> Result<(u64, u64), String> {
    let base = stretch.name.base;
    let (mut place, mut next) = judge_begin(signal, stretch, last)?;
    if let Begin::Answer { value: Some(value), lsn, .. } = &stretch.begin {
        judge_value(read, &format!("the answer at {lsn}"), value, signal.shown(next))?;
    }
    for received in &stretch.received {
        let silent = signal.emissions.get(next as usize);
        match received {
            Received::Emission { lsn, seq, value, old } => {
                if stretch.is_squashed {
                    next = next.max(signal.count_at(*lsn).saturating_sub(1));
                }
                let expected = signal.emissions.get(next as usize);
                let expected = expected
                    .ok_or_else(|| format!("LSN {lsn} was delivered, and nothing has changed there"))?;
                judge_emission(read, expected, (next + 1 - base, *lsn, *seq), value, old.as_deref())?;
                next += 1;
                place = *lsn;
            }
            Received::Progress { lsn } => {
                judge_silence(silent, *lsn, last)?;
                if *lsn < place {
                    return Err(format!("progress goes back from {place} to {lsn}"));
                }
            }
            Received::CaughtUp { lsn } => {
                judge_silence(silent, *lsn, last)?;
                if *lsn != place {
                    return Err(format!("caught up at {lsn}, and what was sent ends at {place}"));
                }
            }
        }
    }
    Ok((place, next))
}

/// Returns the LSN at which a stretch begins, and how many emissions of its query the subscriber
/// has at that point.
fn judge_begin(signal: &Signal, stretch: &Stretch, last: u64) -> Result<(u64, u64), String> {
    let Name { query, base } = stretch.name;
    let (lsn, received) = match &stretch.begin {
        Begin::Answer { lsn, seq, .. } => (*lsn, *seq),
        Begin::Resumed { behind, seq } => (*behind, *seq),
    };
    if lsn > last {
        return Err(format!("it began at {lsn}, and the log ends at {last}"));
    }
    // A subscription has no numbers before its own beginning, even if its subscriber asks for an
    // earlier position.
    let count = signal.count_at(lsn).max(base);
    if base > signal.emissions.len() as u64 || received.is_some_and(|received| received != count - base) {
        return Err(format!(
            "at {lsn} its last number is said to be {received:?} and is {count} less {base}"
        ));
    }
    Ok((lsn.max(query), count))
}

fn judge_emission(
    read: &Read,
    expected: &Expected,
    (number, lsn, seq): (u64, u64, u64),
    value: &[u8],
    old: Option<&[u8]>,
) -> Result<(), String> {
    if lsn != expected.lsn {
        return Err(format!("LSN {lsn} was delivered where {} comes next", expected.lsn));
    }
    if seq != number {
        return Err(format!("the emission of LSN {lsn} has number {seq} and is number {number}"));
    }
    judge_value(read, &format!("the emission of LSN {lsn}"), value, &expected.value)?;
    old.map_or(Ok(()), |old| {
        judge_value(read, &format!("what LSN {lsn} has replaced"), old, &expected.before)
    })
}

fn judge_value(read: &Read, what: &str, received: &[u8], expected: &[u8]) -> Result<(), String> {
    if read.has_received(received, expected) {
        return Ok(());
    }
    let shown = |bytes: &[u8]| bytes[..bytes.len().min(300)].escape_ascii().to_string();
    Err(format!("{what} is {} and must be {}", shown(received), shown(expected)))
}

/// Checks that no emission up to `lsn` was missing.
fn judge_silence(next: Option<&Expected>, lsn: u64, last: u64) -> Result<(), String> {
    match next {
        Some(next) if next.lsn <= lsn => {
            Err(format!("up to {lsn} there is nothing, it was said, but {}", next.lsn))
        }
        _ if lsn > last => Err(format!("LSN {lsn} was delivered, and the log ends at {last}")),
        _ => Ok(()),
    }
}

pub(crate) fn judge_end(
    signal: &Signal,
    stretch: &Stretch,
    (place, count): (u64, u64),
    last: u64,
    allowance: &Allowance,
) -> Result<(), String> {
    match stretch.end {
        End::Broken => Ok(()),
        End::Complete { head } => judge_silence(signal.emissions.get(count as usize), head, last),
        End::Stale { at, .. } if at != place => {
            Err(format!("stale at {at}, and what was sent ends at {place}"))
        }
        End::Stale { at, floor } => {
            judge_missing(signal, count, floor, allowance)?;
            judge_floor(signal, stretch.name, at, floor, (last, allowance))
        }
    }
}

/// Checks that the emission after the first `count` may be gone.
pub(crate) fn judge_missing(
    signal: &Signal,
    count: u64,
    floor: Floor,
    allowance: &Allowance,
) -> Result<(), String> {
    let kept = if allowance.forgets { u64::MAX } else { floor.highest.min(allowance.floor) };
    match signal.emissions.get(count as usize) {
        None => Err(format!("it got a stale notice, and it had all {count}")),
        Some(next) if next.lsn > floor.received.min(kept) => {
            Err(format!("it got a stale notice, and {} comes next, which must be there", next.lsn))
        }
        Some(_) => Ok(()),
    }
}

/// Checks that the emissions reported as gone may be gone.
pub(crate) fn judge_floor(
    signal: &Signal,
    name: Name,
    behind: u64,
    floor: Floor,
    (last, allowance): (u64, &Allowance),
) -> Result<(), String> {
    let Floor { received: floor, highest } = floor;
    let said = || format!("{name} is behind {behind} and got a stale notice up to {floor}");
    let kept = highest.min(allowance.floor);
    let is_emission = |lsn| signal.emissions.binary_search_by_key(&lsn, |emission| emission.lsn).is_ok();
    if floor > last {
        return Err(format!("{}, which is behind the end of the log", said()));
    }
    if floor <= behind {
        // For a position without an emission the server no longer knows whether a crash has undone
        // it.
        let is_unknown = behind <= kept && !is_emission(behind);
        let is_place = floor == name.query || is_emission(floor);
        return if is_unknown && is_place { Ok(()) } else { Err(said()) };
    }
    // A read has no history before the record that begins it.
    if floor <= kept.max(name.query) || (allowance.forgets && is_emission(floor)) {
        Ok(())
    } else {
        Err(format!("{}, which must be there", said()))
    }
}

fn tokens_in(payload: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    let mut rest = payload;
    while let Some(at) = rest.windows(TOKEN.len()).position(|window| window == TOKEN) {
        rest = &rest[at..];
        let Some(end) = rest.iter().position(|byte| *byte == TOKEN_END) else { return };
        into.insert(rest[..=end].to_vec());
        rest = &rest[end..];
    }
}
