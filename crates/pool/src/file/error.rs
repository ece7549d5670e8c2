//! Errors in a catalogue file: position, item, problem, and advice.

use super::decimal::NumberError;
use super::format::FileFormat;
use super::place::{ParserPosition, Position};
use crate::catalogue::CatalogueError;
use crate::catalogue::item::AMOUNT_MAX;
use crate::catalogue::rules::RULE_ITEMS_MAX;
use std::borrow::Cow;
use std::fmt;

/// Maximum length of a quotation from the text, in characters.
const QUOTED_CHARACTERS_MAX: usize = 64;

/// Maximum length of a parser's message, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// Error in a catalogue file.
///
/// Displayed in one line, such as
/// `line 4, column 13: item 2 ("mug"): the weight -5 is negative: write 0 or more`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    position: Option<Position>,
    item: Option<ItemName>,
    problem: Box<Problem>,
}

/// An item, possibly incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemName {
    /// Its position in the list, from 1.
    pub(super) number: usize,
    pub(super) id: Option<Box<str>>,
}

impl FileError {
    /// Returns the position of the error, if it has one.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns the number of the item with the error, from 1, if it concerns one.
    pub fn item(&self) -> Option<usize> {
        self.item.as_ref().map(|item| item.number)
    }

    /// Returns the problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(formatter, "{position}: ")?;
        }
        match &self.item {
            Some(ItemName { number, id: Some(id) }) => write!(formatter, "item {number} ({id:?}): ")?,
            Some(ItemName { number, id: None }) => write!(formatter, "item {number}: ")?,
            None => {}
        }
        write!(formatter, "{}", self.problem)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.problem {
            Problem::Catalogue(error) => Some(error),
            Problem::Number { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Problem in a catalogue file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is too long.
    #[error(
        "the text has {bytes} bytes, at most {bytes_max} are read: leave out what is not needed, or allow more"
    )]
    TooLong {
        /// Length of the text.
        bytes: usize,
        /// Maximum length.
        bytes_max: usize,
    },
    /// The bytes are not UTF-8.
    #[error("the catalogue is not UTF-8 from byte {valid_up_to} on")]
    NotUtf8 {
        /// Number of valid bytes before the first invalid one.
        valid_up_to: usize,
    },
    /// The text is longer than a server reads.
    #[error("at most {} bytes are read of {}: {}", .format.served_bytes_max(), .format.name().to_ascii_uppercase(), shorter(*.format))]
    NotServed {
        /// Format of the text.
        format: FileFormat,
    },
    /// The text has a syntax error.
    #[error("this is not {}: {message}", .format.name().to_ascii_uppercase())]
    Syntax {
        /// Expected format.
        format: FileFormat,
        /// Message of the parser.
        message: Box<str>,
    },
    /// The text has a YAML alias, `*name`.
    #[error("aliases are not read here: write the value itself")]
    Alias,
    /// The text has a YAML tag other than `!!str`.
    #[error("the tag {tag} has no meaning here: take it out")]
    Tag {
        /// The tag.
        tag: Box<str>,
    },
    /// The text has a second YAML document.
    #[error("a catalogue is one document, and here begins a second: put it into a file of its own")]
    SecondDocument,
    /// A key is unknown here.
    #[error("the key {key:?} is not known: {advice}")]
    UnknownKey {
        /// The key.
        key: Box<str>,
        /// Likely correction, or the possible keys.
        advice: Box<str>,
    },
    /// A key occurs twice.
    #[error("the key {key:?} is here for a second time: write it once")]
    DuplicateKey {
        /// The key.
        key: &'static str,
    },
    /// The text mixes keys of Tidemark's catalogues and of the original's configuration.
    #[error(
        "the key {key:?} does not go together with {other:?}: write a catalogue with \"items\", or a configuration of the original \
         with \"catalog\""
    )]
    MixedOrigins {
        /// Second key.
        key: &'static str,
        /// First key.
        other: &'static str,
    },
    /// A required key is missing.
    #[error("there is no {key:?}: {advice}")]
    MissingKey {
        /// The missing key.
        key: &'static str,
        /// Advice what to write.
        advice: &'static str,
    },
    /// A value has the wrong type.
    #[error("{what} must be {expected}, but is {found}")]
    WrongKind {
        /// What the value is.
        what: &'static str,
        /// Expected type.
        expected: &'static str,
        /// Type found.
        found: Box<str>,
    },
    /// A word is not one of the possible ones.
    #[error("{what} {word:?} is not known: {advice}")]
    UnknownWord {
        /// What the word is.
        what: &'static str,
        /// The word.
        word: Box<str>,
        /// Likely correction, or the possible words.
        advice: Box<str>,
    },
    /// A number cannot be used.
    #[error("the {key} {spelled} {error}")]
    Number {
        /// Key of the number.
        key: &'static str,
        /// The number as written.
        spelled: Box<str>,
        /// Reason.
        error: NumberError,
    },
    /// A weight has so many digits after the point that the weights as integers are too large.
    #[error(
        "the weight {weight} has {digits} digits behind the point; made whole numbers by 10 to the power of {digits}, the weights \
         add up to more than {AMOUNT_MAX} at item {number}: use fewer digits"
    )]
    TooManyDigits {
        /// Weight with the most digits after the point.
        weight: Box<str>,
        /// Number of these digits.
        digits: u32,
        /// Number of the item, from 1, at which the sum becomes too large.
        number: usize,
    },
    /// Some weights are in per cent and some are not.
    #[error("some weights are in per cent and some are not: write all of them in one way")]
    MixedPercent,
    /// The weights in per cent do not add up to 100 %.
    #[error("the weights in per cent add up to {sum} %, not 100 %: correct them, or write them as numbers")]
    PercentSum {
        /// Their sum.
        sum: Box<str>,
    },
    /// A weight is in per cent in a raffle, where weights count for each unit.
    #[error(
        "a weight in per cent is the odds of an item, but by \"per-unit\" a weight counts for each unit: write numbers"
    )]
    PercentPerUnit,
    /// An item has both a quantity and a table.
    #[error("an item that leads to a \"table\" has no \"quantity\": take one of them out")]
    StockOfTable,
    /// A limit of draws also has `wins` or `of`.
    #[error("a limit of \"draws\" has neither \"wins\" nor \"of\": write a second limit for those")]
    DrawsOfItems,
    /// A rule names too many items.
    #[error("a rule names at most {RULE_ITEMS_MAX} items: leave some out")]
    TooManyNamed,
    /// The file has valid syntax, but is not a valid catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

