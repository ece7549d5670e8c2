//! Aggregation against the definitions, computed from an ordered list.

use super::*;
use crate::series::{Direction, Options, Series};
use proptest::prelude::*;

const ALL: [Aggregation; 18] = [
    Aggregation::Avg,
    Aggregation::Sum,
    Aggregation::Min,
    Aggregation::Max,
    Aggregation::Range,
    Aggregation::Count,
    Aggregation::CountNan,
    Aggregation::CountAll,
    Aggregation::First,
    Aggregation::Last,
    Aggregation::StdP,
    Aggregation::StdS,
    Aggregation::VarP,
    Aggregation::VarS,
    Aggregation::Twa,
    Aggregation::Quantile(0.9),
    Aggregation::Increase,
    Aggregation::Rate,
];

fn window(duration: i64, aggregations: &[Aggregation], empty: bool, range: RangeInclusive<i64>) -> Window {
    let buckets = Buckets::new(duration, 0).unwrap();
    Window { buckets, aggregations: aggregations.to_vec(), empty, range, before: None, after: None }
}

fn rows(series: &Series<f64>, window: &Window) -> Vec<(i64, Vec<u64>)> {
    let mut rows = Vec::new();
    let mut windows = Windows::new(window, |start, results: &[f64]| {
        rows.push((start, results.iter().map(|result| result.to_bits()).collect()));
        ControlFlow::Continue(())
    });
    series.read(window.range.clone(), Direction::Forward, &mut windows);
    windows.finish();
    rows
}

fn numbers(series: &Series<f64>, window: &Window) -> Vec<(i64, Vec<f64>)> {
    let of_bits = |(start, bits): (i64, Vec<u64>)| (start, bits.into_iter().map(f64::from_bits).collect());
    rows(series, window).into_iter().map(of_bits).collect()
}

/// Three points on a line.
fn points() -> Series<f64> {
    let mut series = Series::new(Options::default());
    series.extend(&[100, 200, 300], &[1.0, 2.0, 3.0]).unwrap();
    series
}

fn around(series: &Series<f64>, mut window: Window) -> Window {
    window.before = window.range.start().checked_sub(1).and_then(|time| series.at_or_before(time));
    window.after = window.range.end().checked_add(1).and_then(|time| series.at_or_after(time));
    window
}

#[test]
fn the_mean_over_time_is_that_of_redis_time_series() {
    let series = points();
    let twa = |duration, empty, range| {
        let window = around(&series, window(duration, &[Aggregation::Twa], empty, range));
        numbers(&series, &window).into_iter().map(|(start, results)| (start, results[0])).collect::<Vec<_>>()
    };
    assert_eq!(twa(100, false, 0..=i64::MAX), [(100, 1.5), (200, 2.5), (300, 3.0)]);
    assert_eq!(twa(100, false, 150..=250), [(200, 2.25)]);
    assert_eq!(twa(100, false, 110..=190), []);
    assert_eq!(twa(30, false, 0..=1_000), [(90, 1.1), (180, 1.95), (300, 3.0)]);
    assert_eq!(twa(100, false, 201..=300), [(300, 3.0)]);
    assert_eq!(twa(100, false, 200..=300), [(200, 2.5), (300, 3.0)]);
    // Between two points, every bucket has a mean, even without a point in the range.
    assert_eq!(twa(50, true, 110..=190), [(100, 1.3), (150, 1.7)]);
    assert_eq!(twa(50, true, 301..=500), []);
    assert_eq!(twa(50, true, 150..=250), [(150, 1.75), (200, 2.25), (250, 2.5)]);
}

