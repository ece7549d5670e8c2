//! The rows of a watched range of series that it names, followed from change to change: of one series, or
//! of several whose values are columns.

use super::clock::Clock;
use super::joined::Join;
use super::range::{Joining, Kept, Range, Shape, Sources};
use crate::persist::record::Cursor;
use crate::value::{TimeSeries, Unit};
use crate::watch::following::{Changes, Following, Outcome, SeriesAt};
use crate::wire::reply::Protocol;
use smallvec::SmallVec;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct FollowedKeys {
    shape: Shape,
    kept: Kept,
}

/// The reads whose rows are followed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Range,
    Join,
}

/// Returns what a read is, whose arguments begin with the command's name, and whether it answers the newest
/// row first; `None` if it is another.
fn kind_of(args: &[&[u8]]) -> Option<(Kind, bool)> {
    let known = [
        ("ts.range", Kind::Range, false),
        ("ts.revrange", Kind::Range, true),
        ("ts.nrange", Kind::Join, false),
        ("ts.nrevrange", Kind::Join, true),
    ];
    let command = args.first()?;
    let found = known.iter().find(|(name, ..)| command.eq_ignore_ascii_case(name.as_bytes()))?;
    Some((found.1, found.2))
}

/// Returns the keys that a read names.
fn keys_of<'s, 'a>(args: &'s [&'a [u8]]) -> Option<&'s [&'a [u8]]> {
    match kind_of(args)?.0 {
        Kind::Range => args.get(1..2),
        Kind::Join => Join::keys(args).ok(),
    }
}

/// Returns the shape of a read of series in the unit of a clock.
fn shape_of(args: &[&[u8]], clock: Clock) -> Option<Shape> {
    let (kind, newest_first) = kind_of(args)?;
    if kind == Kind::Join {
        let join = Join::parse(args, clock).ok()?;
        let columns = join.ranges();
        return Shape::of(join.range, args, newest_first, clock)?.with_columns(columns);
    }
    let mut range = Range::between(args.get(2)?, args.get(3)?, clock).ok()?;
    range.parse_options(args, 4).ok()?;
    Shape::of(range, args, newest_first, clock)
}

/// Returns the clock of a read: in the unit of its series, or of several in milliseconds.
fn clock(args: &[&[u8]], series: &TimeSeries, as_of_us: u64) -> Option<Clock> {
    let unit = match kind_of(args)?.0 {
        Kind::Range => series.definition().unit,
        Kind::Join => Unit::Milliseconds,
    };
    Some(Clock::new(as_of_us, unit))
}

/// Returns the points of the series that a read names, each with what a change has replaced; `None` if a
/// key has no series.
fn sources<'p, 's: 'p>(
    series: &SeriesAt<'s>,
    args: &[&[u8]],
    changes: Option<&'p Changes<'p>>,
) -> Option<Sources<'p>> {
    let (kind, _) = kind_of(args)?;
    let of_key = |key: &&[u8]| Some((series(key)?.points(), changes.and_then(|changes| changes.of(key))));
    let joining = if kind == Kind::Join { Joining::Columns } else { Joining::None };
    let series: Option<SmallVec<_>> = keys_of(args)?.iter().map(of_key).collect();
    Some(Sources { series: series?, joining })
}

impl FollowedKeys {
    /// Begins to follow a read as of a time: `None` if a key has no series, or its options forbid that.
    /// O(points in the range).
    pub(super) fn begin(series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64) -> Option<Self> {
        let first = series(keys_of(args)?.first()?)?;
        let shape = shape_of(args, clock(args, first, as_of_us)?)?;
        let kept = Kept::begin(&shape, &sources(series, args, None)?);
        Some(Self { shape, kept })
    }

    /// Decodes what a snapshot keeps of it, of a read with these arguments; `None` if it is not valid.
    pub(super) fn decode(args: &[&[u8]], bytes: &mut Cursor<'_>) -> Option<Self> {
        let kept = Kept::decode(bytes)?;
        let shape = Shape::decode(args, bytes, |clock| shape_of(args, clock))?;
        bytes.is_empty().then_some(Self { shape, kept })
    }

    /// Returns the points, and the shape at another time.
    fn at<'p, 's: 'p>(&self, series: &SeriesAt<'s>, args: &[&[u8]], as_of_us: u64) -> (Sources<'p>, Shape) {
        let first = keys_of(args).and_then(|keys| series(keys.first()?));
        let shape = first.and_then(|first| shape_of(args, clock(args, first, as_of_us)?));
        let shape = shape.expect("what is followed can be followed at any time");
        let sources = sources(series, args, None).expect("a key whose rows are followed has a series");
        (sources, self.shape.moved(&shape))
    }
}

impl Following for FollowedKeys {
    fn follow(
        &mut self,
        series: &SeriesAt<'_>,
        args: &[&[u8]],
        changes: &Changes<'_>,
        protocol: Protocol,
    ) -> Outcome {
        if !changes.beyond.is_empty() {
            return Outcome::Lost;
        }
        let sources =
            sources(series, args, Some(changes)).expect("a key whose rows are followed has a series");
        self.kept.follow(&self.shape, &sources, protocol).into()
    }

    fn passes(&self, series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64) -> bool {
        let (sources, to) = self.at(series, args, as_of_us);
        sources.series.iter().any(|(points, _)| self.shape.passes(&to, points))
    }

    fn slide(&mut self, series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64, protocol: Protocol) -> Outcome {
        let (sources, to) = self.at(series, args, as_of_us);
        let rows = self.kept.slide(&self.shape, &to, &sources, protocol);
        self.shape = to;
        rows.into()
    }

    fn digest(&self) -> (u64, u128) {
        self.kept.digest()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.shape.heap_bytes()
    }

    /// ```text
    /// what `Kept::encode` writes │ what `Shape::encode` writes
    /// ```
    fn encode(&self, into: &mut Vec<u8>) {
        self.kept.encode(into);
        self.shape.encode(into);
    }
}
