//! Compares the lines that a page shows with actual output.

use std::collections::BTreeMap;

/// Placeholder for a part that varies.
const ANYTHING: char = '…';

/// Values of named parts, where known.
pub(super) type Names = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Anything,
    Named(String),
}

/// Returns whether the output matches the expected lines. On a match, adds names that are new.
pub(super) fn matches(expected: &[String], came: &[String], names: &mut Names) -> bool {
    let mut known = names.clone();
    let is_match = lines_match(expected, came, &mut known);
    if is_match {
        *names = known;
    }
    is_match
}

/// Returns a line with the values of its names; `None` if one is not known.
pub(super) fn filled_in(line: &str, names: &Names) -> Option<String> {
    let text = |part| match part {
        Part::Text(text) => Some(text),
        Part::Anything => Some(ANYTHING.to_string()),
        Part::Named(name) => names.get(&name).cloned(),
    };
    parts(line).into_iter().map(text).collect()
}

fn lines_match(expected: &[String], came: &[String], names: &mut Names) -> bool {
    match (expected, came) {
        ([], []) => true,
        ([any, rest @ ..], _) if any.trim().chars().eq([ANYTHING]) => (0..=came.len()).any(|skipped| {
            let mut known = names.clone();
            let is_match = lines_match(rest, &came[skipped..], &mut known);
            if is_match {
                *names = known;
            }
            is_match
        }),
        ([line, expected @ ..], [text, came @ ..]) => {
            let mut known = names.clone();
            if line_matches(&parts(line), text, &mut known) && lines_match(expected, came, &mut known) {
                *names = known;
                return true;
            }
            false
        }
        _ => false,
    }
}

fn parts(line: &str) -> Vec<Part> {
    let (mut parts, mut rest) = (Vec::new(), line);
    while !rest.is_empty() {
        let end = rest.find([ANYTHING, '‹']).unwrap_or(rest.len());
        if end > 0 {
            parts.push(Part::Text(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some(after) = rest.strip_prefix(ANYTHING) {
            parts.push(Part::Anything);
            rest = after;
        } else {
            let (name, after) =
                rest['‹'.len_utf8()..].split_once('›').unwrap_or_else(|| panic!("no end: {line}"));
            parts.push(Part::Named(name.to_owned()));
            rest = after;
        }
    }
    parts
}

fn line_matches(parts: &[Part], text: &str, names: &mut Names) -> bool {
    let [part, rest @ ..] = parts else { return text.is_empty() };
    let ends = || text.char_indices().map(|(at, _)| at).chain([text.len()]);
    match part {
        Part::Text(expected) => {
            text.strip_prefix(expected.as_str()).is_some_and(|text| line_matches(rest, text, names))
        }
        Part::Anything => ends().any(|end| line_matches(rest, &text[end..], names)),
        Part::Named(name) => match names.get(name).cloned() {
            Some(known) => text.strip_prefix(&known).is_some_and(|text| line_matches(rest, text, names)),
            None => ends().skip(1).any(|end| {
                names.insert(name.clone(), text[..end].to_owned());
                let is_match = line_matches(rest, &text[end..], names);
                if !is_match {
                    names.remove(name);
                }
                is_match
            }),
        },
    }
}

#[test]
fn only_what_says_so_may_vary() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, came, is_match) in [
        ("OK", "OK", true),
        ("OK", "KO", false),
        ("OK", "OK\nOK", false),
        ("(integer) …", "(integer) 17", true),
        ("(integer) …", "17", false),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…\nd", "a\nd", true),
        ("a\n…\nd", "a\nb", false),
        ("‹id› ‹id›", "17 17", true),
        ("‹id› ‹id›", "17 18", false),
        ("", "x", false),
    ] {
        let came_as_expected = matches(&lines(expected), &lines(came), &mut Names::new());
        assert_eq!(came_as_expected, is_match, "{expected:?} and {came:?}");
    }
    let mut names = Names::new();
    assert!(matches(&lines("1) ‹lease›\n2) …"), &lines("1) 42\n2) x"), &mut names));
    assert_eq!(filled_in("RELEASE ‹lease›", &names).as_deref(), Some("RELEASE 42"));
}
