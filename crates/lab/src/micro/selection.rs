//! Selection of benchmarks and their groups.

use super::benchmark::Benchmark;
use super::group::Group;

/// Why a selection is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A pattern matches no benchmark.
    #[error(
        "no benchmark's name has {0:?} in it; -l lists them, and patterns are parts of names with * for anything"
    )]
    Unknown(String),
    /// A pattern matches no benchmark among those that other flags select.
    #[error("no benchmark that {flag} leaves has {pattern:?} in its name; {flag} -l lists those")]
    LeftOut {
        /// The pattern.
        pattern: String,
        /// The flag.
        flag: &'static str,
    },
    /// Other flags exclude every benchmark.
    #[error("{0} leaves none of these benchmarks; -l lists them")]
    NoneLeft(&'static str),
    /// An empty pattern would match all benchmarks, which is rarely intended.
    #[error("an empty pattern means nothing; leave it out to run all benchmarks, or -l to list them")]
    Empty,
    /// An empty baseline would match all benchmarks.
    #[error(
        "--against takes `peers` or a pattern of one benchmark, and an empty one names none; -l lists them"
    )]
    EmptyBaseline,
    /// A baseline pattern matches several benchmarks.
    #[error(
        "--against takes one benchmark, and {pattern:?} fits {count}, such as {first}; write \"^{first}$\""
    )]
    Ambiguous {
        /// The pattern.
        pattern: String,
        /// Number of matches.
        count: usize,
        /// The first match.
        first: String,
    },
    /// A baseline without patterns to compare with it.
    #[error("--against {0} needs patterns of the benchmarks that are to be compared with it")]
    Alone(String),
}

/// The selection among all benchmarks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selection<'a> {
    pub(crate) patterns: &'a [String],
    pub(crate) summary: bool,
    /// `peers`, or a pattern.
    pub(crate) against: Option<&'a str>,
}

/// Benchmarks that are measured in turns.
pub(crate) struct Run<'a> {
    /// Name of the group, if they are compared.
    name: Option<String>,
    /// The first is the baseline.
    pub(crate) benchmarks: Vec<&'a Benchmark>,
}

impl Run<'_> {
    /// Returns the group, if they are compared.
    pub(crate) fn group(&self) -> Option<Group> {
        let baseline = self.benchmarks.first()?.name().to_owned();
        self.name.clone().map(|name| Group { name, baseline })
    }
}

/// Value of `--against` besides patterns.
const PEERS: &str = "peers";