#[test]
fn buckets_without_points_are_filled_by_the_rule_of_each_aggregation() {
    let mut series = Series::new(Options::default());
    series.extend(&[5, 12, 35], &[1.0, 4.0, 10.0]).unwrap();
    let filled = numbers(&series, &window(10, &ALL[..10], true, 0..=100));
    assert_eq!(filled.iter().map(|(start, _)| *start).collect::<Vec<_>>(), [0, 10, 20, 30]);
    let of_gap = &filled[2].1;
    for (index, aggregation) in ALL[..10].iter().enumerate() {
        match aggregation {
            Aggregation::Last => assert_eq!(of_gap[index], 4.0),
            Aggregation::Sum | Aggregation::Count | Aggregation::CountNan | Aggregation::CountAll => {
                assert_eq!(of_gap[index], 0.0, "{aggregation:?}");
            }
            _ => assert!(of_gap[index].is_nan(), "{aggregation:?}"),
        }
    }
}

#[test]
fn nan_is_counted_and_left_out() {
    let mut series = Series::new(Options::default());
    series.extend(&[1, 2, 3, 11, 21], &[f64::NAN, 2.0, 4.0, f64::NAN, 7.0]).unwrap();
    let aggregations = [Aggregation::Avg, Aggregation::Count, Aggregation::CountNan, Aggregation::CountAll];
    let rows = numbers(&series, &window(10, &aggregations, false, 0..=100));
    assert_eq!(rows[0], (0, vec![3.0, 2.0, 1.0, 3.0]));
    assert!(rows[1].1[0].is_nan());
    assert_eq!(rows[1].1[1..], [0.0, 1.0, 1.0]);
    assert_eq!(rows[2], (20, vec![7.0, 1.0, 0.0, 1.0]));
}

#[test]
fn results_at_the_ends_of_the_range_are_no_nan() {
    let mut series = Series::new(Options::default());
    series.extend(&[1, 2, 11, 12], &[1.7e308, 1.7e308, 1.5e308, -1.5e308]).unwrap();
    let aggregations = [Aggregation::Avg, Aggregation::Sum, Aggregation::VarP, Aggregation::StdP];
    let rows = numbers(&series, &window(10, &aggregations, false, 0..=100));
    assert_eq!(rows[0].1, [1.7e308, f64::INFINITY, 0.0, 0.0]);
    assert_eq!(rows[1].1, [0.0, 0.0, f64::INFINITY, f64::INFINITY]);
}

#[test]
fn a_counter_that_restarts_goes_on_from_zero() {
    let mut series = Series::new(Options::default());
    series.extend(&[0, 10, 20, 30], &[5.0, 8.0, 2.0, 4.0]).unwrap();
    let rows = numbers(&series, &window(20, &[Aggregation::Increase, Aggregation::Rate], false, 0..=100));
    assert_eq!(rows, [(0, vec![3.0, 0.15]), (20, vec![4.0, 0.2])]);
}

#[test]
fn the_bucket_of_a_time_begins_at_or_before_it() {
    let buckets = Buckets::new(10, 3).unwrap();
    assert_eq!([-8, -7, 2, 3, 12, 13].map(|time| buckets.start_of(time)), [-17, -7, -7, 3, 3, 13]);
    assert_eq!(buckets.start_of(i64::MIN), i64::MIN);
    assert_eq!(Buckets::new(10, i64::MAX).unwrap().start_of(i64::MIN), i64::MIN);
    assert_eq!(Buckets::new(i64::MAX, 0).unwrap().start_of(i64::MAX), i64::MAX);
    assert!(Buckets::new(0, 0).is_none());
}

