//! The configuration file: TOML, one key per setting, printed with explanations.

use super::Config;
use super::setting::{Literal, SETTINGS, Setting, find};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Column at which comments are wrapped.
const COMMENT_COLUMNS: usize = 100;

/// Error for a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The file looks like one for Redis.
    #[error(
        "{}:{line}: this looks like a configuration file for Redis: `{text}`\nTidemark reads TOML: `name = value`. \
         `tidemark serve --print-config` prints a complete one to start from", path.display()
    )]
    RedisSyntax {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The file is not TOML.
    #[error("{}:{line}: {message}\n{excerpt}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        message: String,
        /// The line with a mark below the error.
        excerpt: String,
    },
    /// A key is not a setting.
    #[error("{}:{line}: unknown setting '{key}'{}\n{excerpt}", path.display(), super::suggestion::did_you_mean(*suggestion))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The setting with the most similar name.
        suggestion: Option<&'static str>,
        /// The line with a mark below the error.
        excerpt: String,
    },
    /// A setting is given under two names.
    #[error("{}:{line}: '{first}' and '{second}' are names of the same setting: keep one of them", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// Line number of the second, from 1.
        line: usize,
        /// The first name.
        first: String,
        /// The second name.
        second: String,
    },
    /// A value is invalid for its setting.
    #[error("{}:{line}: the value of '{key}' {reason}\n{excerpt}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The setting.
        key: String,
        /// What is wrong with the value.
        reason: String,
        /// The line with a mark below the error.
        excerpt: String,
    },
}

/// Applies the settings of a file to `config`.
pub(super) fn load(path: &Path, config: &mut Config) -> Result<(), FileError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| FileError::Read { path: path.to_owned(), error })?;
    apply(path, &text, config)
}

/// Applies `text`, the content of the file `path`.
pub(super) fn apply(path: &Path, text: &str, config: &mut Config) -> Result<(), FileError> {
    let table = DeTable::parse(text).map_err(|error| syntax_error(path, text, &error))?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut met: BTreeMap<&'static str, &str> = BTreeMap::new();
    for (key, value) in entries {
        let place = FilePosition::of(text, key.span().start);
        let Some(setting) = find(key.get_ref()) else {
            return Err(FileError::UnknownKey {
                path: path.to_owned(),
                line: place.line,
                key: key.get_ref().to_string(),
                suggestion: super::suggestion::nearest(key.get_ref()),
                excerpt: place.excerpt(may_name_secret(key.get_ref())),
            });
        };
        if let Some(first) = met.insert(setting.subject(), key.get_ref()) {
            return Err(FileError::Twice {
                path: path.to_owned(),
                line: place.line,
                first: first.to_owned(),
                second: key.get_ref().to_string(),
            });
        }
        let applied = plain_text(value.get_ref())
            .ok_or_else(|| "must be a string, a number or true or false".to_owned())
            .and_then(|value| setting.set(config, &value));
        if let Err(reason) = applied {
            let place = FilePosition::of(text, value.span().start);
            return Err(FileError::Value {
                path: path.to_owned(),
                line: place.line,
                key: setting.name.to_owned(),
                reason,
                excerpt: place.excerpt(setting.is_secret()),
            });
        }
    }
    Ok(())
}

/// Prints the whole configuration as a commented file, which can be read back.
pub fn print(config: &Config) -> String {
    let mut text = String::from(
        "# Configuration of Tidemark. `tidemark serve --config FILE` reads it.\n\
         # Flags win over TIDEMARK_* environment variables, those over this file.\n\
         # Sizes are bytes and take units: \"64kb\" (1024), \"64k\" (1000), mb, gb.\n",
    );
    let mut group = "";
    for setting in SETTINGS {
        // An alias of a setting that was printed: a file may not have both.
        if setting.subject() != setting.name {
            continue;
        }
        if setting.group != group {
            group = setting.group;
            let _ = write!(text, "\n# ---- {group} ----\n");
        }
        text.push('\n');
        comment(&mut text, setting.help);
        let _ = writeln!(text, "{} = {}", setting.name, literal(setting, config));
    }
    text
}

fn literal(setting: &Setting, config: &Config) -> String {
    let value = setting.get(config);
    match setting.literal {
        Literal::Number => value,
        Literal::Switch => (value == "yes").to_string(),
        Literal::Text => toml::Value::String(value).to_string(),
    }
}

fn comment(text: &mut String, help: &str) {
    let mut column = 0;
    for word in help.split_whitespace() {
        if column == 0 || column + word.len() + 1 > COMMENT_COLUMNS {
            text.push_str(if column == 0 { "#" } else { "\n#" });
            column = 1;
        }
        text.push(' ');
        text.push_str(word);
        column += word.len() + 1;
    }
    text.push('\n');
}

/// Returns a value in the form of a flag's value; `None` if no setting accepts its type.
fn plain_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(value) => Some(if *value { "yes" } else { "no" }.to_owned()),
        _ => None,
    }
}

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> FileError {
    let place = FilePosition::of(text, error.span().map_or(0, |span| span.start));
    let hidden = may_hold_secret(text, place.line);
    let first_word = place.text.split_whitespace().next().unwrap_or_default();
    if !place.text.contains('=') && find(first_word).is_some() {
        let text = if hidden { format!("{first_word} …") } else { place.text };
        return FileError::RedisSyntax { path: path.to_owned(), line: place.line, text };
    }
    let message = error.message().to_owned();
    FileError::Syntax { path: path.to_owned(), line: place.line, message, excerpt: place.excerpt(hidden) }
}

/// Whether a line that is not TOML may show a password, judged by the last key on or above it. Errs
/// on the side of hiding: strings span lines, and keys are misspelt.
fn may_hold_secret(text: &str, line: usize) -> bool {
    let key_of = |line: &str| {
        let (key, _) = line.split_once('=').or_else(|| line.trim().split_once(char::is_whitespace))?;
        let key = key.trim().trim_matches(['"', '\'']).to_owned();
        // An escaped key can have any name.
        (find(&key).is_some() || may_name_secret(&key) || key.contains('\\')).then_some(key)
    };
    let key = text.lines().take(line).filter_map(key_of).last();
    key.is_some_and(|key| may_name_secret(&key) || key.contains('\\'))
}

/// Whether a key names a secret or is similar to one that does.
fn may_name_secret(key: &str) -> bool {
    let setting = find(key).or_else(|| super::suggestion::nearest(key).and_then(find));
    setting.is_some_and(Setting::is_secret)
}

/// A position in a file, for messages.
struct FilePosition {
    line: usize,
    column: usize,
    text: String,
}

impl FilePosition {
    fn of(text: &str, offset: usize) -> FilePosition {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let text = text.lines().nth(line - 1).unwrap_or_default().to_owned();
        FilePosition { line, column, text }
    }

    /// Returns the line with a caret below the position, unless it must be hidden.
    fn excerpt(&self, hidden: bool) -> String {
        if hidden {
            return "  (the line is not shown: it may hold a password)".to_owned();
        }
        format!("  {}\n  {}^", self.text, " ".repeat(self.column))
    }
}
