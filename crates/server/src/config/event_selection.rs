//! The keyspace events to publish and their channels, in Redis's letters.

use std::fmt;
use tidemark_engine::event::EventClasses;

/// Letters of the classes, in Redis's order of output. Evictions have an accepted letter
/// without events, as there are none here. Counters and limiters use the letter of module types,
/// which they are in Redis.
const CLASSES: [(char, Choice); 11] = [
    ('g', Choice::of(EventClasses::GENERIC)),
    ('$', Choice::of(EventClasses::STRING)),
    ('l', Choice::of(EventClasses::LIST)),
    ('s', Choice::of(EventClasses::SET)),
    ('h', Choice::of(EventClasses::HASH)),
    ('z', Choice::of(EventClasses::SORTED_SET)),
    ('x', Choice::of(EventClasses::EXPIRED)),
    ('e', Choice::without_events(1)),
    ('t', Choice::of(EventClasses::STREAM)),
    ('d', Choice::of(EventClasses::MODULE)),
    ('n', Choice::of(EventClasses::NEW)),
];

/// Letter for all classes except new and missed keys.
const ALL: char = 'A';
const KEY_MISS: char = 'm';
const KEYSPACE: char = 'K';
const KEYEVENT: char = 'E';

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Choice {
    classes: EventClasses,
    /// Bits of the classes without events.
    others: u8,
}

impl Choice {
    const fn of(classes: EventClasses) -> Choice {
        Choice { classes, others: 0 }
    }

    const fn without_events(others: u8) -> Choice {
        Choice { classes: EventClasses::NONE, others }
    }

    /// Returns the classes of [`ALL`].
    fn all() -> Choice {
        let meant = CLASSES.iter().filter(|(letter, _)| *letter != 'n');
        meant.fold(Choice::default(), |all, (_, choice)| all.with(*choice))
    }

    fn with(self, other: Choice) -> Choice {
        Choice { classes: self.classes.with(other.classes), others: self.others | other.others }
    }

    fn contains(self, other: Choice) -> bool {
        self.classes.contains(other.classes) && self.others & other.others == other.others
    }
}

/// Value of `notify-keyspace-events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventSelection {
    choice: Choice,
    /// Whether channels are named after keys: `__keyspace@0__:key`.
    by_key: bool,
    /// Whether channels are named after events: `__keyevent@0__:event`.
    by_event: bool,
}

impl EventSelection {
    /// Parses letters in any order.
    pub(super) fn parse(text: &str) -> Result<EventSelection, String> {
        let mut selection = EventSelection::default();
        for letter in text.chars() {
            let class = CLASSES.iter().find(|(other, _)| *other == letter);
            let choice = match (letter, class) {
                (KEYSPACE, _) => {
                    selection.by_key = true;
                    continue;
                }
                (KEYEVENT, _) => {
                    selection.by_event = true;
                    continue;
                }
                (ALL, _) => Choice::all(),
                (KEY_MISS, _) => Choice::of(EventClasses::KEY_MISS),
                (_, Some((_, choice))) => *choice,
                (other, None) => {
                    return Err(format!(
                        "must consist of the letters Ag$lshzxeKEtmdn, of which '{}' is none",
                        other.escape_default()
                    ));
                }
            };
            selection.choice = selection.choice.with(choice);
        }
        Ok(selection)
    }

    /// Returns the classes that are published on any channel.
    pub fn classes(self) -> EventClasses {
        if self.by_key || self.by_event { self.choice.classes } else { EventClasses::NONE }
    }

    /// Whether events are published on channels named after keys.
    pub fn by_key(self) -> bool {
        self.by_key
    }

    /// Whether events are published on channels named after events.
    pub fn by_event(self) -> bool {
        self.by_event
    }
}

impl fmt::Display for EventSelection {
    /// Writes the letters as Redis does, but always shows `n`, so that the output can be set again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_all = self.choice.contains(Choice::all());
        if has_all {
            write!(f, "{ALL}")?;
        }
        for (letter, choice) in CLASSES {
            if self.choice.contains(choice) && !(has_all && Choice::all().contains(choice)) {
                write!(f, "{letter}")?;
            }
        }
        let rest = [
            (self.by_key, KEYSPACE),
            (self.by_event, KEYEVENT),
            (self.choice.classes.contains(EventClasses::KEY_MISS), KEY_MISS),
        ];
        rest.iter().filter(|(is_set, _)| *is_set).try_for_each(|(_, letter)| write!(f, "{letter}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn letters_are_shown_in_the_order_of_redis() {
        for (given, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("dtexzhsl$gKE", "AKE"),
            ("mKEg", "gKEm"),
            ("nKE", "nKE"),
            ("AKEm", "AKEm"),
            ("KEn$xx", "$xnKE"),
            ("AnK", "AnK"),
        ] {
            assert_eq!(
                EventSelection::parse(given).map(|it| it.to_string()),
                Ok(shown.to_owned()),
                "{given}"
            );
        }
    }

    #[test]
    fn without_a_form_of_channel_nothing_is_wanted() {
        let classes = |text| EventSelection::parse(text).map(EventSelection::classes);
        assert_eq!(classes("Anm"), Ok(EventClasses::NONE));
        assert_eq!(classes("Km$"), Ok(EventClasses::STRING.with(EventClasses::KEY_MISS)));
        assert!(!classes("KEA").is_ok_and(|all| all.contains(EventClasses::NEW)), "A leaves it out");
    }

    #[test]
    fn another_letter_is_refused_by_name() {
        let error = EventSelection::parse("KEq").expect_err("there is no q");
        assert!(error.contains("Ag$lshzxeKEtmdn") && error.contains("'q'"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_shown_reads_back(text in "[Ag$lshzxeKEtmdn]{0,20}") {
            let selection = EventSelection::parse(&text).expect("these are the letters");
            prop_assert_eq!(EventSelection::parse(&selection.to_string()), Ok(selection));
        }
    }
}
