use super::*;
use proptest::prelude::*;

const fn at(longitude: f64, latitude: f64) -> Point {
    Point { longitude, latitude }
}

#[test]
fn points_have_the_scores_and_the_hashes_of_redis() {
    for (point, score, geohash) in [
        (at(13.361_389, 38.115_556), 3_479_099_956_230_698.0, "sqc8b49rny0"),
        (at(15.087_269, 37.502_669), 3_479_447_370_796_909.0, "sqdtr74hyu0"),
        (at(0.0, 0.0), 3_377_699_720_527_872.0, "s0000000000"),
        (at(-180.0, -85.051_128_78), 0.0, "00bh0hbj200"),
        // Both beyond the last part: Redis's score has more than 52 bits here.
        (at(180.0, 85.051_128_78), 13_510_798_882_111_488.0, "bp05b5048p0"),
    ] {
        assert_eq!(point.score().to_bits(), f64::to_bits(score), "{point:?}");
        assert_eq!(&Point::of_score(score).geohash(), geohash.as_bytes(), "{point:?}");
    }
}

#[test]
fn any_score_stands_for_a_point_as_in_redis() {
    let (south_west, north_east) =
        (at(-179.999_997_317_790_98, -85.051_127_512_639_42), at(180.0, 85.051_128_78));
    for (score, point) in [
        (-5.0, north_east),
        (1e300, south_west),
        (f64::INFINITY, south_west),
        (f64::NEG_INFINITY, Point::of_score(-1e300)),
    ] {
        let found = Point::of_score(score);
        assert!((found.longitude - point.longitude).abs() < 1e-9, "{score}: {found:?}");
        assert!((found.latitude - point.latitude).abs() < 1e-9, "{score}: {found:?}");
    }
}

fn some_point() -> impl Strategy<Value = Point> {
    (-180.0..180.0_f64, -85.0..85.0_f64).prop_map(|(longitude, latitude)| at(longitude, latitude))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_score_is_near_its_point(point in some_point()) {
        let found = Point::of_score(point.score());
        prop_assert!(point.distance_m(found) < 1.0);
        prop_assert_eq!(found.score().to_bits(), point.score().to_bits());
    }

    #[test]
    fn bits_are_interleaved_and_separated(row: u32, column: u32) {
        prop_assert_eq!(separate(interleave(row, column)), (row, column));
    }

    /// Where Redis's grid is exact: nearer to the poles, or for areas of a continent, Redis misses some.
    #[test]
    fn the_cells_of_an_area_have_its_points(
        longitude in -60.0..60.0_f64,
        latitude in -60.0..60.0_f64,
        radius in 1.0..900_000.0_f64,
        is_box: bool,
        places in proptest::collection::vec((-1.2..1.2_f64, -1.2..1.2_f64), 50),
    ) {
        let center = at(longitude, latitude);
        let shape =
            if is_box { Shape::Box { width: radius, height: radius / 2.0 } } else { Shape::Circle { radius } };
        let area = Area { center, shape, unit_m: 1.0 };
        let cells = area.cells();
        prop_assert!(cells.len() <= 9);
        let reach = degrees(radius / EARTH_RADIUS_M);
        for (east, north) in places {
            let aside = east * reach / libm::cos(radians(latitude));
            let point = at(longitude + aside, latitude + north * reach);
            if area.distance_m(point).is_some() {
                let score = point.score();
                let is_covered = cells.iter().any(|cell| {
                    let (first, end) = cell.scores();
                    (first..end).contains(&score)
                });
                prop_assert!(is_covered, "{point:?} of {area:?}");
            }
        }
    }

    #[test]
    fn any_area_has_cells(
        longitude in -180.0..=180.0_f64,
        latitude in -85.051_128_78..=85.051_128_78_f64,
        sizes in (any::<f64>(), any::<f64>()),
        is_box: bool,
    ) {
        let (width, height) = (sizes.0.abs(), sizes.1.abs());
        let shape = if is_box { Shape::Box { width, height } } else { Shape::Circle { radius: width } };
        let area = Area { center: at(longitude, latitude), shape, unit_m: 1609.34 };
        let cells = area.cells();
        prop_assert!((1..=9).contains(&cells.len()));
        prop_assert!((1..cells.len()).all(|index| !cells[..index].contains(&cells[index])));
    }
}
