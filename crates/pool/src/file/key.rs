//! Keys of a catalogue file, and where each is allowed.

use super::suggestion::nearest;

/// Origin of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Tidemark's own form.
    Tidemark,
    /// Configuration of the system that Tidemark's pools are modelled on.
    Original,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Mode,
    SoldOut,
    Items,
    Limits,
    Guarantees,
    Fallback,
    Id,
    Weight,
    Quantity,
    // Keys of rules.
    Draws,
    Wins,
    Per,
    Of,
    After,
    Scope,
    SoftFrom,
    SoftStep,
    // Keys of releases.
    Schedule,
    Item,
    Units,
    From,
    Every,
    Times,
    Unsold,
    // Keys of tables.
    Tables,
    Table,
    Name,
    // Keys of the original.
    WorkingDir,
    Pool,
    Catalog,
    Wal,
    Grpc,
    ItemId,
    Probability,
    MaxFileSize,
    MaxRequestBufferSize,
    Formatter,
    FlushAfterDraws,
    Enabled,
    ListenAddress,
}

impl Key {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::SoldOut => "sold_out",
            Self::Items => "items",
            Self::Limits => "limits",
            Self::Guarantees => "guarantees",
            Self::Fallback => "fallback",
            Self::Id => "id",
            Self::Weight => "weight",
            Self::Quantity => "quantity",
            Self::Draws => "draws",
            Self::Wins => "wins",
            Self::Per => "per",
            Self::Of => "of",
            Self::After => "after",
            Self::Scope => "scope",
            Self::SoftFrom => "soft_from",
            Self::SoftStep => "soft_step",
            Self::Schedule => "schedule",
            Self::Item => "item",
            Self::Units => "units",
            Self::From => "from",
            Self::Every => "every",
            Self::Times => "times",
            Self::Unsold => "unsold",
            Self::Tables => "tables",
            Self::Table => "table",
            Self::Name => "name",
            Self::WorkingDir => "working_dir",
            Self::Pool => "pool",
            Self::Catalog => "catalog",
            Self::Wal => "wal",
            Self::Grpc => "grpc",
            Self::ItemId => "item_id",
            Self::Probability => "probability",
            Self::MaxFileSize => "max_file_size_kb",
            Self::MaxRequestBufferSize => "max_request_buffer_size",
            Self::Formatter => "formatter",
            Self::FlushAfterDraws => "flush_after_n_draw",
            Self::Enabled => "enabled",
            Self::ListenAddress => "listen_address",
        }
    }

    /// Returns the origin of a file with this key at the top.
    pub(super) fn origin(self) -> Origin {
        match self {
            Self::Mode
            | Self::SoldOut
            | Self::Limits
            | Self::Guarantees
            | Self::Schedule
            | Self::Items
            | Self::Tables => Origin::Tidemark,
            _ => Origin::Original,
        }
    }
}

/// A map or a list in a catalogue file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// The whole file.
    Top,
    Items(Origin),
    Item(Origin),
    /// The value of `sold_out`, if it is a map.
    SoldOut,
    Limits,
    Limit,
    Guarantees,
    Guarantee,
    /// The items of a rule.
    Of,
    /// The list of nested tables.
    Tables,
    Table,
    Schedule,
    Release,
    Pool,
    Wal,
    Grpc,
}

impl Level {
    /// Returns the keys that are allowed. Those of other origins come last.
    fn keys(self) -> &'static [Key] {
        match self {
            Self::Top => &[
                Key::Mode,
                Key::SoldOut,
                Key::Limits,
                Key::Guarantees,
                Key::Schedule,
                Key::Items,
                Key::Tables,
                Key::Catalog,
                Key::Pool,
                Key::WorkingDir,
                Key::Wal,
                Key::Grpc,
            ],
            Self::Items(_) | Self::Limits | Self::Guarantees | Self::Of | Self::Schedule | Self::Tables => {
                &[]
            }
            Self::Release => &[Key::Item, Key::Units, Key::From, Key::Every, Key::Times, Key::Unsold],
            Self::Limit => &[Key::Draws, Key::Wins, Key::Per, Key::Of],
            Self::Guarantee => &[Key::After, Key::Of, Key::Scope, Key::SoftFrom, Key::SoftStep],
            Self::Table => &[Key::Name, Key::Items],
            Self::Item(Origin::Tidemark) => &[Key::Id, Key::Weight, Key::Quantity, Key::Table],
            Self::Item(Origin::Original) => &[Key::ItemId, Key::Quantity, Key::Probability],
            Self::SoldOut => &[Key::Fallback],
            Self::Pool => &[Key::Catalog],
            Self::Wal => &[Key::MaxFileSize, Key::MaxRequestBufferSize, Key::Formatter, Key::FlushAfterDraws],
            Self::Grpc => &[Key::Enabled, Key::ListenAddress],
        }
    }

    /// Returns whether it is a list, whose elements have no keys.
    pub(super) fn is_list(self) -> bool {
        matches!(
            self,
            Self::Items(_) | Self::Limits | Self::Guarantees | Self::Of | Self::Schedule | Self::Tables
        )
    }

    /// Returns the key with this name, if it is allowed.
    pub(super) fn key(self, name: &str) -> Option<Key> {
        self.keys().iter().copied().find(|key| key.name() == name)
    }

    /// Returns the advice for an unknown name.
    pub(super) fn advice(self, name: &str) -> Box<str> {
        let own = |key: &&Key| self != Self::Top || key.origin() == Origin::Tidemark;
        let names = self.keys().iter().map(|key| key.name());
        advice(name, names, &self.keys().iter().filter(own).map(|key| key.name()).collect::<Vec<_>>())
    }
}

/// Returns the advice for an unknown word: the most similar candidate, or all possible words.
pub(super) fn advice<'n>(
    word: &str,
    candidates: impl IntoIterator<Item = &'n str> + Clone,
    possible: &[&str],
) -> Box<str> {
    match nearest(word, candidates) {
        Some(name) => format!("did you mean {name:?}?").into(),
        None => format!("possible is {}", enumerated(possible)).into(),
    }
}

/// "a", "b" or "c".
fn enumerated(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_answered_with_a_known_one() {
        assert_eq!(&*Level::Top.advice("item"), "did you mean \"items\"?");
        assert_eq!(&*Level::Item(Origin::Tidemark).advice("name"), "did you mean \"id\"?");
        assert_eq!(
            &*Level::Top.advice("xyz"),
            "possible is \"mode\", \"sold_out\", \"limits\", \"guarantees\", \"schedule\", \"items\" or \"tables\""
        );
        assert_eq!(&*Level::SoldOut.advice("xyz"), "possible is \"fallback\"");
    }
}
