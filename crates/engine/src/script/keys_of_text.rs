//! The keys of commands as they stand in the text of a script.

use crate::command::{self, KeySpec};

/// Returns the positions of a command's keys, for `tidemark_script::confined`. An argument whose value is
/// known only when the script runs is `None`.
pub(super) fn positions(args: &[Option<&[u8]>], may_have_more: bool) -> Option<Vec<usize>> {
    let name = args.first().copied().flatten()?;
    if name.eq_ignore_ascii_case(b"durable") {
        let inner = positions(args.get(1..)?, may_have_more)?;
        return Some(inner.into_iter().map(|position| position + 1).collect());
    }
    // A command that the engine does not have has no keys, or is not allowed in scripts.
    let Some(mut row) = command::find(name) else { return Some(Vec::new()) };
    if !row.subcommands.is_empty() {
        let sub = args.get(1).copied().flatten()?;
        row = row.subcommands.iter().find(|row| sub.eq_ignore_ascii_case(row.name.as_bytes()))?;
    }
    // The value of an argument that is not known is no number, no option and no key here.
    let known: Vec<&[u8]> = args.iter().map(|arg| arg.unwrap_or_default()).collect();
    match row.keys {
        KeySpec::None => Some(Vec::new()),
        KeySpec::Range { last: 0.., .. } | KeySpec::Range { last: -1, step: 1, .. } => {
            Some(row.keys.positions(&known))
        }
        KeySpec::Range { .. } => (!may_have_more).then(|| row.keys.positions(&known)),
        KeySpec::Counted { at } | KeySpec::OneAndCounted { at } => {
            args.get(usize::from(at)).copied().flatten()?;
            Some(row.keys.positions(&known))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<Vec<usize>> {
        let args: Vec<Option<&[u8]>> =
            line.split(' ').map(|word| (word != "?").then_some(word.as_bytes())).collect();
        positions(&args, line.ends_with('?'))
    }

    #[test]
    fn keys_are_where_the_rows_say() {
        assert_eq!(found("GET ?"), Some(vec![1]));
        assert_eq!(found("durable set ? x"), Some(vec![2]));
        assert_eq!(found("DEL ? ?"), Some(vec![1, 2]));
        assert_eq!(found("MSET ? x ? x"), Some(vec![1, 3]));
        assert_eq!(found("MSET ? ?"), None, "further pairs may follow");
        assert_eq!(found("ZUNIONSTORE ? 2 ? ?"), Some(vec![1, 3, 4]));
        assert_eq!(found("ZUNIONSTORE ? ? ? ?"), None, "the number of keys is not known");
        assert_eq!(found("PUBLISH ? ?"), Some(vec![]));
        assert_eq!(found("OBJECT ENCODING ?"), Some(vec![2]));
        assert_eq!(found("KEYS ?"), None);
        assert_eq!(found("SORT ? BY ?"), None);
        assert_eq!(found("?"), None);
    }
}