impl Selection<'_> {
    /// Returns the selected benchmarks in runs, in the order of the list.
    pub(crate) fn runs<'a>(&self, benchmarks: &'a [Benchmark]) -> Result<Vec<Run<'a>>, SelectionError> {
        let meant = self.meant(benchmarks)?;
        match self.against {
            Some(PEERS) => Ok(groups(with_baselines(benchmarks, &meant))),
            Some(pattern) => self.with_baseline(benchmarks, pattern, meant),
            None => Ok(groups(meant)),
        }
    }

    fn meant<'a>(&self, benchmarks: &'a [Benchmark]) -> Result<Vec<&'a Benchmark>, SelectionError> {
        let is_left = |one: &&Benchmark| {
            (!self.summary || one.is_in_summary()) && (self.against != Some(PEERS) || one.group().is_some())
        };
        let flag = if self.summary { "--summary" } else { "--against peers" };
        if !benchmarks.is_empty() && !benchmarks.iter().any(|one| is_left(&one)) {
            return Err(SelectionError::NoneLeft(flag));
        }
        for pattern in self.patterns {
            if is_empty(pattern) {
                return Err(SelectionError::Empty);
            }
            let fits = |one: &&Benchmark| is_meant(pattern, one);
            if !benchmarks.iter().any(|one| fits(&one)) {
                return Err(SelectionError::Unknown(pattern.clone()));
            }
            if !benchmarks.iter().filter(is_left).any(|one| fits(&one)) {
                return Err(SelectionError::LeftOut { pattern: pattern.clone(), flag });
            }
        }
        let is_named = |one: &&Benchmark| {
            self.patterns.is_empty() || self.patterns.iter().any(|pattern| is_meant(pattern, one))
        };
        Ok(benchmarks.iter().filter(is_left).filter(is_named).collect())
    }

    fn with_baseline<'a>(
        &self,
        benchmarks: &'a [Benchmark],
        pattern: &str,
        meant: Vec<&'a Benchmark>,
    ) -> Result<Vec<Run<'a>>, SelectionError> {
        if is_empty(pattern) {
            return Err(SelectionError::EmptyBaseline);
        }
        let fitting: Vec<&Benchmark> = benchmarks.iter().filter(|one| is_meant(pattern, one)).collect();
        let baseline = match fitting.as_slice() {
            [] => return Err(SelectionError::Unknown(pattern.to_owned())),
            [only] => *only,
            [first, ..] => {
                return Err(SelectionError::Ambiguous {
                    pattern: pattern.to_owned(),
                    count: fitting.len(),
                    first: first.name().to_owned(),
                });
            }
        };
        let others = meant.into_iter().filter(|one| one.name() != baseline.name());
        let benchmarks: Vec<&Benchmark> = std::iter::once(baseline).chain(others).collect();
        if self.patterns.is_empty() && !self.summary || benchmarks.len() < 2 {
            return Err(SelectionError::Alone(pattern.to_owned()));
        }
        Ok(vec![Run { name: Some("the benchmarks that are meant".to_owned()), benchmarks }])
    }
}

/// Adds the baseline of each group.
fn with_baselines<'a>(benchmarks: &'a [Benchmark], meant: &[&'a Benchmark]) -> Vec<&'a Benchmark> {
    let is_meant = |one: &Benchmark| meant.iter().any(|other| other.name() == one.name());
    let is_first = |one: &Benchmark| {
        let first = benchmarks.iter().find(|other| other.group() == one.group());
        first.is_some_and(|first| first.name() == one.name())
    };
    let is_group_meant = |one: &Benchmark| meant.iter().any(|other| other.group() == one.group());
    let all = benchmarks.iter().filter(|one| one.group().is_some());
    all.filter(|one| is_meant(one) || is_first(one) && is_group_meant(one)).collect()
}

/// Collects each group into one run; every other benchmark becomes a run of one.
fn groups(benchmarks: Vec<&Benchmark>) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for one in benchmarks {
        let same = |run: &&mut Run<'_>| run.name.is_some() && run.name.as_deref() == one.group();
        match runs.iter_mut().find(same) {
            Some(run) => run.benchmarks.push(one),
            None => runs.push(Run { name: one.group().map(str::to_owned), benchmarks: vec![one] }),
        }
    }
    runs
}

fn is_empty(pattern: &str) -> bool {
    pattern.chars().all(char::is_whitespace)
}

/// Returns whether the pattern is in one of the benchmark's names.
fn is_meant(pattern: &str, benchmark: &Benchmark) -> bool {
    matches(pattern, benchmark.name()) || benchmark.other_names().iter().any(|name| matches(pattern, name))
}

/// Returns whether the pattern is in the name. `*` and `.*` match anything; case does not matter.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_lowercase().replace(".*", "*");
    let name = name.to_lowercase();
    let (pattern, at_start) = pattern.strip_prefix('^').map_or((&*pattern, false), |rest| (rest, true));
    let (pattern, at_end) = pattern.strip_suffix('$').map_or((pattern, false), |rest| (rest, true));
    let parts: Vec<&str> = pattern.split('*').collect();
    match parts.as_slice() {
        [] => true,
        [only] => match (at_start, at_end) {
            (true, true) => name == *only,
            (true, false) => name.starts_with(only),
            (false, true) => name.ends_with(only),
            (false, false) => name.contains(only),
        },
        [first, middle @ .., last] => {
            let start = if at_start { name.strip_prefix(first) } else { after(&name, first) };
            let rest = start.and_then(|rest| middle.iter().try_fold(rest, |rest, part| after(rest, part)));
            rest.is_some_and(|rest| if at_end { rest.ends_with(last) } else { rest.contains(last) })
        }
    }
}

