//! Parser of a row's syntax line into a tree of arguments, which `COMMAND DOCS` returns and tests
//! generate commands from.
//!
//! ```text
//! key <LEFT | RIGHT> [NX | XX] [EX seconds | KEEPTTL] [item ...]
//! ```
//!
//! Upper-case words are keywords, others are values. Square brackets make optional, angle brackets
//! group, bars separate alternatives, an ellipsis repeats what precedes it.

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Name in the syntax line; for a group, the names of its parts.
    pub name: String,
    /// Kind of the argument.
    pub kind: Kind,
    /// Keyword before the value, or the keyword itself.
    pub token: Option<String>,
    /// Whether it may be omitted.
    pub optional: bool,
    /// Whether it may be repeated.
    pub multiple: bool,
}

/// Kind of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A value, with the name of its type.
    Value(&'static str),
    /// A keyword.
    Word,
    /// A group of arguments.
    Block(Vec<Argument>),
    /// One of several arguments.
    OneOf(Vec<Argument>),
}

/// Parses a syntax line.
pub fn parse(syntax: &str) -> Vec<Argument> {
    let spaced = syntax.replace('[', " [ ").replace(']', " ] ").replace('|', " | ");
    let spaced = spaced.replace('<', " < ").replace('>', " > ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    match alternatives(&mut rest) {
        alternatives if alternatives.len() == 1 => alternatives.into_iter().next().unwrap_or_default(),
        alternatives => vec![one_of(alternatives)],
    }
}

/// Parses sequences separated by bars, up to a closing bracket or the end.
fn alternatives(rest: &mut &[&str]) -> Vec<Vec<Argument>> {
    let mut all = vec![sequence(rest)];
    while let [first, after @ ..] = *rest
        && *first == "|"
    {
        *rest = after;
        all.push(sequence(rest));
    }
    all
}

/// Parses arguments up to a bar, a closing bracket or the end.
fn sequence(rest: &mut &[&str]) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    while let [word, after @ ..] = *rest {
        match *word {
            "|" | "]" | ">" => break,
            "[" => {
                *rest = after;
                let inner = alternatives(rest);
                let repeats_as_whole = after[..after.len() - rest.len()].last() == Some(&"...");
                // The closing bracket; a missing one is ignored.
                *rest = rest.get(1..).unwrap_or_default();
                optional(&mut arguments, inner, repeats_as_whole);
                continue;
            }
            "<" => {
                *rest = after;
                let inner = alternatives(rest);
                *rest = rest.get(1..).unwrap_or_default();
                arguments.push(one_of(inner));
                continue;
            }
            "..." => {
                if let Some(last) = arguments.last_mut() {
                    last.multiple = true;
                }
            }
            word => value_or_word(&mut arguments, word),
        }
        *rest = after;
    }
    arguments
}

fn value_or_word(arguments: &mut Vec<Argument>, word: &str) {
    let is_word = !word.chars().any(|character| character.is_ascii_lowercase());
    // A value after a keyword belongs to it: `EX seconds`.
    if let (false, Some(last)) = (is_word, arguments.last_mut())
        && last.kind == Kind::Word
    {
        *last = Argument { kind: Kind::Value(value_kind(word)), name: word.to_owned(), ..last.clone() };
        return;
    }
    arguments.push(if is_word {
        Argument { name: word.to_ascii_lowercase(), token: Some(word.to_owned()), ..plain(Kind::Word) }
    } else {
        Argument { name: word.to_owned(), ..plain(Kind::Value(value_kind(word))) }
    });
}

/// Adds the contents of square brackets, which repeat as a whole if their last word is the
/// ellipsis.
fn optional(arguments: &mut Vec<Argument>, alternatives: Vec<Vec<Argument>>, repeats_as_whole: bool) {
    let mut inner = match <[Vec<Argument>; 1]>::try_from(alternatives) {
        Ok([sequence]) => sequence,
        Err(alternatives) => vec![one_of(alternatives)],
    };
    // `key [key ...]` is one argument that may be repeated.
    if inner.last().is_some_and(|last| last.multiple) && repeats(arguments, &inner) {
        let start = arguments.len() - inner.len();
        let repeated: Vec<Argument> = arguments.drain(start..).collect();
        arguments.push(Argument { multiple: true, ..together(repeated) });
        return;
    }
    if inner.len() == 1
        && let Some(only) = inner.pop()
    {
        arguments.push(Argument { optional: true, ..only });
    } else if let Some(last) = inner.last_mut() {
        // `[field value ...]` repeats as a whole.
        let multiple = repeats_as_whole && std::mem::take(&mut last.multiple);
        arguments.push(Argument { optional: true, multiple, ..together(inner) });
    }
}

