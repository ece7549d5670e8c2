//! Searches of an area.

use super::geohash::{Area, Point, Shape};
use super::{point, reply_distance, reply_point, unit_m};
use crate::command::parse::{self, is};
use crate::command::sorted_sets::{score, store};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::{Object, SortedSet, TypedValue};
use crate::wire::reply::format_double;
use std::ops::Range;

/// What arguments a command takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    around: Around,
    storing: Storing,
    /// Position of the searched key.
    source: usize,
    /// Position of the options.
    options: usize,
}

/// Where the middle of the area comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Coordinates behind the key.
    Coordinates,
    /// A member behind the key.
    Member,
    /// Options, which also have the shape.
    Options,
}

/// Whether the result is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storing {
    Never,
    /// If an option says so.
    ByOption,
    /// Always: in the first key.
    Always,
}

impl Form {
    const RADIUS: Self =
        Self { around: Around::Coordinates, storing: Storing::ByOption, source: 1, options: 6 };
    const RADIUS_BY_MEMBER: Self =
        Self { around: Around::Member, storing: Storing::ByOption, source: 1, options: 5 };
    const RADIUS_READ: Self = Self { storing: Storing::Never, ..Self::RADIUS };
    const RADIUS_BY_MEMBER_READ: Self = Self { storing: Storing::Never, ..Self::RADIUS_BY_MEMBER };
    const SEARCH: Self = Self { around: Around::Options, storing: Storing::Never, source: 1, options: 2 };
    const SEARCH_STORE: Self =
        Self { around: Around::Options, storing: Storing::Always, source: 2, options: 3 };
}

/// Order of the result by distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

/// Options of a search.
#[derive(Debug, Default)]
struct Search<'a> {
    center: Option<Point>,
    /// Whether the middle was given, also as a member of a set that is absent.
    has_center: bool,
    shape: Option<(Shape, f64)>,
    with_distance: bool,
    with_hash: bool,
    with_point: bool,
    order: Option<Order>,
    /// Most points; 0 for all.
    count: usize,
    /// Whether any points will do, not the nearest.
    any: bool,
    destination: Option<&'a [u8]>,
    /// Whether distances become the scores of the stored set.
    stores_distances: bool,
}

/// Parses a distance that is not negative.
fn length(arg: &[u8], not_a_number: &'static str, negative: &'static str) -> Result<f64, CommandError> {
    let length = score(arg).map_err(|_| CommandError::text(not_a_number))?;
    if length < 0.0 { Err(CommandError::text(negative)) } else { Ok(length) }
}

fn circle(radius: &[u8], unit: &[u8]) -> Result<(Shape, f64), CommandError> {
    let radius = length(radius, "ERR need numeric radius", "ERR radius cannot be negative")?;
    Ok((Shape::Circle { radius }, unit_m(unit)?))
}

fn rectangle(width: &[u8], height: &[u8], unit: &[u8]) -> Result<(Shape, f64), CommandError> {
    let number = |arg: &[u8], text| score(arg).map_err(|_| CommandError::text(text));
    let width = number(width, "ERR need numeric width")?;
    let height = number(height, "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::text("ERR height or width cannot be negative"));
    }
    Ok((Shape::Box { width, height }, unit_m(unit)?))
}

fn point_of_member(set: &SortedSet, member: &[u8]) -> Result<Point, CommandError> {
    set.score(member)
        .map(Point::of_score)
        .ok_or(CommandError::text("ERR could not decode requested zset member"))
}