/// Returns the text after the first occurrence of the part.
fn after<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    text.find(part).and_then(|place| text.get(place + part.len()..))
}

#[cfg(test)]
mod tests {
    use super::{Selection, SelectionError, matches};
    use crate::micro::benchmark::Benchmark;
    use crate::micro::test_report::benchmark;
    use proptest::prelude::*;

    #[test]
    fn patterns_are_parts_of_names() {
        for (pattern, name, expected) in [
            ("PipeOps", "PipeOps.emit", true),
            ("pipeops.EMIT", "PipeOps.emit", true),
            ("emit_chain_depth_1", "PipeOps.emit_chain_depth_10", true),
            ("emit_chain_depth_1$", "PipeOps.emit_chain_depth_10", false),
            ("emit_chain_depth_1$", "PipeOps.emit_chain_depth_1", true),
            ("^emit", "PipeOps.emit", false),
            ("^Pipe", "PipeOps.emit", true),
            ("^PipeOps.emit$", "PipeOps.emit", true),
            (".*batch", "NameOps.name_chaining_batch", true),
            ("Pipe*batch", "PipeOps.emit_batch_more", true),
            ("Pipe*batch$", "PipeOps.emit_batch_more", false),
            ("batch*Pipe", "PipeOps.emit_batch", false),
            ("^Pipe*emit*batch$", "PipeOps.emit_with_batch", true),
            ("*", "PipeOps.emit", true),
            ("", "PipeOps.emit", true),
            ("Tap", "PipeOps.emit", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} in {name:?}");
        }
    }

    fn all() -> [Benchmark; 4] {
        [
            benchmark("A.a").in_group("g"),
            benchmark("A.b").in_summary(),
            benchmark("A.c").in_group("g").in_summary(),
            benchmark("A.d").in_group("g").also(["Old.e"]),
        ]
    }

    fn names(selection: Selection<'_>) -> Result<Vec<Vec<String>>, SelectionError> {
        let all = all();
        let runs = selection.runs(&all)?;
        Ok(runs.iter().map(|run| run.benchmarks.iter().map(|one| one.name().to_owned()).collect()).collect())
    }

