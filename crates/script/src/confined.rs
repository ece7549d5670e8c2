//! Whether a script touches only the keys that it is given, by its text.
//!
//! A script that does is run with the locks of these keys; any other is run alone. The text proves it if
//!
//! - `redis.call` and `redis.pcall` are only called, never passed on, with the name of the command as a text;
//! - each argument that is a key is `KEYS[…]`, a variable that only ever gets such values, or `unpack(KEYS)`
//!   behind all others;
//! - `KEYS` is only read, and nothing is named by which it, or a program, could be reached otherwise.
//!
//! That is conservative: a script without this form may still touch only its keys.

use std::collections::HashSet;

/// Returns the positions of the keys of a command among its arguments, of which the name is the first. `None`
/// if they are not known. An argument that is no text in the script is `None`.
///
/// The second argument says whether more arguments than these may follow.
pub type KeysOf<'a> = &'a dyn Fn(&[Option<&[u8]>], bool) -> Option<Vec<usize>>;

/// Whether a program touches only its keys.
pub fn is_confined(program: &[u8], keys_of: KeysOf<'_>) -> bool {
    tokens(program).is_some_and(|tokens| Proof { tokens: &tokens, keys_of }.holds())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name or a keyword.
    Word(String),
    Text(Vec<u8>),
    Number,
    /// An operator or a bracket.
    Sign(&'static str),
}

const SIGNS: [&str; 25] = [
    "...", "..", "==", "~=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "^", "#", "(", ")", "{",
    "}", "[", "]", ";", ":", ",",
];

const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Names by which a script could reach its globals, or run another program.
const SUSPECTS: [&str; 4] = ["_G", "load", "loadstring", "setfenv"];

/// Splits a program; `None` at what is no Lua.
fn tokens(program: &[u8]) -> Option<Vec<Token>> {
    let (mut tokens, mut rest) = (Vec::new(), program);
    while let Some(&first) = rest.first() {
        if first.is_ascii_whitespace() || first == 0x0b {
            rest = &rest[1..];
        } else if rest.starts_with(b"--") {
            rest = match long_text(&rest[2..]) {
                Some((_, behind)) => behind,
                None => {
                    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                    &rest[end..]
                }
            };
        } else if first.is_ascii_alphabetic() || first == b'_' {
            let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let (word, behind) = rest.split_at(rest.iter().take_while(is_part).count());
            tokens.push(Token::Word(String::from_utf8_lossy(word).into_owned()));
            rest = behind;
        } else if first.is_ascii_digit() || (first == b'.' && rest.get(1).is_some_and(u8::is_ascii_digit)) {
            let mut len = 0;
            while let Some(byte) = rest.get(len) {
                let is_sign = matches!(byte, b'+' | b'-') && matches!(rest[len - 1], b'e' | b'E');
                if !(byte.is_ascii_alphanumeric() || *byte == b'.' || (len > 0 && is_sign)) {
                    break;
                }
                len += 1;
            }
            tokens.push(Token::Number);
            rest = &rest[len..];
        } else if first == b'"' || first == b'\'' {
            let (text, behind) = short_text(rest)?;
            tokens.push(Token::Text(text));
            rest = behind;
        } else if let Some((text, behind)) = long_text(rest) {
            tokens.push(Token::Text(text.to_vec()));
            rest = behind;
        } else if first == b'.' && !rest.starts_with(b"..") {
            tokens.push(Token::Sign("."));
            rest = &rest[1..];
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes()))?;
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        }
    }
    Some(tokens)
}

/// A text in quotes, and what is behind it. One with an escape is given as it stands, which is no command.
fn short_text(rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'\\' => at += 2,
            b'\n' => return None,
            byte if *byte == rest[0] => return Some((rest[1..at].to_vec(), &rest[at + 1..])),
            _ => at += 1,
        }
    }
}

/// A text in long brackets, and what is behind it.
fn long_text(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let level = rest.strip_prefix(b"[")?.iter().take_while(|byte| **byte == b'=').count();
    if rest.get(level + 1) != Some(&b'[') {
        return None;
    }
    let close = [b"]".as_slice(), &vec![b'='; level], b"]"].concat();
    let body = &rest[level + 2..];
    let end = body.windows(close.len()).position(|window| window == close)?;
    Some((&body[..end], &body[end + close.len()..]))
}