impl<'a> Search<'a> {
    /// Parses the arguments of a search of a set. As in Redis, the place in a set that is absent is not
    /// checked.
    fn parse(set: Option<&SortedSet>, args: &[&'a [u8]], form: Form) -> Result<Self, CommandError> {
        let mut search = Self::default();
        match (form.around, set) {
            (Around::Coordinates, _) => {
                search.set_center(Some(point(args[2], args[3])?));
                search.shape = Some(circle(args[4], args[5])?);
            }
            (Around::Member, Some(set)) => {
                search.set_center(Some(point_of_member(set, args[2])?));
                search.shape = Some(circle(args[3], args[4])?);
            }
            (Around::Member, None) | (Around::Options, _) => {}
        }
        if form.storing == Storing::Always {
            search.destination = Some(args[1]);
        }
        search.parse_options(set, args.get(form.options..).unwrap_or_default(), form)?;
        search.check(args[0], form)?;
        Ok(search)
    }

    fn set_center(&mut self, center: Option<Point>) {
        (self.center, self.has_center) = (center, true);
    }

    fn parse_options(
        &mut self,
        set: Option<&SortedSet>,
        mut options: &[&'a [u8]],
        form: Form,
    ) -> Result<(), CommandError> {
        let by_options = form.around == Around::Options;
        // Either way to say the middle, or the shape, excludes the other; the same may come twice.
        let (mut from_member, mut from_point, mut by_radius, mut by_box) = (false, false, false, false);
        while let [option, rest @ ..] = options {
            options = match rest {
                _ if is(option, "WITHDIST") => {
                    self.with_distance = true;
                    rest
                }
                _ if is(option, "WITHHASH") => {
                    self.with_hash = true;
                    rest
                }
                _ if is(option, "WITHCOORD") => {
                    self.with_point = true;
                    rest
                }
                _ if is(option, "ANY") => {
                    self.any = true;
                    rest
                }
                _ if is(option, "ASC") => {
                    self.order = Some(Order::Ascending);
                    rest
                }
                _ if is(option, "DESC") => {
                    self.order = Some(Order::Descending);
                    rest
                }
                [count, rest @ ..] if is(option, "COUNT") => {
                    self.count = usize::try_from(parse::integer(count)?)
                        .ok()
                        .filter(|count| *count > 0)
                        .ok_or(CommandError::text("ERR COUNT must be > 0"))?;
                    rest
                }
                [key, rest @ ..]
                    if form.storing == Storing::ByOption
                        && (is(option, "STORE") || is(option, "STOREDIST")) =>
                {
                    self.destination = Some(*key);
                    self.stores_distances = is(option, "STOREDIST");
                    rest
                }
                _ if form.storing == Storing::Always && is(option, "STOREDIST") => {
                    self.stores_distances = true;
                    rest
                }
                [member, rest @ ..] if by_options && !from_point && is(option, "FROMMEMBER") => {
                    self.set_center(set.map(|set| point_of_member(set, member)).transpose()?);
                    from_member = true;
                    rest
                }
                [longitude, latitude, rest @ ..]
                    if by_options && !from_member && is(option, "FROMLONLAT") =>
                {
                    self.set_center(Some(point(longitude, latitude)?));
                    from_point = true;
                    rest
                }
                [radius, unit, rest @ ..] if by_options && !by_box && is(option, "BYRADIUS") => {
                    self.shape = Some(circle(radius, unit)?);
                    by_radius = true;
                    rest
                }
                [width, height, unit, rest @ ..] if by_options && !by_radius && is(option, "BYBOX") => {
                    self.shape = Some(rectangle(width, height, unit)?);
                    by_box = true;
                    rest
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        Ok(())
    }

    /// Refuses options that exclude each other, and those that are missing.
    fn check(&self, name: &[u8], form: Form) -> Result<(), CommandError> {
        let text = |text: String| Err(CommandError::Text(text.into()));
        if self.destination.is_some() && self.fields() > 0 {
            let what = match form.storing {
                Storing::Always => "GEOSEARCHSTORE",
                Storing::Never | Storing::ByOption => "STORE option in GEORADIUS",
            };
            return text(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            ));
        }
        let missing = match form.around {
            Around::Options if !self.has_center => Some("FROMMEMBER or FROMLONLAT"),
            Around::Options if self.shape.is_none() => Some("BYRADIUS and BYBOX"),
            _ => None,
        };
        if let Some(missing) = missing {
            let name = String::from_utf8_lossy(name);
            return text(format!("ERR exactly one of {missing} can be specified for {name}"));
        }
        if self.any && self.count == 0 {
            return Err(CommandError::text("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// Number of fields besides the member.
    fn fields(&self) -> usize {
        [self.with_distance, self.with_hash, self.with_point].into_iter().filter(|has| *has).count()
    }

    /// Returns the searched area: none if the set is absent.
    fn area(&self) -> Option<Area> {
        let (center, (shape, unit_m)) = self.center.zip(self.shape)?;
        Some(Area { center, shape, unit_m })
    }

    /// Returns the points in the area, in order if there is one.
    fn found<'s>(&self, set: &'s SortedSet, area: &Area) -> Vec<Found<'s>> {
        let enough = if self.any { self.count } else { usize::MAX };
        let mut found = Vec::new();
        'search: for ranks in ranks(set, area) {
            for (member, score) in set.range(ranks) {
                let point = Point::of_score(score);
                if let Some(distance_m) = area.distance_m(point) {
                    found.push(Found { member, score, point, distance: distance_m / area.unit_m });
                }
                if found.len() >= enough {
                    break 'search;
                }
            }
        }
        // The nearest ones, unless any will do.
        let nearest = (self.count > 0 && !self.any).then_some(Order::Ascending);
        match self.order.or(nearest) {
            Some(Order::Ascending) => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
            Some(Order::Descending) => found.sort_by(|one, other| other.distance.total_cmp(&one.distance)),
            None => {}
        }
        if self.count > 0 {
            found.truncate(self.count);
        }
        found
    }
}

/// A member in the area.
#[derive(Debug)]
struct Found<'s> {
    member: &'s [u8],
    score: f64,
    point: Point,
    /// From the middle, in the search's unit.
    distance: f64,
}

/// Returns the ranks of the members that may be in an area: those of each of its cells.
fn ranks(set: &SortedSet, area: &Area) -> impl Iterator<Item = Range<usize>> {
    area.cells().into_iter().map(|cell| {
        let (first, end) = cell.scores();
        let below = |bound: f64| set.partition_point(|_, score| score < bound);
        below(first)..below(end)
    })
}

/// Returns how many members a search looks at, to decide whether it is offloaded.
fn effort(object: &Object, args: &[&[u8]], form: Form) -> usize {
    let Some(set) = SortedSet::from_object(object) else { return 1 };
    let area = Search::parse(Some(set), args, form).ok().and_then(|search| search.area());
    area.map_or(1, |area| ranks(set, &area).map(|ranks| ranks.len()).sum())
}

fn search(ctx: &mut Context<'_, '_>, args: &[&[u8]], form: Form) -> Result<(), CommandError> {
    let set = ctx.keys.read::<SortedSet>(args[form.source])?;
    let search = Search::parse(set, args, form)?;
    let found = match (set, search.area()) {
        (Some(set), Some(area)) => search.found(set, &area),
        _ => Vec::new(),
    };
    if let Some(destination) = search.destination {
        let event = if form.around == Around::Options { "geosearchstore" } else { "georadiusstore" };
        let result = Stored::of(found, search.stores_distances);
        return result.store(ctx, destination, event);
    }
    let fields = search.fields();
    ctx.reply.array(found.len());
    for Found { member, score, point, distance } in found {
        if fields > 0 {
            ctx.reply.array(1 + fields);
        }
        ctx.reply.bulk(member);
        if search.with_distance {
            reply_distance(ctx.reply, distance);
        }
        if search.with_hash {
            ctx.reply.integer(score as i64);
        }
        if search.with_point {
            reply_point(ctx.reply, point);
        }
    }
    Ok(())
}

/// A result to be stored, in the order of sorted sets.
struct Stored(Vec<(f64, Vec<u8>)>);

impl Stored {
    fn of(found: Vec<Found<'_>>, stores_distances: bool) -> Self {
        let scored = found.into_iter().map(|found| {
            let score = if stores_distances { found.distance } else { found.score };
            (score, found.member.to_vec())
        });
        let mut members: Vec<(f64, Vec<u8>)> = scored.collect();
        members.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        Self(members)
    }

    /// Replaces a key's value, and logs it: distances depend on the computation of sines.
    fn store(self, ctx: &mut Context<'_, '_>, key: &[u8], event: &'static str) -> Result<(), CommandError> {
        let scores: Vec<String> = self.0.iter().map(|(score, _)| format_double(*score)).collect();
        let words: Vec<&[u8]> = std::iter::once(key)
            .chain(self.0.iter().zip(&scores).flat_map(|((_, member), score)| [score.as_bytes(), member]))
            .collect();
        if !ctx.keys.may_log_instead(words.iter().map(|word| word.len()).sum()) {
            return Err(CommandError::text("ERR the result is too long for a record of the log: use COUNT"));
        }
        let members: Vec<(f64, &[u8])> =
            self.0.iter().map(|(score, member)| (*score, member.as_slice())).collect();
        // What the result replaces may be an expired key, which nothing else would remove from the log.
        let replaces = if members.is_empty() { ctx.keys.exists(key) } else { ctx.keys.holds(key) };
        if replaces {
            ctx.keys.log_instead("del", &[key]);
        }
        if !members.is_empty() {
            ctx.keys.log_instead("zadd", &words);
        }
        store(ctx, key, SortedSet::from_ascending(&members), event);
        Ok(())
    }
}

pub(super) fn georadius(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    search(ctx, args, Form::RADIUS)
}

pub(super) fn georadiusbymember(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    search(ctx, args, Form::RADIUS_BY_MEMBER)
}

pub(super) fn georadius_ro(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    search(ctx, args, Form::RADIUS_READ)
}

pub(super) fn georadiusbymember_ro(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    search(ctx, args, Form::RADIUS_BY_MEMBER_READ)
}

pub(super) fn geosearch(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    search(ctx, args, Form::SEARCH)
}

pub(super) fn geosearchstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    search(ctx, args, Form::SEARCH_STORE)
}

pub(super) fn effort_of_radius(object: &Object, args: &[&[u8]]) -> usize {
    effort(object, args, Form::RADIUS)
}

pub(super) fn effort_of_radius_by_member(object: &Object, args: &[&[u8]]) -> usize {
    effort(object, args, Form::RADIUS_BY_MEMBER)
}

pub(super) fn effort_of_search(object: &Object, args: &[&[u8]]) -> usize {
    effort(object, args, Form::SEARCH)
}

pub(super) fn effort_of_search_store(object: &Object, args: &[&[u8]]) -> usize {
    effort(object, args, Form::SEARCH_STORE)
}
