//! What is said of a text that is no catalogue: where, of which item, what, and what to do.

use super::decimal::NumberError;
use super::format::FileFormat;
use super::place::{Place, Position};
use crate::catalogue::CatalogueError;
use crate::catalogue::item::AMOUNT_MAX;
use crate::catalogue::rules::RULE_ITEMS_MAX;
use std::borrow::Cow;
use std::fmt;

/// The longest piece of a text that a message repeats. Characters.
const QUOTED_CHARACTERS_MAX: usize = 64;

/// The longest message of a parser that is passed on. Characters.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// Why a text became no catalogue.
///
/// Shown, it is one line, such as `line 4, column 13: item 2 ("mug"): the weight -5 is negative: write 0 or more`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    position: Option<Position>,
    item: Option<ItemName>,
    problem: Box<Problem>,
}

/// An item as far as it has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemName {
    /// Its place in the list, from 1.
    pub(super) number: usize,
    pub(super) id: Option<Box<str>>,
}

impl FileError {
    /// Where, if it can be said.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// The item that it is about, counted from 1, if it is about one.
    pub fn item(&self) -> Option<usize> {
        self.item.as_ref().map(|item| item.number)
    }

    /// What is wrong.
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

/// What can be wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More text than is read.
    #[error(
        "the text has {bytes} bytes, at most {bytes_max} are read: leave out what is not needed, or allow more"
    )]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// Bytes that are no text.
    #[error("the catalogue is not UTF-8 from byte {valid_up_to} on")]
    NotUtf8 {
        /// How many of them are text.
        valid_up_to: usize,
    },
    /// More than a server reads at once.
    #[error("at most {} bytes are read of {}: {}", .format.served_bytes_max(), .format.name().to_ascii_uppercase(), shorter(*.format))]
    NotServed {
        /// What it is in.
        format: FileFormat,
    },
    /// The text is not in its format.
    #[error("this is not {}: {message}", .format.name().to_ascii_uppercase())]
    Syntax {
        /// What it should be in.
        format: FileFormat,
        /// What the format's parser says.
        message: Box<str>,
    },
    /// An alias of YAML, `*name`.
    #[error("aliases are not read here: write the value itself")]
    Alias,
    /// A tag of YAML other than `!!str`.
    #[error("the tag {tag} has no meaning here: take it out")]
    Tag {
        /// The tag.
        tag: Box<str>,
    },
    /// A second document of YAML.
    #[error("a catalogue is one document, and here begins a second: put it into a file of its own")]
    SecondDocument,
    /// A key that has no meaning where it stands.
    #[error("the key {key:?} is not known: {advice}")]
    UnknownKey {
        /// The key.
        key: Box<str>,
        /// What may have been meant, or what is possible.
        advice: Box<str>,
    },
    /// A key that is there twice.
    #[error("the key {key:?} is here for a second time: write it once")]
    DuplicateKey {
        /// The key.
        key: &'static str,
    },
    /// Keys of Tidemark's catalogues beside those of the original's configuration.
    #[error(
        "the key {key:?} does not go together with {other:?}: write a catalogue with \"items\", or a configuration of the original \
         with \"catalog\""
    )]
    MixedOrigins {
        /// The second key.
        key: &'static str,
        /// The first.
        other: &'static str,
    },
    /// Something that must be there is not.
    #[error("there is no {key:?}: {advice}")]
    MissingKey {
        /// What is missing.
        key: &'static str,
        /// What to write.
        advice: &'static str,
    },
    /// A value of a kind that its key does not take.
    #[error("{what} must be {expected}, but is {found}")]
    WrongKind {
        /// What the value is of.
        what: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: Box<str>,
    },
    /// A word that is none of the possible ones.
    #[error("{what} {word:?} is not known: {advice}")]
    UnknownWord {
        /// What the word is of.
        what: &'static str,
        /// The word.
        word: Box<str>,
        /// What may have been meant, or what is possible.
        advice: Box<str>,
    },
    /// A number that cannot be used.
    #[error("the {key} {spelled} {error}")]
    Number {
        /// What it is of.
        key: &'static str,
        /// How it is written.
        spelled: Box<str>,
        /// Why not.
        error: NumberError,
    },
    /// Digits behind the point that would make the whole numbers too large.
    #[error(
        "the weight {weight} has {digits} digits behind the point; made whole numbers by 10 to the power of {digits}, the weights \
         add up to more than {AMOUNT_MAX} at item {number}: use fewer digits"
    )]
    TooManyDigits {
        /// The weight that has the most digits behind the point.
        weight: Box<str>,
        /// How many.
        digits: u32,
        /// The item with which it becomes too much, counted from 1.
        number: usize,
    },
    /// Weights in per cent beside others.
    #[error("some weights are in per cent and some are not: write all of them in one way")]
    MixedPercent,
    /// Percentages that are not the odds.
    #[error("the weights in per cent add up to {sum} %, not 100 %: correct them, or write them as numbers")]
    PercentSum {
        /// Their sum.
        sum: Box<str>,
    },
    /// Percentages where a weight counts for each unit.
    #[error(
        "a weight in per cent is the odds of an item, but by \"per-unit\" a weight counts for each unit: write numbers"
    )]
    PercentPerUnit,
    /// An item with a quantity and a table.
    #[error("an item that leads to a \"table\" has no \"quantity\": take one of them out")]
    StockOfTable,
    /// A limit of draws that names items, or one of draws and wins at once.
    #[error("a limit of \"draws\" has neither \"wins\" nor \"of\": write a second limit for those")]
    DrawsOfItems,
    /// A rule that names too many items.
    #[error("a rule names at most {RULE_ITEMS_MAX} items: leave some out")]
    TooManyNamed,
    /// What it says is no catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

/// A problem while the text is read: its place is not worked out yet.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    pub(super) item: Option<ItemName>,
    pub(super) problem: Box<Problem>,
}

impl Fault {
    /// A problem at a place.
    pub(super) fn at(place: Place, problem: Problem) -> Self {
        Self { place: Some(place), item: None, problem: Box::new(problem) }
    }

    /// A problem of the whole text.
    pub(super) fn nowhere(problem: Problem) -> Self {
        Self { place: None, item: None, problem: Box::new(problem) }
    }

    /// The same, of this item.
    pub(super) fn of_item(self, item: ItemName) -> Self {
        Self { item: Some(item), ..self }
    }

    /// What is shown of it.
    pub(super) fn in_text(self, text: &str) -> FileError {
        FileError {
            position: self.place.map(|place| place.position(text)),
            item: self.item,
            problem: self.problem,
        }
    }
}

/// A piece of the text for a message: its beginning, if it is long.
pub(super) fn clipped(piece: &str) -> Box<str> {
    beginning(piece, QUOTED_CHARACTERS_MAX).into()
}

/// What a parser says, in one line. It may repeat pieces of the text.
pub(super) fn message(said: &str) -> Box<str> {
    beginning(said, MESSAGE_CHARACTERS_MAX).replace('\n', ", ").into()
}

fn beginning(text: &str, characters_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

/// What to do where a server does not read so much.
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