struct Proof<'a> {
    tokens: &'a [Token],
    keys_of: KeysOf<'a>,
}

/// A part of the tokens, from one to another that is not in it.
type Span = (usize, usize);

impl<'a> Proof<'a> {
    fn holds(&self) -> bool {
        let Some(variables) = self.key_variables() else { return false };
        (0..self.tokens.len()).all(|at| match &self.tokens[at] {
            Token::Word(word) if SUSPECTS.contains(&word.as_str()) => self.is_field(at),
            Token::Word(word) if word == "KEYS" && !self.is_field(at) => self.only_reads_keys(at),
            Token::Word(word) if word == "redis" && !self.is_field(at) => {
                self.calls_with_keys(at, &variables)
            }
            _ => true,
        })
    }

    fn sign(&self, at: usize) -> &'a str {
        match self.tokens.get(at) {
            Some(Token::Sign(sign)) => sign,
            _ => "",
        }
    }

    fn word(&self, at: usize) -> &'a str {
        match self.tokens.get(at) {
            Some(Token::Word(word)) => word,
            _ => "",
        }
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        Some(self.word(at)).filter(|word| !word.is_empty() && !KEYWORDS.contains(word))
    }

    /// Whether the word is the name of a field or method.
    fn is_field(&self, at: usize) -> bool {
        at > 0 && matches!(self.sign(at - 1), "." | ":")
    }

    /// Where the bracket at `at` is closed: the position behind that.
    fn behind_bracket(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for position in at..self.tokens.len() {
            match self.sign(position) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(position + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Where the bracket that is closed at `at` is opened.
    fn opened(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for position in (0..=at).rev() {
            match self.sign(position) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(position);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn only_reads_keys(&self, at: usize) -> bool {
        if at > 0 && self.sign(at - 1) == "#" {
            return true;
        }
        if self.sign(at + 1) == "[" {
            // Whether it is assigned to is seen where the `=` is.
            return self.behind_bracket(at + 1).is_some();
        }
        at >= 2
            && self.sign(at - 1) == "("
            && self.sign(at + 1) == ")"
            && matches!(self.word(at - 2), "unpack" | "ipairs" | "pairs")
            && !self.is_field(at - 2)
    }

    /// Whether the tokens are `KEYS[…]`.
    fn is_key(&self, (from, to): Span) -> bool {
        self.word(from) == "KEYS" && self.sign(from + 1) == "[" && self.behind_bracket(from + 1) == Some(to)
    }

    /// The variables that only ever get keys; `None` if `KEYS` is changed.
    fn key_variables(&self) -> Option<HashSet<&'a str>> {
        let (mut keys, mut others) = (HashSet::new(), HashSet::new());
        for at in 0..self.tokens.len() {
            if self.sign(at) == "=" {
                if !self.is_of_field(at) {
                    self.note_assignment(at, &mut keys, &mut others)?;
                }
            } else if self.word(at) == "function" {
                let open = (at + 1..self.tokens.len()).find(|position| self.sign(*position) == "(")?;
                others
                    .extend((at + 1..self.behind_bracket(open)?).filter_map(|position| self.name(position)));
            } else if self.word(at) == "in" {
                let names: Vec<usize> =
                    (0..at).rev().take_while(|position| self.word(*position) != "for").collect();
                let is_of_keys = self.word(at + 1) == "ipairs"
                    && self.sign(at + 2) == "("
                    && self.word(at + 3) == "KEYS"
                    && self.sign(at + 4) == ")"
                    && self.word(at + 5) == "do"
                    && names.len() == 3;
                // The names are here from the last to the first.
                for (index, name) in names.iter().filter_map(|position| self.name(*position)).enumerate() {
                    if is_of_keys && index == 0 {
                        keys.insert(name)
                    } else {
                        others.insert(name)
                    };
                }
            }
        }
        others.extend(["KEYS", "redis", "unpack", "ipairs"].iter().filter(|name| keys.contains(*name)));
        if others.contains("KEYS") || others.contains("redis") {
            return None;
        }
        Some(&keys - &others)
    }

    /// Whether the `=` at `at` gives a field of a table in braces its value.
    fn is_of_field(&self, at: usize) -> bool {
        let mut depth = 0_usize;
        for position in (0..at).rev() {
            match self.sign(position) {
                ")" | "]" | "}" => depth += 1,
                "(" | "[" | "{" if depth > 0 => depth -= 1,
                "{" => return true,
                "(" | "[" => return false,
                _ if depth == 0 && self.word(position) == "function" => return false,
                _ => {}
            }
        }
        false
    }

    /// Notes what the `=` at `at` assigns. `None` if it changes `KEYS`.
    fn note_assignment(
        &self,
        at: usize,
        keys: &mut HashSet<&'a str>,
        others: &mut HashSet<&'a str>,
    ) -> Option<()> {
        // The targets, from the last to the first.
        let (mut targets, mut position) = (Vec::new(), at);
        loop {
            position = position.checked_sub(1)?;
            let mut has_suffix = false;
            loop {
                if matches!(self.sign(position), "]" | ")") {
                    position = self.opened(position)?.checked_sub(1)?;
                    has_suffix = true;
                } else if position > 0 && self.is_field(position) {
                    position = position.checked_sub(2)?;
                    has_suffix = true;
                } else {
                    break;
                }
            }
            let target = self.word(position);
            if target == "KEYS" {
                return None;
            }
            targets.push((target, has_suffix));
            if position == 0 || self.sign(position - 1) != "," {
                break;
            }
            position -= 1;
        }
        targets.reverse();
        let mut from = at + 1;
        let mut all_are_keys = true;
        for index in 0..targets.len() {
            let to = if self.sign(from + 1) == "[" { self.behind_bracket(from + 1) } else { None };
            let Some(to) = to.filter(|to| self.is_key((from, *to))) else {
                all_are_keys = false;
                break;
            };
            let is_last = index + 1 == targets.len();
            let ends = match self.tokens.get(to) {
                None | Some(Token::Number | Token::Text(_)) => self.tokens.get(to).is_none(),
                Some(Token::Sign(sign)) => *sign == ";",
                Some(Token::Word(word)) => !matches!(word.as_str(), "and" | "or"),
            };
            if if is_last { !ends } else { self.sign(to) != "," } {
                all_are_keys = false;
                break;
            }
            from = to + 1;
        }
        for (target, has_suffix) in targets {
            if !has_suffix {
                if all_are_keys {
                    keys.insert(target)
                } else {
                    others.insert(target)
                };
            }
        }
        Some(())
    }

    /// Whether `redis` at `at` is a function that calls nothing, or calls a command with its keys.
    fn calls_with_keys(&self, at: usize, variables: &HashSet<&str>) -> bool {
        if self.sign(at + 1) != "." {
            return false;
        }
        if !matches!(self.word(at + 2), "call" | "pcall") {
            return !self.word(at + 2).is_empty();
        }
        if self.sign(at + 3) != "(" {
            return false;
        }
        let Some(behind) = self.behind_bracket(at + 3) else { return false };
        let args = self.arguments(at + 4, behind - 1);
        let texts: Vec<Option<&[u8]>> = args
            .iter()
            .map(|(from, to)| match &self.tokens[*from..*to] {
                [Token::Text(text)] => Some(text.as_slice()),
                _ => None,
            })
            .collect();
        if texts.first().copied().flatten().is_none() {
            return false;
        }
        let last = args[args.len() - 1];
        let is_rest = matches!(self.sign(last.1 - 1), ")" | "...");
        let Some(positions) = (self.keys_of)(&texts, is_rest) else { return false };
        positions.into_iter().all(|position| {
            let Some(&(from, to)) = args.get(position) else { return true };
            let is_variable = to == from + 1 && variables.contains(self.word(from));
            let is_unpacked = position + 1 == args.len()
                && to == from + 4
                && self.word(from) == "unpack"
                && self.sign(from + 1) == "("
                && self.word(from + 2) == "KEYS";
            is_variable || is_unpacked || self.is_key((from, to))
        })
    }

    /// The arguments between two positions, without the commas.
    fn arguments(&self, from: usize, to: usize) -> Vec<Span> {
        let (mut spans, mut start, mut depth) = (Vec::new(), from, 0_usize);
        for at in from..to {
            match self.sign(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "," if depth == 0 => {
                    spans.push((start, at));
                    start = at + 1;
                }
                // Commas of a function's body are not those of the call.
                _ if self.word(at) == "function" => depth += 1_000_000,
                _ => {}
            }
        }
        if start < to {
            spans.push((start, to));
        }
        spans.retain(|(from, to)| from < to);
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `GET k`, `SET k v`, `DEL k …`, `PING`.
    fn keys_of(args: &[Option<&[u8]>], may_have_more: bool) -> Option<Vec<usize>> {
        match args[0]? {
            b"GET" | b"SET" => Some(vec![1]),
            b"DEL" => Some((1..args.len()).collect()),
            b"PING" => Some(vec![]),
            b"EVERY" if may_have_more => None,
            _ => None,
        }
    }

    #[test]
    fn scripts_that_touch_only_their_keys_are_known() {
        for program in [
            "return 1",
            "return redis.call('GET', KEYS[1])",
            "return redis.pcall(\"SET\", KEYS[#KEYS], ARGV[1] .. ARGV[2])",
            "local key = KEYS[1]\nlocal value = redis.call('GET', key)\nreturn value",
            "local a, b = KEYS[1], KEYS[2] redis.call('DEL', a, b)",
            "for i = 1, #KEYS do redis.call('GET', KEYS[i]) end",
            "for _, key in ipairs(KEYS) do redis.call('DEL', key) end",
            "return redis.call('DEL', unpack(KEYS))",
            "redis.call('SET', KEYS[1], unpack(ARGV)) -- redis.call('GET', 'x')",
            "redis.call('SET', KEYS[1], cjson.encode({KEYS[2], a = 1, b = {2}}))",
            "return redis.call('PING', 'x')",
            "return redis.sha1hex(KEYS[1])",
            "local x = [[ redis.call('GET', 'x') ]] return x",
            "local key\nkey = KEYS[1]\nreturn redis.call('GET', key)",
        ] {
            assert!(is_confined(program.as_bytes(), &keys_of), "{program}");
        }
    }

    #[test]
    fn scripts_that_may_touch_others_are_not() {
        for program in [
            "return redis.call('GET', 'x')",
            "return redis.call('GET', ARGV[1])",
            "return redis.call('GET', KEYS[1] .. ':x')",
            "local key = KEYS[1] .. ':x' redis.call('GET', key)",
            "local key = KEYS[1] or 'x' redis.call('GET', key)",
            "local key = KEYS[1] key = 'x' redis.call('GET', key)",
            "local key = KEYS[1] local a, key = 1, 'x' redis.call('GET', key)",
            "local key = KEYS[1] key, a = 'x', 1 redis.call('GET', key)",
            "local key = KEYS[1] local function f(key) redis.call('GET', key) end f('x')",
            "local key = KEYS[1] for key in pairs(t) do redis.call('GET', key) end",
            "for _, key in ipairs(ARGV) do redis.call('DEL', key) end",
            "local call = redis.call call('GET', 'x')",
            "local r = redis r.call('GET', 'x')",
            "redis['call']('GET', 'x')",
            "redis.call(ARGV[1], KEYS[1])",
            "redis.call('DEL', KEYS[1], unpack(ARGV))",
            "redis.call('OTHER', KEYS[1])",
            "KEYS[1] = 'x' redis.call('GET', KEYS[1])",
            "a, KEYS[1] = 1, 'x' redis.call('GET', KEYS[1])",
            "KEYS[1], a = 'x', 1 redis.call('GET', KEYS[1])",
            "table.insert(KEYS, 'x') redis.call('GET', KEYS[1])",
            "local k = KEYS k[1] = 'x' redis.call('GET', KEYS[1])",
            "local KEYS = {'x'} redis.call('GET', KEYS[1])",
            "_G.KEYS = 1",
            "loadstring('return redis.call(\"GET\", \"x\")')()",
            "pcall(redis.call, 'GET', 'x')",
            "redis.call 'PING'",
            "return 'unfinished",
        ] {
            assert!(!is_confined(program.as_bytes(), &keys_of), "{program}");
        }
    }
}
