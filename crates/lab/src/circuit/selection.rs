//! Which benchmarks are meant.

use super::benchmark::Benchmark;

/// Which pattern fits none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no benchmark's name has {0:?} in it; -l lists them, and patterns are parts of names with * for anything"
)]
pub struct UnknownPattern(String);

/// The benchmarks that fit one of the patterns, or all if there are none, in the order of the list and in runs: what belongs
/// to one group is measured in turns.
pub(super) fn select<'a>(
    benchmarks: &'a [Benchmark],
    patterns: &[String],
) -> Result<Vec<Vec<&'a Benchmark>>, UnknownPattern> {
    let fits = |pattern: &String| benchmarks.iter().any(|one| is_meant(pattern, one));
    if let Some(unknown) = patterns.iter().find(|pattern| !fits(pattern)) {
        return Err(UnknownPattern(unknown.clone()));
    }
    let mut runs: Vec<Vec<&Benchmark>> = Vec::new();
    for one in benchmarks {
        if !patterns.is_empty() && !patterns.iter().any(|pattern| is_meant(pattern, one)) {
            continue;
        }
        let same_group = |run: &&mut Vec<&Benchmark>| {
            one.group().is_some() && run.first().is_some_and(|first| first.group() == one.group())
        };
        match runs.iter_mut().find(same_group) {
            Some(run) => run.push(one),
            None => runs.push(vec![one]),
        }
    }
    Ok(runs)
}

/// Whether the pattern is in one of the benchmark's names.
fn is_meant(pattern: &str, benchmark: &Benchmark) -> bool {
    matches(pattern, benchmark.name()) || benchmark.other_names().iter().any(|name| matches(pattern, name))
}

/// Whether the pattern is in the name. `*`, or `.*` as in regular expressions, stands for anything; case does not matter.
fn matches(pattern: &str, name: &str) -> bool {
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

/// What follows the first place where the part is in the text.
fn after<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    text.find(part).and_then(|place| text.get(place + part.len()..))
}

#[cfg(test)]
mod tests {
    use super::{matches, select};
    use crate::circuit::benchmark::{Benchmark, each};
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

    #[test]
    fn a_group_is_one_run_and_an_unknown_pattern_an_error() {
        let benchmark = |name: &str| Benchmark::new(name, "", |_| each(|_| ()));
        let all = [benchmark("A.a").in_group("g"), benchmark("A.b"), benchmark("A.c").in_group("g")];
        let names = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.into()).collect();
            let runs = select(&all, &patterns)?;
            Ok(runs
                .iter()
                .map(|run| run.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>())
                .collect())
        };
        let found: Result<Vec<Vec<String>>, super::UnknownPattern> = names(&[]);
        assert_eq!(found.unwrap(), [vec!["A.a", "A.c"], vec!["A.b"]]);
        assert_eq!(names(&["b", "c"]).unwrap(), [vec!["A.b"], vec!["A.c"]]);
        assert!(names(&["b", "d"]).unwrap_err().to_string().contains("\"d\""));
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
        fn no_pattern_panics(pattern in ".{0,12}", name in ".{0,12}") {
            let _ = matches(&pattern, &name);
        }
    }
}
