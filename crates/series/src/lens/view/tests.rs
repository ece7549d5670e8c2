use super::*;
use crate::lens::transform::{Difference, Gap};
use crate::{Aggregation, Expression, Options, aggregate};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Points = Vec<(i64, f64)>;

fn read<P: super::Points>(view: &View<P>, range: RangeInclusive<i64>, direction: Direction) -> Points {
    let mut points = Vec::new();
    view.read(range, direction, &mut |times: &[i64], values: &[f64]| {
        assert!(!times.is_empty(), "a run has points");
        let run = times.iter().copied().zip(values.iter().copied());
        match direction {
            Direction::Forward => points.extend(run),
            Direction::Backward => points.extend(run.rev()),
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    points
}

/// What a transform makes of all points of a series, without regard to speed.
fn transformed(points: &Points, transform: &Transform<Points>) -> Points {
    match transform {
        Transform::Map(expression) => {
            points.iter().map(|(time, value)| (*time, expression.of(*value, 0.0))).collect()
        }
        Transform::Join { expression, other, age } => {
            let of_point = |(time, value): &(i64, f64)| {
                let newest = other[..other.partition_point(|(other, _)| other <= time)].last()?;
                (time - newest.0 <= *age).then(|| (*time, expression.of(*value, newest.1)))
            };
            points.iter().filter_map(of_point).collect()
        }
        Transform::Difference(difference) => {
            let of_pair = |pair: &[(i64, f64)]| {
                let ((time_before, before), (time, value)) = (pair[0], pair[1]);
                let increase = if value < before { value } else { value - before };
                let result = match difference {
                    Difference::Delta => value - before,
                    Difference::Increase => increase,
                    Difference::Rate { per } => increase / ((time - time_before) as f64 / per),
                    Difference::Return => value / before - 1.0,
                    Difference::LogReturn => libm::log(value / before),
                };
                (time, result)
            };
            points.windows(2).map(of_pair).collect()
        }
        Transform::Moving { aggregation, span } => {
            let of_point = |index: usize| {
                let time = points[index].0;
                let is_in = |place: usize| match span {
                    Span::Points(count) => index - place < *count,
                    Span::Time(duration) => time - points[place].0 < *duration,
                };
                let values: Vec<f64> = (0..=index)
                    .rev()
                    .take_while(|place| is_in(*place))
                    .map(|place| points[place].1)
                    .collect();
                let values: Vec<f64> = values.into_iter().rev().collect();
                (time, aggregate(*aggregation, &values))
            };
            (0..points.len()).map(of_point).collect()
        }
        Transform::Smooth { alpha } => {
            let weights: Vec<f64> = std::iter::successors(Some(1.0), |weight| Some(weight * (1.0 - alpha)))
                .take_while(|weight| *weight > 1e-18)
                .collect();
            let of_point = |index: usize| {
                let recent = (0..=index).rev().map(|place| points[place].1).zip(&weights);
                let (sum, total) = recent
                    .fold((0.0, 0.0), |(sum, total), (value, weight)| (sum + value * weight, total + weight));
                (points[index].0, sum / total)
            };
            (0..points.len()).map(of_point).collect()
        }
        Transform::Resample { step, gap } => {
            let mut result = Vec::new();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { return result };
            for time in (first.0..=last.0).filter(|time| time.rem_euclid(*step) == 0) {
                result.push((time, at(points, time, *gap)));
            }
            result
        }
        Transform::Fill { step, gap } => {
            let mut result = Vec::new();
            for (index, point) in points.iter().enumerate() {
                result.push(*point);
                let Some(next) = points.get(index + 1) else { break };
                let steps = (1..).map(|count| point.0 + count * step).take_while(|time| *time < next.0);
                result.extend(steps.map(|time| (time, at(points, time, *gap))));
            }
            result
        }
        Transform::Shift(distance) => points.iter().map(|(time, value)| (time + distance, *value)).collect(),
    }
}

/// The value at a time between the first point and the last.
fn at(points: &Points, time: i64, gap: Gap) -> f64 {
    let index = points.partition_point(|(before, _)| *before <= time);
    let before = points[index - 1];
    if before.0 == time {
        return before.1;
    }
    let after = points[index];
    match gap {
        Gap::Previous => before.1,
        Gap::Constant(value) => value,
        Gap::Linear => {
            before.1 + (after.1 - before.1) * ((time - before.0) as f64 / (after.0 - before.0) as f64)
        }
    }
}

fn points() -> impl Strategy<Value = Points> {
    let few = proptest::collection::btree_map(-300_i64..300, -50_i32..50, 0..60);
    let many = proptest::collection::btree_map(-4_000_i64..4_000, -50_i32..50, 1_500..2_600);
    let points =
        |map: BTreeMap<i64, i32>| map.into_iter().map(|(time, value)| (time, f64::from(value))).collect();
    prop_oneof![3 => few.prop_map(points), 1 => many.prop_map(points)]
}

fn gap() -> impl Strategy<Value = Gap> {
    prop_oneof![
        Just(Gap::Previous),
        Just(Gap::Linear),
        (-9_i8..9).prop_map(|value| Gap::Constant(value.into()))
    ]
}

fn transform() -> impl Strategy<Value = Transform<Points>> {
    let expression = |text: &str| text.parse::<Expression>().unwrap();
    let span = prop_oneof![(1_usize..40).prop_map(Span::Points), (1_i64..200).prop_map(Span::Time)];
    let aggregation = prop_oneof![
        Just(Aggregation::Avg),
        Just(Aggregation::Sum),
        Just(Aggregation::Max),
        Just(Aggregation::StdP),
        Just(Aggregation::Quantile(0.5)),
    ];
    prop_oneof![
        Just(Transform::Map(expression("(x - 32) * 5 / 9"))),
        Just(Transform::Map(expression("max(3 - x, abs(x))"))),
        (points(), 0_i64..100).prop_map(move |(other, age)| Transform::Join {
            expression: expression("x / y"),
            other,
            age
        }),
        Just(Transform::Difference(Difference::Delta)),
        Just(Transform::Difference(Difference::Rate { per: 1_000.0 })),
        Just(Transform::Difference(Difference::Return)),
        Just(Transform::Difference(Difference::LogReturn)),
        Just(Transform::Difference(Difference::Increase)),
        (aggregation, span).prop_map(|(aggregation, span)| Transform::Moving { aggregation, span }),
        (1_i64..90, gap()).prop_map(|(step, gap)| Transform::Resample { step, gap }),
        (1_i64..90, gap()).prop_map(|(step, gap)| Transform::Fill { step, gap }),
        (-500_i64..500).prop_map(Transform::Shift),
    ]
}

fn series(points: &Points) -> Series<f64> {
    let mut series = Series::new(Options::default());
    for (time, value) in points {
        series.append(*time, *value).unwrap();
    }
    series.seal();
    series
}

fn bits(points: &Points) -> Vec<(i64, u64)> {
    // Which NaN a computation gives is not said.
    let bits = |value: f64| if value.is_nan() { u64::MAX } else { value.to_bits() };
    points.iter().map(|(time, value)| (*time, bits(*value))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_view_is_what_its_transforms_make_of_all_points(
        points in points(),
        transforms in proptest::collection::vec(transform(), 0..5),
        ranges in proptest::collection::vec((-4_500_i64..4_500, 0_i64..900), 1..6),
    ) {
        let expected = transforms.iter().fold(points.clone(), |points, each| transformed(&points, each));
        let source = series(&points);
        let others: Vec<Series<f64>> = transforms
            .iter()
            .map(|each| if let Transform::Join { other, .. } = each { series(other) } else { series(&vec![]) })
            .collect();
        let of_transform = |(transform, other)| match transform {
            &Transform::Join { ref expression, age, .. } => {
                Transform::Join { expression: expression.clone(), other: View::new(other, vec![]), age }
            }
            other => other.alone().unwrap(),
        };
        let view = View::new(&source, transforms.iter().zip(&others).map(of_transform).collect());
        let around = ranges.into_iter().map(|(from, length)| from..=from + length);
        for range in around.chain([i64::MIN..=i64::MAX]) {
            let mut inside: Points =
                expected.iter().filter(|(time, _)| range.contains(time)).copied().collect();
            let snapshot = view.snapshot(range.clone());
            prop_assert_eq!(bits(&read(&view, range.clone(), Direction::Forward)), bits(&inside), "{:?}", range);
            prop_assert_eq!(bits(&read(&snapshot, range.clone(), Direction::Forward)), bits(&inside));
            let newest = view.at_or_before(*range.end()).unwrap().map(|point| point.0);
            let expected_newest = expected.iter().rev().find(|(time, _)| time <= range.end()).map(|point| point.0);
            prop_assert_eq!(newest, expected_newest);
            let oldest = view.at_or_after(*range.start()).unwrap().map(|point| point.0);
            let expected_oldest = expected.iter().find(|(time, _)| time >= range.start()).map(|point| point.0);
            prop_assert_eq!(oldest, expected_oldest);
            for count in [0, 1, inside.len(), inside.len() + 1] {
                let has = inside.len() >= count;
                prop_assert_eq!(view.may_have(range.clone(), count, 1 << 20).unwrap(), has, "{} {:?}", count, range);
                let may = view.may_have(range.clone(), count, 5).unwrap();
                prop_assert!(may || !has, "{} of {:?} are said to be missing", count, range);
            }
            inside.reverse();
            prop_assert_eq!(bits(&read(&view, range.clone(), Direction::Backward)), bits(&inside));
            prop_assert_eq!(bits(&read(&snapshot, range.clone(), Direction::Backward)), bits(&inside));
        }
    }

    #[test]
    fn smoothing_weighs_points_by_their_distance(points in points(), alpha in 0.01_f64..1.0) {
        let source = series(&points);
        let view = View::new(&source, vec![Transform::Smooth { alpha }]);
        let all = read(&view, i64::MIN..=i64::MAX, Direction::Forward);
        for (given, expected) in all.iter().zip(transformed(&points, &Transform::Smooth { alpha })) {
            prop_assert!((given.1 - expected.1).abs() < 1e-9, "{given:?} instead of {expected:?}");
        }
        // To the bit, wherever the range begins.
        for point in all.iter().step_by(97) {
            let found = view.get(point.0).unwrap();
            prop_assert_eq!(found.map(f64::to_bits), Some(point.1.to_bits()));
        }
    }
}

#[test]
fn what_makes_too_many_points_is_refused() {
    let source = series(&vec![(0, 1.0), (1_000_000_000_000, 2.0)]);
    let view = View::new(&source, vec![Transform::Resample { step: 1, gap: Gap::Linear }]);
    let refused =
        view.read(0..=i64::MAX, Direction::Forward, &mut |_: &[i64], _: &[f64]| ControlFlow::Continue(()));
    assert_eq!(refused, Err(ViewError::TooManySteps { most: 1 << 22 }));
    // Steps that are not asked for cost nothing.
    assert_eq!(view.at_or_before(i64::MAX), Ok(Some((1_000_000_000_000, 2.0))));
    assert_eq!(view.at_or_before(999_999_999_999).unwrap().unwrap().0, 999_999_999_999);
    assert_eq!(read(&view, 500_000_000_000..=500_000_000_001, Direction::Backward).len(), 2);

    let dense: Points = (0..20_000).map(|time| (time, 0.0)).collect();
    let source = series(&dense);
    let moving = Transform::Moving { aggregation: Aggregation::Max, span: Span::Time(i64::MAX) };
    let view = View::new(&source, vec![moving]);
    assert_eq!(view.get(16_384), Err(ViewError::SpanTooLong { at: 16_384, most: 16_384 }));
}

#[test]
fn to_tell_whether_there_are_points_only_so_many_are_read_and_made() {
    let dense = series(&(0..20_000).map(|time| (time, 0.0)).collect());
    let none = series(&vec![]);
    let join = |other| Transform::Join { expression: "x + y".parse().unwrap(), other, age: 5 };
    let alone = View::new(&dense, vec![join(View::new(&none, vec![]))]);
    assert_eq!(alone.may_have(0..=i64::MAX, 1, 20_001), Ok(false));
    assert_eq!(alone.may_have(0..=i64::MAX, 1, 10_000), Ok(true), "there might be some behind those");
    assert_eq!(alone.may_have(15_000..=i64::MAX, 1, 10_000), Ok(false));

    let far = series(&vec![(0, 1.0), (1_000_000_000_000, 2.0)]);
    let made = View::new(&far, vec![Transform::Resample { step: 1, gap: Gap::Linear }]);
    assert_eq!(made.may_have(0..=i64::MAX, 1, 10_000), Ok(true));
}

#[test]
fn times_at_the_ends_of_their_range_are_read() {
    let source = series(&vec![(i64::MIN, 1.0), (-1, 2.0), (0, 3.0), (i64::MAX, 4.0)]);
    for transform in [
        Transform::Difference(Difference::Delta),
        Transform::Shift(1),
        Transform::Shift(-1),
        Transform::Shift(i64::MAX),
        Transform::Shift(i64::MIN),
        Transform::Fill { step: i64::MAX, gap: Gap::Linear },
        Transform::Resample { step: i64::MAX, gap: Gap::Previous },
        Transform::Moving { aggregation: Aggregation::Sum, span: Span::Time(i64::MAX) },
    ] {
        let view = View::new(&source, vec![transform.clone()]);
        for range in [i64::MIN..=i64::MAX, i64::MIN..=i64::MIN, i64::MAX..=i64::MAX, -1..=0] {
            let mut forward = read(&view, range.clone(), Direction::Forward);
            forward.reverse();
            assert_eq!(read(&view, range, Direction::Backward), forward, "{transform:?}");
        }
    }
}
