//! Points on the earth as integers: the bits of latitude and longitude interleaved, so that points near
//! each other often have a prefix in common. 26 bits each, of ranges that Redis chose: a sorted set's
//! scores hold 52 bits exactly.
//!
//! All computations are in the order in which Redis does them, because results are compared for equality.
//! Trigonometry is that of the `libm` crate, not of the machine's library, so that all machines find the same.

/// Bits for each coordinate.
pub(super) const STEPS: u8 = 26;

/// Radius of the earth in metres: the quadratic mean of WGS 84.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half of the equator in Mercator's projection, in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;

/// Lowest and highest value of a coordinate, in degrees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Degrees {
    min: f64,
    max: f64,
}

impl Degrees {
    pub(super) const LONGITUDE: Self = Self { min: -180.0, max: 180.0 };
    /// Where Mercator's projection is a square: the poles have no code.
    pub(super) const LATITUDE: Self = Self { min: -85.051_128_78, max: 85.051_128_78 };
    /// Latitudes of the standard geohash.
    const ALL_LATITUDES: Self = Self { min: -90.0, max: 90.0 };

    pub(super) fn contains(self, degrees: f64) -> bool {
        (self.min..=self.max).contains(&degrees)
    }

    /// Returns the number of the part that has the point, of 2^`steps` equal ones. The upper end is in
    /// one part more, as in Redis.
    fn part(self, degrees: f64, steps: u8) -> u32 {
        let share = (degrees - self.min) / (self.max - self.min);
        (share * parts(steps)) as u32
    }

    /// Returns the lower and upper end of a part.
    fn ends(self, part: u32, steps: u8) -> (f64, f64) {
        let scale = self.max - self.min;
        let end = |part: u32| self.min + (f64::from(part) / parts(steps)) * scale;
        (end(part), end(part.wrapping_add(1)))
    }

    /// Returns the middle of a part, inside the range.
    fn middle(self, part: u32, steps: u8) -> f64 {
        let (low, high) = self.ends(part, steps);
        f64::midpoint(low, high).clamp(self.min, self.max)
    }
}

fn parts(steps: u8) -> f64 {
    (1_u64 << steps) as f64
}

/// A point, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Point {
    /// Returns the score of the point in a sorted set.
    pub(super) fn score(self) -> f64 {
        Cell::of(self, STEPS).bits() as f64
    }

    /// Returns the middle of what a score stands for. Any score stands for something.
    pub(super) fn of_score(score: f64) -> Self {
        let (row, column) = separate(integer(score));
        Self {
            longitude: Degrees::LONGITUDE.middle(column, STEPS),
            latitude: Degrees::LATITUDE.middle(row, STEPS),
        }
    }

    /// Returns the standard geohash, which has other bits: its latitudes reach the poles. The last of
    /// the 11 characters is `0`, because 52 bits do not fill it.
    pub(super) fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let row = Degrees::ALL_LATITUDES.part(self.latitude, STEPS);
        let bits = interleave(row, Degrees::LONGITUDE.part(self.longitude, STEPS));
        let mut text = [ALPHABET[0]; 11];
        for (at, character) in text.iter_mut().take(10).enumerate() {
            *character = ALPHABET[(bits >> (52 - (at + 1) * 5)) as usize & 0x1f];
        }
        text
    }

    /// Returns the distance to another point in metres, along a great circle.
    pub(super) fn distance_m(self, other: Self) -> f64 {
        let half = libm::sin((radians(other.longitude) - radians(self.longitude)) / 2.0);
        if half == 0.0 {
            return self.latitude_distance_m(other);
        }
        let (one, two) = (radians(self.latitude), radians(other.latitude));
        let height = libm::sin((two - one) / 2.0);
        let chord = height * height + libm::cos(one) * libm::cos(two) * half * half;
        2.0 * EARTH_RADIUS_M * libm::asin(libm::sqrt(chord.min(1.0)))
    }

    /// Returns the distance in metres between the latitudes.
    pub(super) fn latitude_distance_m(self, other: Self) -> f64 {
        EARTH_RADIUS_M * (radians(other.latitude) - radians(self.latitude)).abs()
    }
}

fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

/// Returns a score as the integer to which x86-64 converts it, which Redis's users have: any double has
/// one, out of range the lowest.
fn integer(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    let signed = |value: f64| if value < HALF { value as i64 } else { i64::MIN };
    if score < HALF { signed(score).cast_unsigned() } else { signed(score - HALF).cast_unsigned() ^ 1 << 63 }
}

/// Interleaves two numbers: the bits of `row` are the even ones.
fn interleave(row: u32, column: u32) -> u64 {
    spread(row) | spread(column) << 1
}

/// Undoes [`interleave`].
fn separate(bits: u64) -> (u32, u32) {
    (gather(bits), gather(bits >> 1))
}

