//! Finds where arguments deviate from the syntax line of one of our own commands, for the error
//! message.
//!
//! Handlers refuse with Redis's messages, which name no argument. Here the arguments are matched
//! against the row's syntax, and the error gains the first argument that does not fit and what is
//! expected there.

use super::parse::{self, canonical_integer, is, shown};
use super::row::Command;
use super::syntax::{self, Argument, Kind};
use crate::error::CommandError;
use std::collections::BTreeSet;

/// Most arguments of a call that is matched.
const ARGUMENTS_MAX: usize = 256;

impl Command {
    /// Returns the error for these arguments. For our own commands it names what does not fit and
    /// what would. Redis's commands keep Redis's messages.
    #[cold]
    pub fn explain(&self, args: &[&[u8]], error: CommandError) -> CommandError {
        let is_ours = self.since.starts_with("tidemark");
        let is_vague = match &error {
            CommandError::Syntax | CommandError::NotAnInteger => true,
            CommandError::Text(text) => text == parse::NOT_POSITIVE,
            _ => false,
        };
        if !is_ours || !is_vague {
            return error;
        }
        let name = self.name.to_ascii_uppercase();
        let misfit = if args.len() <= ARGUMENTS_MAX { misfit(self.syntax, args) } else { None };
        let reason = match misfit {
            Some(misfit) => misfit.describe(&name, args),
            None if error == CommandError::Syntax => {
                format!(
                    "an option of {name} is out of range, given twice or excluded by another: {name} {}",
                    self.syntax
                )
            }
            None => return error,
        };
        CommandError::Text(format!("{error}: {reason}").into())
    }
}

/// Position at which arguments do not fit a syntax.
#[derive(Debug, PartialEq, Eq)]
struct Misfit {
    /// Index of the first argument that does not fit; the number of arguments if some are missing.
    at: usize,
    /// What would fit there; empty if the command ends there.
    expected: Vec<String>,
}

impl Misfit {
    fn describe(&self, name: &str, args: &[&[u8]]) -> String {
        let after = match self.at.checked_sub(1).filter(|before| *before > 0).and_then(|at| args.get(at)) {
            Some(before) => format!(" after {}", shown(before)),
            None => String::new(),
        };
        let expected = match &self.expected[..] {
            [] => "nothing".to_owned(),
            [one] => one.clone(),
            [others @ .., last] => format!("{} or {last}", others.join(", ")),
        };
        match args.get(self.at) {
            Some(arg) => format!("{name} takes {expected}{after}, not {}", shown(arg)),
            None => format!("{name} ends{after}, where it takes {expected}"),
        }
    }
}

/// Returns the first argument that does not fit, if any. `args[0]` is the command's name.
fn misfit(syntax: &str, args: &[&[u8]]) -> Option<Misfit> {
    let mut walk = Walk { args, at: 1, expected: Vec::new() };
    let ends = walk.sequence(&syntax::parse(syntax), BTreeSet::from([1]));
    let last = ends.last().copied().unwrap_or(0);
    if last == args.len() {
        return None;
    }
    if last > walk.at {
        // The whole syntax was matched before.
        return Some(Misfit { at: last, expected: Vec::new() });
    }
    Some(Misfit { at: walk.at, expected: walk.expected })
}

/// Matches arguments against a syntax tree, all alternatives in parallel: a set of indices holds
/// how far each may have got.
struct Walk<'a> {
    args: &'a [&'a [u8]],
    /// Furthest index at which something did not fit.
    at: usize,
    /// What would have fitted there.
    expected: Vec<String>,
}

