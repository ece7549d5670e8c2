//! A conflict-free replicated counter (CRDT), which replicas update without coordination.

use std::collections::BTreeMap;

/// Most replicas that a counter may ever have had.
pub const MAX_REPLICAS: usize = 1 << 16;

/// A PN-counter: for every replica the sum of all its increments and the sum of all its decrements.
/// Replicas exchange their states, in any order and any number of times, and [`merge`](Self::merge)
/// takes the maximum of each sum. Replicas that have received everything, directly or indirectly,
/// have the same [`value`](Self::value).
///
/// It cannot enforce a limit: two replicas that have not exchanged states both take the last unit.
///
/// # Replicas
/// A replica is a number that only one process uses at a time. It must continue from all the state
/// that it has ever published. A replica that has lost its state must use a new number, or the
/// greater sums that other replicas have swallow its moves.
///
/// # Cost
/// Some 40 bytes for each replica that ever moved it, at most [`MAX_REPLICAS`]. A move takes one
/// search among them; a merge takes one for each replica of the other.
///
/// ```
/// use tidemark_lab::baseline::PnCounter;
///
/// let (mut berlin, mut oslo) = (PnCounter::default(), PnCounter::default());
/// berlin.increment(1, 10)?;
/// oslo.decrement(2, 3)?;
///
/// let message = berlin.delta(&oslo).encode();
/// oslo.merge(&PnCounter::decode(&message)?)?;
/// oslo.merge(&PnCounter::decode(&message)?)?;
/// assert_eq!(oslo.value(), 7);
/// # Ok::<(), tidemark_lab::baseline::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PnCounter {
    /// At most `MAX_REPLICAS`. None has two zero sums, so equal counters compare equal.
    sums: BTreeMap<u64, Sums>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Sums {
    increments: u64,
    decrements: u64,
}

/// Why a counter has refused a call. The counter is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The sum of a replica's increments, or of its decrements, exceeds 2^64 − 1.
    #[error("the moves of replica {replica} are more than can be counted")]
    Overflow {
        /// The replica.
        replica: u64,
    },
    /// There are too many replicas.
    #[error("a counter has at most {MAX_REPLICAS} replicas")]
    TooManyReplicas,
    /// The bytes are not an encoded counter.
    #[error("not an encoded counter: byte {at} cannot be there")]
    Malformed {
        /// Offset of the invalid byte; the length if the input is truncated.
        at: usize,
    },
}

impl PnCounter {
    /// Adds `amount` units at a replica.
    ///
    /// # Errors
    /// [`Refused::Overflow`], [`Refused::TooManyReplicas`].
    pub fn increment(&mut self, replica: u64, amount: u64) -> Result<(), Refused> {
        self.change(replica, amount, |sums| &mut sums.increments)
    }

    /// Subtracts `amount` units at a replica. The value may become negative.
    ///
    /// # Errors
    /// [`Refused::Overflow`], [`Refused::TooManyReplicas`].
    pub fn decrement(&mut self, replica: u64, amount: u64) -> Result<(), Refused> {
        self.change(replica, amount, |sums| &mut sums.decrements)
    }

    /// Returns all known increments minus all known decrements. Exact.
    pub fn value(&self) -> i128 {
        // At most 2^16 times 2^64.
        self.sums.values().map(|sums| i128::from(sums.increments) - i128::from(sums.decrements)).sum()
    }

    /// Returns the number of replicas that are known to have moved it.
    pub fn replicas(&self) -> usize {
        self.sums.len()
    }