    fn patterns(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.into()).collect()
    }

    #[test]
    fn a_group_is_one_run_and_an_unknown_pattern_an_error() {
        let names = |of: &[&str]| names(Selection { patterns: &patterns(of), ..Selection::default() });
        assert_eq!(names(&[]).unwrap(), [vec!["A.a", "A.c", "A.d"], vec!["A.b"]]);
        assert_eq!(names(&["A.b", "A.c"]).unwrap(), [vec!["A.b"], vec!["A.c"]]);
        assert_eq!(names(&["old.E"]).unwrap(), [vec!["A.d"]]);
        assert!(names(&["A.b", "x"]).unwrap_err().to_string().contains("\"x\""));
        assert_eq!(names(&[""]).unwrap_err(), SelectionError::Empty);
    }

    #[test]
    fn a_summary_leaves_what_says_most() {
        let names = |of: &[&str]| names(Selection { patterns: &patterns(of), summary: true, against: None });
        assert_eq!(names(&[]).unwrap(), [vec!["A.b"], vec!["A.c"]]);
        assert_eq!(names(&["c"]).unwrap(), [vec!["A.c"]]);
        assert!(matches!(names(&["A.a"]), Err(SelectionError::LeftOut { flag: "--summary", .. })));
    }

    #[test]
    fn against_peers_are_groups_with_what_they_are_compared_with() {
        let names = |of: &[&str]| {
            names(Selection { patterns: &patterns(of), against: Some("peers"), ..Selection::default() })
        };
        assert_eq!(names(&[]).unwrap(), [vec!["A.a", "A.c", "A.d"]]);
        assert_eq!(names(&["A.d"]).unwrap(), [vec!["A.a", "A.d"]]);
        assert!(matches!(names(&["A.b"]), Err(SelectionError::LeftOut { .. })));
    }

    #[test]
    fn against_a_benchmark_all_others_are_one_run_behind_it() {
        let names = |against, of: &[&str]| {
            names(Selection { patterns: &patterns(of), against: Some(against), ..Selection::default() })
        };
        assert_eq!(names("A.b", &["A.a", "A.b", "A.c"]).unwrap(), [vec!["A.b", "A.a", "A.c"]]);
        assert_eq!(names("x", &["A.a"]).unwrap_err(), SelectionError::Unknown("x".into()));
        assert!(matches!(names("A.", &["A.a"]), Err(SelectionError::Ambiguous { count: 4, .. })));
        assert_eq!(names("", &["A.a"]).unwrap_err(), SelectionError::EmptyBaseline);
        assert_eq!(names(" ", &["A.a"]).unwrap_err(), SelectionError::EmptyBaseline);
        assert_eq!(names("A.b", &[]).unwrap_err(), SelectionError::Alone("A.b".into()));
        assert_eq!(names("A.b", &["A.b"]).unwrap_err(), SelectionError::Alone("A.b".into()));
    }

    #[test]
    fn flags_that_leave_nothing_are_an_error() {
        let all = [benchmark("A.a"), benchmark("A.b")];
        let error = |selection: Selection<'_>| selection.runs(&all).err();
        let summary = Selection { summary: true, ..Selection::default() };
        assert_eq!(error(summary), Some(SelectionError::NoneLeft("--summary")));
        assert_eq!(
            error(Selection { against: Some("A.a"), ..summary }),
            Some(SelectionError::NoneLeft("--summary"))
        );
        let peers = Selection { against: Some("peers"), ..Selection::default() };
        assert_eq!(error(peers), Some(SelectionError::NoneLeft("--against peers")));
        assert_eq!(error(Selection::default()), None);
    }

    /// Reference implementation of [`matches`], by exhaustive search.
    fn is_in(pattern: &str, name: &str) -> bool {
        fn stands_for(pattern: &[char], text: &[char]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some(('*', rest)) => (0..=text.len()).any(|skipped| stands_for(rest, &text[skipped..])),
                Some((letter, rest)) => text.first() == Some(letter) && stands_for(rest, &text[1..]),
            }
        }
        let pattern = pattern.to_lowercase().replace(".*", "*");
        let from = pattern.strip_prefix('^').map_or_else(|| format!("*{pattern}"), str::to_owned);
        let whole = from.strip_suffix('$').map_or_else(|| format!("{from}*"), str::to_owned);
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        stands_for(&letters(&whole), &letters(&name.to_lowercase()))
    }

    proptest! {
        #[test]
        fn any_part_of_a_name_is_found(name in "[a-z_.]{1,20}", from in 0_usize..20, to in 0_usize..20) {
            let (from, to) = (from.min(name.len()), to.min(name.len()));
            let part = &name[from.min(to)..from.max(to)];
            prop_assert!(matches(part, &name));
            let glob = format!("^{}*{}$", &name[..from.min(to)], &name[from.max(to)..]);
            prop_assert!(matches(&glob, &name));
        }

        #[test]
        fn a_pattern_means_what_it_means_letter_by_letter(
            pattern in "\\^?[abBß.*]{0,8}\\$?",
            name in "[aAbBß.]{0,10}",
        ) {
            prop_assert_eq!(matches(&pattern, &name), is_in(&pattern, &name), "{} in {}", pattern, name);
        }
    }
}