/// Puts a zero before each bit.
fn spread(number: u32) -> u64 {
    [(16, 0x0000_ffff_0000_ffff), (8, 0x00ff_00ff_00ff_00ff), (4, 0x0f0f_0f0f_0f0f_0f0f)]
        .into_iter()
        .chain([(2, 0x3333_3333_3333_3333), (1, 0x5555_5555_5555_5555)])
        .fold(u64::from(number), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Takes the even bits.
fn gather(bits: u64) -> u32 {
    [(1, 0x3333_3333_3333_3333), (2, 0x0f0f_0f0f_0f0f_0f0f), (4, 0x00ff_00ff_00ff_00ff)]
        .into_iter()
        .chain([(8, 0x0000_ffff_0000_ffff), (16, 0x0000_0000_ffff_ffff)])
        .fold(bits & 0x5555_5555_5555_5555, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

/// A cell of a grid over the earth, with 2^`steps` rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    row: u32,
    column: u32,
    steps: u8,
}

impl Cell {
    fn of(point: Point, steps: u8) -> Self {
        Self {
            row: Degrees::LATITUDE.part(point.latitude, steps),
            column: Degrees::LONGITUDE.part(point.longitude, steps),
            steps,
        }
    }

    fn bits(self) -> u64 {
        interleave(self.row, self.column)
    }

    /// Returns the scores of the points inside: the lowest, and the lowest that is above.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEPS - self.steps);
        ((self.bits() << shift) as f64, ((self.bits() + 1) << shift) as f64)
    }

    /// Returns the neighbour some rows north and columns east. The grid is a torus.
    fn neighbour(self, (north, east): (i32, i32)) -> Self {
        let moved = |part: u32, by: i32| match by {
            0 => part,
            by => part.wrapping_add_signed(by) & ((1_u64 << self.steps) - 1) as u32,
        };
        Self { row: moved(self.row, north), column: moved(self.column, east), steps: self.steps }
    }

    fn bounds(self) -> Bounds {
        let (south, north) = Degrees::LATITUDE.ends(self.row, self.steps);
        let (west, east) = Degrees::LONGITUDE.ends(self.column, self.steps);
        Bounds { west, south, east, north }
    }
}

/// Ends of an area, in degrees.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    west: f64,
    south: f64,
    east: f64,
    north: f64,
}

/// An area around a point, in a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// The area that a command searches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) center: Point,
    pub(super) shape: Shape,
    /// Length of its unit in metres.
    pub(super) unit_m: f64,
}

/// Neighbours of a cell in the order in which they are searched: rows north and columns east.
const NEIGHBOURS: [(i32, i32); 8] = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)];

impl Area {
    /// Returns the distance of a point from the center in metres, if the area contains it.
    pub(super) fn distance_m(&self, point: Point) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius } => {
                Some(self.center.distance_m(point)).filter(|distance| *distance <= radius * self.unit_m)
            }
            Shape::Box { width, height } => {
                let beside = Point { longitude: self.center.longitude, ..point };
                let is_inside = point.latitude_distance_m(self.center) <= height * self.unit_m / 2.0
                    && point.distance_m(beside) <= width * self.unit_m / 2.0;
                is_inside.then(|| self.center.distance_m(point))
            }
        }
    }

    /// Returns the cells that cover the area, each once: at most nine, of which the first has the center.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let bounds = self.bounds();
        let mut cell = Cell::of(self.center, self.steps());
        let ends = |cell: Cell, place| cell.neighbour(place).bounds();
        let is_too_small = ends(cell, (1, 0)).north < bounds.north
            || ends(cell, (-1, 0)).south > bounds.south
            || ends(cell, (0, 1)).east < bounds.east
            || ends(cell, (0, -1)).west > bounds.west;
        if is_too_small && cell.steps > 1 {
            cell = Cell::of(self.center, cell.steps - 1);
        }
        let own = cell.bounds();
        // Whether the area ends inside the middle cell, so that those on this side have nothing of it.
        let is_useless = |(north, east): (i32, i32)| {
            (north < 0 && own.south < bounds.south)
                || (north > 0 && own.north > bounds.north)
                || (east < 0 && own.west < bounds.west)
                || (east > 0 && own.east > bounds.east)
        };
        let mut cells = vec![cell];
        for place in NEIGHBOURS.into_iter().filter(|place| cell.steps < 2 || !is_useless(*place)) {
            let neighbour = cell.neighbour(place);
            // Of a coarse grid, two neighbours can be the same cell.
            if !cells.contains(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells
    }

    /// Returns the fineness of a grid, of which nine cells mostly cover the area.
    fn steps(&self) -> u8 {
        let mut reach_m = self.unit_m
            * match self.shape {
                Shape::Circle { radius } => radius,
                Shape::Box { width, height } => {
                    libm::sqrt((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0))
                }
            };
        if reach_m == 0.0 {
            return STEPS;
        }
        let mut steps = 1_i32;
        while reach_m < MERCATOR_MAX_M {
            reach_m *= 2.0;
            steps += 1;
        }
        steps -= 2;
        // Cells get narrower towards the poles.
        let latitude = self.center.latitude.abs();
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        steps.clamp(1, i32::from(STEPS)) as u8
    }

    fn bounds(&self) -> Bounds {
        let (width, height) = match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let (width_m, height_m) = (self.unit_m * width, self.unit_m * height);
        let Point { longitude, latitude } = self.center;
        let up = degrees(height_m / EARTH_RADIUS_M);
        // The side that is nearer to the pole is where the area spans most degrees.
        let widest = if latitude < 0.0 { latitude - up } else { latitude + up };
        let aside = degrees(width_m / EARTH_RADIUS_M / libm::cos(radians(widest)));
        Bounds {
            west: longitude - aside,
            south: latitude - up,
            east: longitude + aside,
            north: latitude + up,
        }
    }
}

#[cfg(test)]
mod tests;