/// A problem found while reading; its position is not computed yet.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) place: Option<ParserPosition>,
    pub(super) item: Option<ItemName>,
    pub(super) problem: Box<Problem>,
}

impl Fault {
    pub(super) fn at(place: ParserPosition, problem: Problem) -> Self {
        Self { place: Some(place), item: None, problem: Box::new(problem) }
    }

    pub(super) fn nowhere(problem: Problem) -> Self {
        Self { place: None, item: None, problem: Box::new(problem) }
    }

    pub(super) fn of_item(self, item: ItemName) -> Self {
        Self { item: Some(item), ..self }
    }

    /// Converts it to an error, with its position in the text.
    pub(super) fn in_text(self, text: &str) -> FileError {
        FileError {
            position: self.place.map(|place| place.position(text)),
            item: self.item,
            problem: self.problem,
        }
    }
}

/// Shortens a quotation from the text.
pub(super) fn clipped(piece: &str) -> Box<str> {
    beginning(piece, QUOTED_CHARACTERS_MAX).into()
}

/// Shortens a parser's message to one line. It may quote the text.
pub(super) fn message(said: &str) -> Box<str> {
    beginning(said, MESSAGE_CHARACTERS_MAX).replace('\n', ", ").into()
}

fn beginning(text: &str, characters_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

/// Returns the advice for a text that is too long for a server.
fn shorter(format: FileFormat) -> String {
    match FileFormat::Json.served_bytes_max() {
        max if max > format.served_bytes_max() => format!("write it as JSON, of which {max} are read"),
        _ => "leave out what is not needed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_repeat_no_more_than_a_piece() {
        assert_eq!(&*clipped("ä"), "ä");
        assert_eq!(clipped(&"ä".repeat(1_000_000)).chars().count(), QUOTED_CHARACTERS_MAX + 3);
    }
}
