//! Which commands can be watched, and how.

use crate::command::{Answer, Command};

/// How a read is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watchable {
    /// The answer as the command returns it.
    Ordered,
    /// The answer has hash-table order; its elements are sorted, in groups of `0`.
    Unordered(usize),
    /// The command iterates over a collection with a cursor. The whole collection is watched, its
    /// elements sorted in groups of `0`.
    Iterated(usize),
    /// The answer is an array of rows, each of which begins with its time: emissions carry what has
    /// changed.
    Rows {
        /// The rows are in descending order of time.
        newest_first: bool,
    },
    /// The answer has such rows for each of several names, in ascending order.
    RowsOfSeveral {
        /// The rows of a name are in descending order of time.
        newest_first: bool,
    },
}

impl Watchable {
    /// Returns whether emissions carry what has changed, instead of the answer.
    pub fn emits_changes(self) -> bool {
        matches!(self, Self::Rows { .. } | Self::RowsOfSeveral { .. })
    }
}

/// Returns how a command can be watched; `None` if it cannot. A watchable command only reads keys,
/// and equal states have equal answers. Its row declares it.
pub fn watchable(command: &Command) -> Option<Watchable> {
    match command.answer {
        Answer::Unsaid | Answer::Unrepeatable => None,
        Answer::Ordered => Some(Watchable::Ordered),
        Answer::Unordered(items) => Some(Watchable::Unordered(items)),
        Answer::Iterated(items) => Some(Watchable::Iterated(items)),
        Answer::Rows { newest_first } => Some(Watchable::Rows { newest_first }),
        Answer::RowsOfSeveral { newest_first } => Some(Watchable::RowsOfSeveral { newest_first }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{KeySpec, Run, all, flags};

    #[test]
    fn every_read_of_keys_says_what_its_reply_depends_on() {
        for row in all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let reads_keys = row.is(flags::READONLY)
                && matches!(row.run, Run::Keys(_))
                && !matches!(row.keys, KeySpec::None);
            assert_eq!(reads_keys, row.answer != Answer::Unsaid, "{}", row.full_name());
        }
    }
}
