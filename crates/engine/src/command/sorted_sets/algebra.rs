//! Unions, intersections and differences of sorted sets and sets.

use super::range::WITHSCORES;
use super::{reply_members, score, store};
use crate::command::parse::{self, is};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::keyspace::ValueRef;
use crate::value::{Object, Set, SortedSet, Text};
use std::borrow::Cow;
use std::collections::HashMap;

/// An operand. A set counts as a sorted set with all scores 1.
#[derive(Debug, Clone, Copy)]
enum Input<'k> {
    Absent,
    Sorted(&'k SortedSet),
    Plain(&'k Set),
}

impl<'k> Input<'k> {
    fn of(keys: &'k Keys<'_>, key: &[u8]) -> Result<Self, CommandError> {
        match keys.entry(key).map(crate::keyspace::Entry::value) {
            None => Ok(Self::Absent),
            Some(ValueRef::Object(Object::SortedSet(set))) => Ok(Self::Sorted(set)),
            Some(ValueRef::Object(Object::Set(set))) => Ok(Self::Plain(set)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    fn len(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Sorted(set) => set.len(),
            Self::Plain(set) => set.len(),
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::Sorted(set) => set.score(member),
            Self::Plain(set) => set.contains(member).then_some(1.0),
        }
    }

    fn iter(self) -> Box<dyn Iterator<Item = Scored<'k>> + 'k> {
        match self {
            Self::Absent => Box::new(std::iter::empty()),
            Self::Sorted(set) => Box::new(set.iter().map(|(member, score)| (score, Cow::Borrowed(member)))),
            Self::Plain(set) => Box::new(set.iter().map(|member| match member {
                Text::Bytes(bytes) => (1.0, Cow::Borrowed(bytes)),
                Text::Int(_, decimal) => (1.0, Cow::Owned(decimal.as_bytes().to_vec())),
            })),
        }
    }
}

type Scored<'k> = (f64, Cow<'k, [u8]>);

#[derive(Debug, Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// The sum of opposite infinities is zero, as in Redis.
    fn combine(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => zero_if_nan(one + other),
            // Explicit comparisons: the product of zero and infinity is NaN, which must lose
            // against any number.
            Self::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Self::Max => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

fn zero_if_nan(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// The options that a command accepts.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// The command's name, for errors.
    name: &'static str,
    operation: Operation,
    stores: bool,
    counts: bool,
}

/// Operands and options of a command.
struct Query<'k> {
    /// With their weights.
    inputs: Vec<(Input<'k>, f64)>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Most members to count; 0 for all.
    limit: u64,
}

impl<'k> Query<'k> {
    /// Parses `numkeys key [key ...]` and the options. Key types are checked before options.
    fn parse(keys: &'k Keys<'_>, args: &[&[u8]], form: Form) -> Result<Self, CommandError> {
        let (number, rest) = args.split_first().ok_or(CommandError::Syntax)?;
        let number = parse::integer(number)?;
        if number < 1 {
            let text = format!("ERR at least 1 input key is needed for '{}' command", form.name);
            return Err(CommandError::Text(text.into()));
        }
        let number = usize::try_from(number).map_err(|_| CommandError::Syntax)?;
        let (names, options) = rest.split_at_checked(number).ok_or(CommandError::Syntax)?;
        let inputs: Result<Vec<_>, _> = names.iter().map(|key| Ok((Input::of(keys, key)?, 1.0))).collect();
        let mut query = Self { inputs: inputs?, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        query.parse_options(options, form)?;
        Ok(query)
    }

    fn parse_options(&mut self, mut options: &[&[u8]], form: Form) -> Result<(), CommandError> {
        let combines = form.operation != Operation::Diff && !form.counts;
        while let [option, rest @ ..] = options {
            options = match rest {
                _ if combines && is(option, "WEIGHTS") && rest.len() >= self.inputs.len() => {
                    let (weights, rest) = rest.split_at(self.inputs.len());
                    for ((_, weight), arg) in self.inputs.iter_mut().zip(weights) {
                        *weight =
                            score(arg).map_err(|_| CommandError::text("ERR weight value is not a float"))?;
                    }
                    rest
                }
                [how, rest @ ..] if combines && is(option, "AGGREGATE") => {
                    self.aggregate = match () {
                        () if is(how, "SUM") => Aggregate::Sum,
                        () if is(how, "MIN") => Aggregate::Min,
                        () if is(how, "MAX") => Aggregate::Max,
                        () => return Err(CommandError::Syntax),
                    };
                    rest
                }
                _ if !form.stores && !form.counts && is(option, WITHSCORES) => {
                    self.with_scores = true;
                    rest
                }
                [limit, rest @ ..] if form.counts && is(option, "LIMIT") => {
                    self.limit = parse::positive(limit)
                        .map_err(|_| CommandError::text("ERR LIMIT can't be negative"))?;
                    rest
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        Ok(())
    }

    /// Returns the result in the order of sorted sets.
    fn evaluate(mut self, operation: Operation) -> Vec<Scored<'k>> {
        if operation != Operation::Diff {
            // Smallest first: it bounds an intersection, and Redis adds scores in this order.
            self.inputs.sort_by_key(|(input, _)| input.len());
        }
        let mut members: Vec<Scored<'k>> = match operation {
            Operation::Union => self.union(),
            Operation::Inter => self.intersection().collect(),
            Operation::Diff => self.difference(),
        };
        members.sort_unstable_by(|one, other| {
            one.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal).then_with(|| one.1.cmp(&other.1))
        });
        members
    }

    fn union(&self) -> Vec<Scored<'k>> {
        let mut scores: HashMap<Cow<'k, [u8]>, f64, foldhash::quality::RandomState> = HashMap::default();
        for (input, weight) in &self.inputs {
            for (score, member) in input.iter() {
                let score = zero_if_nan(score * weight);
                let combine = |present: &mut f64| *present = self.aggregate.combine(*present, score);
                scores.entry(member).and_modify(combine).or_insert(score);
            }
        }
        // The map's order differs between processes; the caller sorts.
        scores.into_iter().map(|(member, score)| (score, member)).collect()
    }

    fn intersection(&self) -> impl Iterator<Item = Scored<'k>> {
        let (first, others) = match self.inputs.split_first() {
            Some((first, others)) => (*first, others),
            None => ((Input::Absent, 1.0), [].as_slice()),
        };
        first.0.iter().filter_map(move |(score, member)| {
            let mut score = zero_if_nan(score * first.1);
            for (input, weight) in others {
                score = self.aggregate.combine(score, input.score(&member)? * weight);
            }
            Some((score, member))
        })
    }

    fn difference(&self) -> Vec<Scored<'k>> {
        let Some(((first, _), others)) = self.inputs.split_first() else { return Vec::new() };
        let is_new = |member: &[u8]| others.iter().all(|(input, _)| input.score(member).is_none());
        first.iter().filter(|(_, member)| is_new(member)).collect()
    }
}

fn answer(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    name: &'static str,
    operation: Operation,
) -> Result<(), CommandError> {
    let form = Form { name, operation, stores: false, counts: false };
    let query = Query::parse(ctx.keys, &args[1..], form)?;
    let with_scores = query.with_scores;
    let members = query.evaluate(operation);
    reply_members(ctx.reply, members.iter().map(|(score, member)| (&**member, *score)), with_scores);
    Ok(())
}

fn answer_and_store(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    name: &'static str,
    operation: Operation,
) -> Result<(), CommandError> {
    let form = Form { name, operation, stores: true, counts: false };
    let result = {
        let members = Query::parse(ctx.keys, &args[2..], form)?.evaluate(operation);
        let borrowed: Vec<(f64, &[u8])> = members.iter().map(|(score, member)| (*score, &**member)).collect();
        SortedSet::from_ascending(&borrowed)
    };
    store(ctx, args[1], result, name);
    Ok(())
}

pub(super) fn zunion(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, "zunion", Operation::Union)
}

pub(super) fn zunionstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer_and_store(ctx, args, "zunionstore", Operation::Union)
}

pub(super) fn zinter(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, "zinter", Operation::Inter)
}

pub(super) fn zinterstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer_and_store(ctx, args, "zinterstore", Operation::Inter)
}

pub(super) fn zdiff(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, "zdiff", Operation::Diff)
}

pub(super) fn zdiffstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer_and_store(ctx, args, "zdiffstore", Operation::Diff)
}

pub(super) fn zintercard(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let form = Form { name: "zintercard", operation: Operation::Inter, stores: false, counts: true };
    let mut query = Query::parse(ctx.keys, &args[1..], form)?;
    query.inputs.sort_by_key(|(input, _)| input.len());
    let limit = usize::try_from(query.limit).ok().filter(|&limit| limit > 0).unwrap_or(usize::MAX);
    ctx.reply.count(query.intersection().take(limit).count());
    Ok(())
}
