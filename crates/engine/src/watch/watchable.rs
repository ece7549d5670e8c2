//! Which commands can be watched, and how.

use crate::command::{Answer, Command};

/// How a read is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watchable {
    /// As it answers.
    Ordered,
    /// Its answer has the order of a hash table; it is brought into the order of its elements, taken `0` at a time.
    Unordered(usize),
    /// It answers a part of a long list at a time, and where to go on. The whole is watched, in the order of its elements,
    /// taken `0` at a time.
    Iterated(usize),
}

/// Whether and how a command can be watched: it only reads keys, and equal states have equal answers. Its row says so.
pub fn watchable(command: &Command) -> Option<Watchable> {
    match command.answer {
        Answer::Unsaid | Answer::Unrepeatable => None,
        Answer::Ordered => Some(Watchable::Ordered),
        Answer::Unordered(items) => Some(Watchable::Unordered(items)),
        Answer::Iterated(items) => Some(Watchable::Iterated(items)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Run, all, flags};

    #[test]
    fn every_read_of_keys_says_what_its_reply_depends_on() {
        for row in all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let reads_keys = row.is(flags::READONLY) && matches!(row.run, Run::Keys(_));
            assert_eq!(reads_keys, row.answer != Answer::Unsaid, "{}", row.full_name());
        }
    }
}