impl Walk<'_> {
    /// Matches arguments in sequence. Adjacent optional arguments with a keyword may be in any
    /// order.
    fn sequence(&mut self, arguments: &[Argument], starts: BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut ends, mut rest) = (starts, arguments);
        while let [first, after @ ..] = rest {
            let options = rest.iter().take_while(|argument| argument.optional && is_led(argument)).count();
            (ends, rest) = match after {
                _ if options > 1 => (self.options(&rest[..options], ends), &rest[options..]),
                [repeated, after @ ..] if repeated.multiple && is_count(first) => {
                    (self.counted(first, repeated, &ends), after)
                }
                _ => (self.argument(first, &ends), after),
            };
        }
        ends
    }

    fn options(&mut self, options: &[Argument], starts: BTreeSet<usize>) -> BTreeSet<usize> {
        self.closure(starts, |walk, start| {
            let start = BTreeSet::from([start]);
            options.iter().flat_map(|option| walk.once(option, &start)).collect()
        })
    }

    /// Matches a number, and that many of the repeated argument.
    fn counted(
        &mut self,
        count: &Argument,
        repeated: &Argument,
        starts: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for end in self.once(count, starts) {
            let number = self.args.get(end - 1).and_then(|arg| canonical_integer(arg)).unwrap_or(0);
            let mut ends = BTreeSet::from([end]);
            for _ in 0..number {
                ends = self.once(repeated, &ends);
                if ends.is_empty() {
                    break;
                }
            }
            all.extend(ends);
        }
        all
    }

    fn argument(&mut self, argument: &Argument, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut ends = self.once(argument, starts);
        if argument.multiple {
            ends = self.closure(ends, |walk, start| walk.once(argument, &BTreeSet::from([start])));
        }
        if argument.optional {
            ends.extend(starts);
        }
        ends
    }

    /// Returns the indices reachable in any number of steps. Every step goes forward, so there are
    /// at most as many as arguments.
    fn closure(
        &mut self,
        starts: BTreeSet<usize>,
        mut step: impl FnMut(&mut Self, usize) -> BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let (mut all, mut ahead) = (starts.clone(), starts);
        while let Some(start) = ahead.pop_first() {
            for end in step(self, start) {
                if all.insert(end) {
                    ahead.insert(end);
                }
            }
        }
        all
    }

    fn once(&mut self, argument: &Argument, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        match &argument.kind {
            Kind::Block(parts) => self.sequence(parts, starts.clone()),
            Kind::OneOf(choices) => choices.iter().flat_map(|choice| self.argument(choice, starts)).collect(),
            Kind::Word | Kind::Value(_) => {
                starts.iter().filter_map(|start| self.word_or_value(argument, *start)).collect()
            }
        }
    }

    fn word_or_value(&mut self, argument: &Argument, mut at: usize) -> Option<usize> {
        if let Some(token) = &argument.token {
            if !self.args.get(at).is_some_and(|arg| is(arg, token)) {
                self.fail(at, token.clone());
                return None;
            }
            at += 1;
        }
        let Kind::Value(kind) = &argument.kind else { return Some(at) };
        let is_number = *kind == "integer";
        let fits = |arg: &&[u8]| {
            !is_number || canonical_integer(arg).is_some_and(|value| value >= 0 || argument.name == "delta")
        };
        if self.args.get(at).is_some_and(fits) {
            return Some(at + 1);
        }
        self.fail(
            at,
            if is_number { format!("a whole number ({})", argument.name) } else { argument.name.clone() },
        );
        None
    }

    fn fail(&mut self, at: usize, expected: String) {
        if at > self.at {
            self.at = at;
            self.expected.clear();
        }
        if at == self.at && !self.expected.contains(&expected) {
            self.expected.push(expected);
        }
    }
}

/// Returns whether an argument begins with a keyword.
fn is_led(argument: &Argument) -> bool {
    match &argument.kind {
        Kind::Block(parts) => parts.first().is_some_and(is_led),
        Kind::OneOf(choices) => choices.iter().all(is_led),
        Kind::Word | Kind::Value(_) => argument.token.is_some(),
    }
}

/// Returns whether an argument is the number of the next one.
fn is_count(argument: &Argument) -> bool {
    matches!(argument.name.as_str(), "numkeys" | "numitems")
}

#[cfg(test)]
mod tests {
    use crate::command::find;
    use crate::error::CommandError;

    fn explained(line: &str, error: CommandError) -> String {
        let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        find(args[0]).expect(line).explain(&args, error).to_string()
    }

