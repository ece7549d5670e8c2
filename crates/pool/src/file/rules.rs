//! Rules in a catalogue file: limits and guarantees.

use super::decimal::{Decimal, NumberError};
use super::error::{Fault, Problem};
use super::key::Key;
use super::place::ParserPosition;
use crate::catalogue::rules::{Guarantee, Limit, RuleError, RuleKind, Rules, Scope, Soft};

/// Rules read so far, each with its place.
#[derive(Debug, Default)]
pub(super) struct FoundRules {
    limits: Vec<Limit>,
    guarantees: Vec<Guarantee>,
    places: Vec<(RuleKind, ParserPosition)>,
}

/// The rule that is being read.
#[derive(Debug, Default)]
pub(super) struct PartOfRule {
    pub(super) draws: Option<u64>,
    pub(super) wins: Option<u64>,
    pub(super) per_ms: Option<u64>,
    pub(super) of: Option<Vec<Box<str>>>,
    pub(super) after: Option<u64>,
    pub(super) scope: Scope,
    pub(super) soft_from: Option<u64>,
    pub(super) soft_step: Option<u64>,
}

impl PartOfRule {
    /// Returns the field of a key with a number.
    pub(super) fn number(&mut self, key: Key) -> &mut Option<u64> {
        match key {
            Key::Draws => &mut self.draws,
            Key::Wins => &mut self.wins,
            Key::Per => &mut self.per_ms,
            Key::SoftFrom => &mut self.soft_from,
            Key::SoftStep => &mut self.soft_step,
            other => {
                debug_assert_eq!(other, Key::After, "the others are no numbers of rules");
                &mut self.after
            }
        }
    }
}

impl FoundRules {
    pub(super) fn end_limit(&mut self, part: PartOfRule, place: ParserPosition) -> Result<(), Problem> {
        let PartOfRule { draws, wins, per_ms, of, .. } = part;
        let limit = match (draws, wins, of) {
            (Some(max), None, None) => Limit { max, per_ms, wins_of: None },
            (None, Some(max), Some(of)) => Limit { max, per_ms, wins_of: Some(of) },
            (Some(_), ..) => return Err(Problem::DrawsOfItems),
            (None, Some(_), None) => return Err(missing(Key::Of, "name the items whose wins are counted")),
            (None, None, Some(_)) => return Err(missing(Key::Wins, "say how often a user may win these")),
            (None, None, None) => {
                return Err(missing(
                    Key::Draws,
                    "say how often a user may draw, or write \"wins\" and \"of\"",
                ));
            }
        };
        self.limits.push(limit);
        self.places.push((RuleKind::Limit, place));
        Ok(())
    }

    pub(super) fn end_guarantee(&mut self, part: PartOfRule, place: ParserPosition) -> Result<(), Problem> {
        let PartOfRule { after, of, scope, soft_from, soft_step, .. } = part;
        let after =
            after.ok_or_else(|| missing(Key::After, "say after how many draws without any of these"))?;
        let of = of.ok_or_else(|| missing(Key::Of, "name the items of which one is guaranteed"))?;
        let soft = match (soft_from, soft_step) {
            (Some(from), Some(step)) => Some(Soft { from, step }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(missing(Key::SoftFrom, "say from which draw on the odds grow"));
            }
            (Some(_), None) => {
                return Err(missing(
                    Key::SoftStep,
                    "say by how much the weights' factor grows with each draw",
                ));
            }
        };
        self.guarantees.push(Guarantee { after, of, scope, soft });
        self.places.push((RuleKind::Guarantee, place));
        Ok(())
    }

    /// Returns the rules, and their places.
    pub(super) fn rules(self) -> Result<(Rules, RulePlaces), Fault> {
        let places = RulePlaces(self.places);
        match Rules::new(self.limits, self.guarantees) {
            Ok(rules) => Ok((rules, places)),
            Err(error) => Err(places.fault(error)),
        }
    }
}

pub(super) struct RulePlaces(Vec<(RuleKind, ParserPosition)>);

impl RulePlaces {
    /// Adds the place of a rule to its error.
    pub(super) fn fault(&self, error: RuleError) -> Fault {
        let place = match &error {
            RuleError::TooMany { .. } => None,
            RuleError::OutOfRange { what, number, .. }
            | RuleError::Twice { what, number }
            | RuleError::UnknownItem { what, number, .. } => {
                let mut of_kind = self.0.iter().filter(|(kind, _)| kind == what);
                of_kind.nth(number - 1).map(|(_, place)| *place)
            }
        };
        Fault { place, ..Fault::nowhere(Problem::Catalogue(error.into())) }
    }
}

/// Parses an integer.
pub(super) fn whole(text: &str) -> Result<u64, NumberError> {
    let number = Decimal::parse(text)?;
    if number.digits_behind_point() > 0 {
        return Err(NumberError::NotWhole);
    }
    number.shifted(0).ok_or(NumberError::TooLarge)
}

fn missing(key: Key, advice: &'static str) -> Problem {
    Problem::MissingKey { key: key.name(), advice }
}