    /// Merges the state of `other`. Commutative, associative and idempotent.
    ///
    /// # Errors
    /// [`Refused::TooManyReplicas`] if the two have too many together.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let unknown = other.sums.keys().filter(|replica| !self.sums.contains_key(replica)).count();
        if self.sums.len() + unknown > MAX_REPLICAS {
            return Err(Refused::TooManyReplicas);
        }
        for (replica, theirs) in &other.sums {
            let ours = self.sums.entry(*replica).or_default();
            ours.increments = ours.increments.max(theirs.increments);
            ours.decrements = ours.decrements.max(theirs.decrements);
        }
        Ok(())
    }

    /// Returns what this counter has and `known` lacks, where `known` is a present or past state of
    /// another replica. Merging the delta there has the same effect as merging everything. It is an
    /// ordinary counter, and may be merged late, repeatedly or out of order.
    #[must_use]
    pub fn delta(&self, known: &Self) -> Self {
        let is_news = |replica: &u64, ours: &Sums| {
            known.sums.get(replica).is_none_or(|theirs| {
                ours.increments > theirs.increments || ours.decrements > theirs.decrements
            })
        };
        let news = self.sums.iter().filter(|(replica, ours)| is_news(replica, ours));
        Self { sums: news.map(|(replica, ours)| (*replica, *ours)).collect() }
    }

    /// Encodes the counter; equal counters have equal encodings. For each replica, by ascending
    /// number: the number, its increments and its decrements, each in LEB128 (7 bits a byte, lowest
    /// first, the eighth bit set in all but the last).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (replica, sums) in &self.sums {
            for mut number in [*replica, sums.increments, sums.decrements] {
                while number > 0x7f {
                    bytes.push(number as u8 | 0x80);
                    number >>= 7;
                }
                bytes.push(number as u8);
            }
        }
        bytes
    }

    /// Decodes exactly what [`encode`](Self::encode) writes.
    ///
    /// # Errors
    /// [`Refused::Malformed`], [`Refused::TooManyReplicas`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Refused> {
        let mut sums = BTreeMap::new();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            let replica = read_number(bytes, &mut at)?;
            let increments = read_number(bytes, &mut at)?;
            let decrements = read_number(bytes, &mut at)?;
            let is_in_order = sums.last_key_value().is_none_or(|(last, _)| *last < replica);
            if !is_in_order || (increments, decrements) == (0, 0) {
                return Err(Refused::Malformed { at: start });
            }
            if sums.len() == MAX_REPLICAS {
                return Err(Refused::TooManyReplicas);
            }
            sums.insert(replica, Sums { increments, decrements });
        }
        Ok(Self { sums })
    }

    fn change(&mut self, replica: u64, amount: u64, sum: fn(&mut Sums) -> &mut u64) -> Result<(), Refused> {
        let mut sums = self.sums.get(&replica).copied().unwrap_or_default();
        let sum = sum(&mut sums);
        *sum = sum.checked_add(amount).ok_or(Refused::Overflow { replica })?;
        if amount == 0 {
            return Ok(());
        }
        if self.sums.len() == MAX_REPLICAS && !self.sums.contains_key(&replica) {
            return Err(Refused::TooManyReplicas);
        }
        self.sums.insert(replica, sums);
        Ok(())
    }
}

/// Reads a number in its shortest form and advances `at`.
fn read_number(bytes: &[u8], at: &mut usize) -> Result<u64, Refused> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Refused::Malformed { at: *at })?;
        let bits = u64::from(byte & 0x7f);
        let is_last = byte < 0x80;
        // The tenth byte has one bit only, and a last byte of zero is not the shortest form.
        if bits << shift >> shift != bits || is_last && bits == 0 && shift > 0 {
            return Err(Refused::Malformed { at: *at });
        }
        number |= bits << shift;
        *at += 1;
        if is_last {
            return Ok(number);
        }
    }
    Err(Refused::Malformed { at: *at - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_not_encoded_are_refused() {
        let malformed =
            |bytes: &[u8], at| assert_eq!(PnCounter::decode(bytes), Err(Refused::Malformed { at }));
        malformed(&[1], 1);
        malformed(&[1, 2], 2);
        malformed(&[1, 0x80], 2);
        malformed(&[1, 0, 0], 0);
        malformed(&[2, 1, 0, 1, 1, 0], 3);
        malformed(&[2, 1, 0, 2, 1, 0], 3);
        malformed(&[1, 0x81, 0, 0], 2);
        malformed(&[0xff; 11], 9);
        assert_eq!(PnCounter::decode(&[]), Ok(PnCounter::default()));
    }

    #[test]
    fn the_greatest_numbers_are_encoded() {
        let mut counter = PnCounter::default();
        counter.increment(u64::MAX, u64::MAX).unwrap();
        counter.decrement(u64::MAX, 128).unwrap();
        assert_eq!(PnCounter::decode(&counter.encode()), Ok(counter));
    }

    #[test]
    fn what_cannot_be_counted_is_refused_and_changes_nothing() {
        let mut counter = PnCounter::default();
        counter.increment(1, u64::MAX).unwrap();
        counter.increment(2, u64::MAX).unwrap();
        let before = counter.clone();
        assert_eq!(counter.increment(1, 1), Err(Refused::Overflow { replica: 1 }));
        assert_eq!(counter, before);
        assert_eq!(counter.value(), 2 * i128::from(u64::MAX));
        counter.decrement(3, 0).unwrap();
        assert_eq!(counter, before, "a move of nothing leaves no trace");
    }

    #[test]
    fn the_number_of_replicas_is_bounded() {
        let mut full = PnCounter::default();
        for replica in 0..MAX_REPLICAS as u64 {
            full.increment(replica, 1).unwrap();
        }
        let before = full.clone();
        assert_eq!(full.increment(u64::MAX, 1), Err(Refused::TooManyReplicas));
        let mut other = PnCounter::default();
        other.increment(0, 5).unwrap();
        full.clone().merge(&other).unwrap();
        other.increment(u64::MAX, 1).unwrap();
        assert_eq!(full.merge(&other), Err(Refused::TooManyReplicas));
        assert_eq!(full, before);
        let mut bytes = full.encode();
        assert_eq!(PnCounter::decode(&bytes), Ok(full));
        bytes.extend([0xff, 0xff, 0xff, 0x7f, 1, 0]);
        assert_eq!(PnCounter::decode(&bytes), Err(Refused::TooManyReplicas));
    }
}