    #[test]
    fn an_error_names_the_argument_that_does_not_fit_and_what_does() {
        for (line, reason) in [
            (
                "LIMIT.CHECK u GCRE 1 PER 1",
                "LIMIT.CHECK takes AMOUNT, GCRA, TOKEN, LEAKY, FIXED, SLIDING or LOG after 'u', not 'GCRE'",
            ),
            (
                "counter.create a LIMT 3",
                "COUNTER.CREATE takes LIMIT, RELAXED, EXACT, HIGH, LOW, MAXAGE, IDLE, SETTLE, NX or XX after 'a', not 'LIMT'",
            ),
            (
                "COUNTER.CREATE a IDLE 5 LIMIT",
                "COUNTER.CREATE ends after 'LIMIT', where it takes a whole number (units) or NONE",
            ),
            ("COUNTER.ADD a 1 DURBLE", "COUNTER.ADD takes DURABLE after '1', not 'DURBLE'"),
            ("COUNTER.TAKE a 1 2", "COUNTER.TAKE takes nothing after '1', not '2'"),
            ("LIMIT.CREATE k CONCURRENCY 5 PER 9", "LIMIT.CREATE takes TTL after '5', not 'PER'"),
            ("LIMIT.CHECKALL 2 a", "LIMIT.CHECKALL ends after 'a', where it takes key"),
            (
                "LIMIT.CHECKALL 2 a b GCRE 1 PER 1",
                "LIMIT.CHECKALL takes AMOUNT, DEFINED, GCRA, TOKEN, LEAKY, FIXED, SLIDING, LOG or CONCURRENCY \
                 after 'b', not 'GCRE'",
            ),
            (
                "POOL.CREATE p MODE UNIT ITEM a 1 2",
                "POOL.CREATE takes SELECTOR, DURABILITY, FROM, MODE, SOLDOUT, LIMIT, \
              GUARANTEE, SCHEDULE, TABLE, JSON, YAML, TOML or ITEMS after 'UNIT', not 'ITEM'",
            ),
            (
                "POOL.CREATE p LIMIT DRAWS 5 PER",
                "POOL.CREATE ends after 'PER', where it takes a whole number (milliseconds)",
            ),
            (
                "POOL.UPDATE p WEIGHT a 1 WIGHT b 2",
                "POOL.UPDATE takes WEIGHT, STOCK, ADD or REMOVE after '1', not 'WIGHT'",
            ),
            ("LIMIT.CREATE k GCRA 5 PER 9 NX XX", "LIMIT.CREATE takes nothing after 'NX', not 'XX'"),
            (
                "LIMIT.CHECK k AMOUNT 1 AMOUNT 2",
                "an option of LIMIT.CHECK is out of range, given twice or excluded by another: LIMIT.CHECK key \
                 [AMOUNT amount] [<GCRA | TOKEN | LEAKY | FIXED | SLIDING | LOG> limit PER milliseconds [BURST burst]]",
            ),
        ] {
            assert_eq!(
                explained(line, CommandError::Syntax),
                format!("ERR syntax error: {reason}"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_number_that_is_none_is_named() {
        for (line, reason) in [
            ("COUNTER.ADD a x", "COUNTER.ADD takes a whole number (delta) after 'a', not 'x'"),
            ("COUNTER.TAKE a 1.5", "COUNTER.TAKE takes a whole number (units) after 'a', not '1.5'"),
            ("POOL.DRAW p USER u COUNT x", "POOL.DRAW takes a whole number (count) after 'COUNT', not 'x'"),
        ] {
            let explanation = explained(line, CommandError::NotAnInteger);
            assert_eq!(
                explanation,
                format!("ERR value is not an integer or out of range: {reason}"),
                "{line}"
            );
        }
        let explanation = explained("COUNTER.TAKE a -1", CommandError::text(super::parse::NOT_POSITIVE));
        let reason = "COUNTER.TAKE takes a whole number (units) after 'a', not '-1'";
        assert_eq!(explanation, format!("ERR value is out of range, must be positive: {reason}"));
    }

    #[test]
    fn what_is_not_ours_or_says_enough_stays_as_it_is() {
        for line in ["SET k v WRONG", "GETEX k WRONG"] {
            assert_eq!(explained(line, CommandError::Syntax), "ERR syntax error", "{line}");
        }
        assert_eq!(explained("COUNTER.ADD a x", CommandError::Overflow), CommandError::Overflow.to_string());
        let long = format!("LIMIT.CHECK {} GCRE", "u".repeat(90));
        assert!(explained(&long, CommandError::Syntax).contains(&format!("after '{}…'", "u".repeat(40))));
        let many = format!("POOL.UPDATE p {}", "WEIGHT a 1 ".repeat(200));
        assert!(explained(&many, CommandError::Syntax).contains("excluded by another"));
    }
}
