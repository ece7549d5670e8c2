//! A counter that replicas move without asking each other: a conflict-free replicated data type.

use std::collections::BTreeMap;

/// How many replicas a counter may have had.
pub const MAX_REPLICAS: usize = 1 << 16;

/// A PN-counter: for every replica the sum of all its increments and the sum of all its decrements. Replicas exchange what they
/// have, in any order and as often as they like, and [`merge`](Self::merge) takes the greater of each sum; who has had everything, directly or
/// through others, has the same [`value`](Self::value).
///
/// It cannot keep a limit: two replicas that have not heard of each other both take the last unit.
///
/// # Replicas
/// A replica is a number that only one process uses at a time. It must continue from all that it has ever let others see: one that has
/// lost its state comes back under a new number, or its moves are swallowed by the greater sums that others remember.
///
/// # Cost
/// Some 40 bytes for each replica that ever moved it, at most [`MAX_REPLICAS`]. A move is a search among them; a merge is one for
/// each replica of the other.
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
    /// At most `MAX_REPLICAS`, none of which has no sum: so equal counters are equal here too.
    sums: BTreeMap<u64, Sums>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Sums {
    increments: u64,
    decrements: u64,
}

/// Why a counter has not done what it was asked for. It is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A replica's increments, or its decrements, are more than 2^64 − 1 in sum.
    #[error("the moves of replica {replica} are more than can be counted")]
    Overflow {
        /// Whose they are.
        replica: u64,
    },
    /// There are too many replicas.
    #[error("a counter has at most {MAX_REPLICAS} replicas")]
    TooManyReplicas,
    /// These bytes are no counter.
    #[error("not an encoded counter: byte {at} cannot be there")]
    Malformed {
        /// Where that shows; the number of bytes if they end too soon.
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

    /// Takes `amount` units away at a replica. The value may become negative.
    ///
    /// # Errors
    /// [`Refused::Overflow`], [`Refused::TooManyReplicas`].
    pub fn decrement(&mut self, replica: u64, amount: u64) -> Result<(), Refused> {
        self.change(replica, amount, |sums| &mut sums.decrements)
    }

    /// All increments that are known here, less all decrements. Exact.
    pub fn value(&self) -> i128 {
        // At most 2^16 times 2^64.
        self.sums.values().map(|sums| i128::from(sums.increments) - i128::from(sums.decrements)).sum()
    }

    /// How many replicas are known to have moved it.
    pub fn replicas(&self) -> usize {
        self.sums.len()
    }

    /// Learns all that `other` knows. In whatever order, grouping and number merges are done, the result is the same.
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

    /// What is known here and not in `known`, which is what somebody else has, or had at some time: merging this brings it as far as
    /// merging everything would. It is a counter like any other, so it may be merged late, twice or behind a later one.
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

    /// As bytes, the same for equal counters: for each replica, by ascending number, that number, its increments and its decrements, each
    /// in LEB128 (7 bits a byte, the lowest first, the eighth bit set in all but the last).
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

    /// What [`encode`](Self::encode) has written, and nothing else.
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

/// A number in its shortest form; `at` is moved behind it.
fn read_number(bytes: &[u8], at: &mut usize) -> Result<u64, Refused> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Refused::Malformed { at: *at })?;
        let bits = u64::from(byte & 0x7f);
        let is_last = byte < 0x80;
        // The tenth byte has one bit only, and a last byte of no bits would not have been written.
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