/// Results by the definitions, for comparison up to rounding.
fn expected(aggregation: Aggregation, values: &[f64], before: Option<f64>, duration: f64) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sorted = {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let steps = || {
        let mut before = before;
        values.iter().fold(0.0, |sum, value| {
            let step = before.map_or(0.0, |before| if *value < before { *value } else { value - before });
            before = Some(*value);
            sum + step
        })
    };
    match aggregation {
        Aggregation::Avg => mean,
        Aggregation::Sum => values.iter().sum(),
        Aggregation::Min => sorted[0],
        Aggregation::Max => sorted[sorted.len() - 1],
        Aggregation::Range => sorted[sorted.len() - 1] - sorted[0],
        Aggregation::Count | Aggregation::CountAll => count,
        Aggregation::CountNan => 0.0,
        Aggregation::First => values[0],
        Aggregation::Last => values[values.len() - 1],
        Aggregation::VarP => squares / count,
        Aggregation::VarS => {
            if count == 1.0 {
                0.0
            } else {
                squares / (count - 1.0)
            }
        }
        Aggregation::StdP => (squares / count).sqrt(),
        Aggregation::StdS => {
            if count == 1.0 {
                0.0
            } else {
                (squares / (count - 1.0)).sqrt()
            }
        }
        Aggregation::Quantile(share) => {
            let rank = share * (count - 1.0);
            let upper = sorted[(rank.ceil() as usize).min(sorted.len() - 1)];
            sorted[rank as usize] + (upper - sorted[rank as usize]) * rank.fract()
        }
        Aggregation::Increase => steps(),
        Aggregation::Rate => steps() / duration,
        Aggregation::Twa => unreachable!("tested by examples"),
    }
}

fn some_points() -> impl Strategy<Value = Vec<(i64, f64)>> {
    let value = (-5_000_i64..5_000).prop_map(|digits| digits as f64 / 10.0);
    proptest::collection::vec((1_i64..20, value), 1..4_000).prop_map(|steps| {
        let mut time = 0;
        let next = |(step, value): (i64, f64)| {
            time += step;
            (time, value)
        };
        steps.into_iter().map(next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn results_are_those_of_the_definitions(points in some_points(), duration in 1_i64..10_000) {
        let mut series = Series::new(Options::default());
        for (time, value) in &points {
            series.append(*time, *value).unwrap();
        }
        series.seal();
        let aggregations: Vec<_> = ALL.into_iter().filter(|each| *each != Aggregation::Twa).collect();
        let rows = numbers(&series, &window(duration, &aggregations, false, 0..=i64::MAX));
        let mut from = 0;
        for (start, results) in rows {
            let count = points[from..].iter().take_while(|(time, _)| *time < start + duration).count();
            let values: Vec<f64> = points[from..from + count].iter().map(|(_, value)| *value).collect();
            let before = from.checked_sub(1).map(|before| points[before].1);
            for (aggregation, result) in aggregations.iter().zip(results) {
                let expected = expected(*aggregation, &values, before, duration as f64);
                let close = (result - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                prop_assert!(close, "{aggregation:?} of {values:?}: {result}, not {expected}");
            }
            from += count;
        }
        prop_assert_eq!(from, points.len());
    }

    #[test]
    fn results_do_not_depend_on_how_the_points_lie(
        points in some_points(),
        order in any::<u64>(),
        duration in 1_i64..10_000,
        from in 0_i64..10_000,
    ) {
        let mut in_order = Series::new(Options::default());
        for (time, value) in &points {
            in_order.append(*time, *value).unwrap();
        }
        // Every so many points come later, and pieces are sealed in between.
        let every = 2 + (order % 97) as usize;
        let mut shuffled = Series::new(Options::default());
        for (index, (time, value)) in points.iter().enumerate().filter(|(index, _)| index % every != 0) {
            shuffled.append(*time, *value).unwrap();
            if index % 1_111 == 0 {
                shuffled.seal_all();
            }
        }
        for (time, value) in points.iter().step_by(every) {
            shuffled.append(*time, *value).unwrap();
        }
        for empty in [false, true] {
            let window = around(&in_order, window(duration, &ALL, empty, from..=from + 20_000));
            let expected = rows(&in_order, &window);
            prop_assert_eq!(&rows(&shuffled, &window), &expected);
            let mut sealed = shuffled.clone();
            sealed.seal_all();
            prop_assert_eq!(&rows(&sealed, &window), &expected);
        }
    }
}
