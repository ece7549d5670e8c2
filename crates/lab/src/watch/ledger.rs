//! The writer's ledger of its writes. It outlives every crash and is the reference for all
//! emissions.

/// The writes of one run in order. Each value contains its write's number, so all values differ.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// Distinguishes the values of this run from those of other runs.
    run: u64,
    writes: Vec<Write>,
}

/// One write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Index of the written key.
    pub(crate) key: usize,
    pub(crate) fate: Fate,
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It happened: the server acknowledged it or has the value. It must be emitted.
    Done,
    /// The answer was lost: it may be emitted or not.
    InDoubt,
    /// The answer was lost and the restarted server does not have it. It must not be emitted.
    Lost,
}

/// Number of a write, from 1.
pub(crate) type Number = u64;

impl Ledger {
    pub(crate) fn new(run: u64) -> Self {
        Ledger { run, writes: Vec::new() }
    }

    /// Records a write before it is sent; it is in doubt until it is answered.
    pub(crate) fn begin(&mut self, key: usize) -> (Number, Vec<u8>) {
        self.writes.push(Write { key, fate: Fate::InDoubt });
        let number = self.writes.len() as Number;
        (number, self.value(number))
    }

    pub(crate) fn settle(&mut self, number: Number, fate: Fate) {
        if let Some(write) = index(number).and_then(|index| self.writes.get_mut(index)) {
            write.fate = fate;
        }
    }

    /// Returns the value that a write sets.
    pub(crate) fn value(&self, number: Number) -> Vec<u8> {
        format!("seq={number}|run={:016x}", self.run).into_bytes()
    }

    /// Returns the write that set a value, if it is in this ledger.
    pub(crate) fn number_of(&self, value: &[u8]) -> Option<Number> {
        let number = value.strip_prefix(b"seq=")?;
        let digits = number.get(..number.iter().position(|byte| *byte == b'|')?)?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        self.get(number).filter(|_| self.value(number) == value).map(|_| number)
    }

    pub(crate) fn get(&self, number: Number) -> Option<Write> {
        self.writes.get(index(number)?).copied()
    }

    /// Iterates over all writes with their numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Number, Write)> {
        self.writes.iter().enumerate().map(|(index, write)| (index as Number + 1, *write))
    }

    pub(crate) fn len(&self) -> u64 {
        self.writes.len() as u64
    }

    /// Returns the number of writes with this fate.
    pub(crate) fn count(&self, fate: Fate) -> u64 {
        self.writes.iter().filter(|write| write.fate == fate).count() as u64
    }

    /// Returns whether a key may hold this value now: that of its last completed write, or of a
    /// later one in doubt.
    pub(crate) fn may_hold(&self, key: usize, value: Option<&[u8]>) -> bool {
        let of_key = || self.iter().filter(|(_, write)| write.key == key);
        let last_done = of_key().rev().find(|(_, write)| write.fate == Fate::Done).map(|(number, _)| number);
        match value.and_then(|value| self.number_of(value)) {
            Some(number) if Some(number) == last_done => true,
            Some(number) => of_key().any(|(candidate, write)| {
                candidate == number && write.fate == Fate::InDoubt && Some(candidate) > last_done
            }),
            // A value from outside this run is correct only while the run has written nothing.
            None => last_done.is_none(),
        }
    }
}

fn index(number: Number) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{Fate, Ledger};

    #[test]
    fn a_value_leads_back_to_its_write_and_to_no_other() {
        let (mut ledger, mut other) = (Ledger::new(7), Ledger::new(8));
        let (first, value) = ledger.begin(0);
        assert_eq!((first, ledger.number_of(&value)), (1, Some(1)));
        let (_, foreign) = other.begin(0);
        for stranger in [&foreign[..], b"seq=2|run=0000000000000007", b"seq=1|", b"seq=0|x", b"seq=-1|", b""]
        {
            assert_eq!(ledger.number_of(stranger), None, "{}", String::from_utf8_lossy(stranger));
        }
        assert_eq!(ledger.number_of(b"seq=01|run=0000000000000007"), None);
    }

    #[test]
    fn a_key_holds_its_last_write_or_one_in_doubt_behind_it() {
        let mut ledger = Ledger::new(7);
        assert!(ledger.may_hold(0, None) && ledger.may_hold(0, Some(b"older")));
        let values: Vec<Vec<u8>> = (0..3).map(|_| ledger.begin(0).1).collect();
        ledger.settle(1, Fate::Done);
        ledger.settle(2, Fate::Done);
        let holds = |ledger: &Ledger, index: usize| ledger.may_hold(0, Some(&values[index]));
        assert!(!holds(&ledger, 0), "an older value is a lost write");
        assert!(holds(&ledger, 1) && holds(&ledger, 2), "the third is in doubt");
        assert!(!ledger.may_hold(0, None) && !ledger.may_hold(1, Some(&values[1])));
        ledger.settle(3, Fate::Lost);
        assert!(!holds(&ledger, 2));
    }
}