/// Returns whether the arguments end with the contents of the brackets.
fn repeats(arguments: &[Argument], inner: &[Argument]) -> bool {
    let start = arguments.len().checked_sub(inner.len());
    start.and_then(|start| arguments.get(start..)).is_some_and(|tail| {
        tail.iter().zip(inner).all(|(one, other)| one.name == other.name && one.token == other.token)
    })
}

fn together(mut arguments: Vec<Argument>) -> Argument {
    if arguments.len() == 1
        && let Some(only) = arguments.pop()
    {
        return only;
    }
    let name = arguments.iter().map(|argument| argument.name.as_str()).collect::<Vec<_>>().join("-");
    Argument { name, ..plain(Kind::Block(arguments)) }
}

fn one_of(alternatives: Vec<Vec<Argument>>) -> Argument {
    let choices: Vec<Argument> =
        alternatives.into_iter().filter(|sequence| !sequence.is_empty()).map(together).collect();
    let name = choices.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join("-or-");
    Argument { name, ..plain(Kind::OneOf(choices)) }
}

fn plain(kind: Kind) -> Argument {
    Argument { name: String::new(), kind, token: None, optional: false, multiple: false }
}

/// Returns the type that a value's name suggests.
fn value_kind(name: &str) -> &'static str {
    match name {
        "key" | "key1" | "key2" | "newkey" | "source" | "src" | "destination" | "dst" | "destkey"
        | "sourcekey" => "key",
        "pattern" => "pattern",
        "score" | "timeout" => "double",
        "seconds" | "milliseconds" | "count" | "offset" | "index" | "start" | "stop" | "end" | "numkeys"
        | "cursor" | "db" | "length" | "increment" | "decrement" | "after" | "amount" | "block" | "burst"
        | "cap" | "delta" | "epoch" | "from" | "limit" | "lsn" | "number" | "numitems" | "step" | "units"
        | "windows" => "integer",
        name if name.starts_with("unix-time") => "unix-time",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tree in one line: `?` optional, `*` multiple, `{}` block, `()` one of.
    fn show(arguments: &[Argument]) -> String {
        arguments.iter().map(show_one).collect::<Vec<_>>().join(" ")
    }

    fn show_one(argument: &Argument) -> String {
        let body = match (&argument.kind, &argument.token) {
            (Kind::Word, Some(token)) => token.clone(),
            (Kind::Value(kind), Some(token)) => format!("{token}:{}:{kind}", argument.name),
            (Kind::Value(kind), None) => format!("{}:{kind}", argument.name),
            (Kind::Block(children), _) => format!("{{{}}}", show(children)),
            (Kind::OneOf(children), _) => format!("({})", show(children)),
            (Kind::Word, None) => String::new(),
        };
        format!(
            "{body}{}{}",
            if argument.optional { "?" } else { "" },
            if argument.multiple { "*" } else { "" }
        )
    }

    #[test]
    fn a_syntax_line_becomes_a_tree() {
        for (syntax, tree) in [
            ("", ""),
            ("key", "key:key"),
            ("key [key ...]", "key:key*"),
            ("key value [key value ...]", "{key:key value:string}*"),
            ("key [NX | XX] [GET]", "key:key (NX XX)? GET?"),
            (
                "[EX seconds | PX milliseconds | KEEPTTL]",
                "(EX:seconds:integer PX:milliseconds:integer KEEPTTL)?",
            ),
            (
                "[protover [AUTH username password]]",
                "{protover:string {AUTH:username:string password:string}?}?",
            ),
            ("[channel [channel ...]]", "channel:string?*"),
            ("ON | OFF", "(ON OFF)"),
            ("key <MIN | MAX> [COUNT count]", "key:key (MIN MAX) COUNT:count:integer?"),
            ("key [field value ...]", "key:key {field:string value:string}?*"),
            ("[OF numitems id [id ...]]", "{OF:numitems:integer id:string*}?"),
        ] {
            assert_eq!(show(&parse(syntax)), tree, "{syntax}");
        }
    }

    #[test]
    fn every_row_of_the_table_has_a_syntax_that_can_be_read() {
        for row in crate::command::all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let open = row.syntax.matches('[').count();
            assert_eq!(open, row.syntax.matches(']').count(), "{}: {}", row.name, row.syntax);
            assert_eq!(parse(row.syntax).is_empty(), row.syntax.is_empty(), "{}", row.name);
        }
    }
}
