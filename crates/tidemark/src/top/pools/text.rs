//! Pools as lines for people, in 80 columns.

use super::reading::{Item, Pool, Reading};
use crate::counted::plural;
use crate::name::{clipped, printable};
use crate::top::line::{Line, Tone, grouped, percent, plain, title};

/// Columns of a bar.
const BAR: usize = 10;
/// Columns of a pool's key, and of an item's id.
const KEY: usize = 19;
const ID: usize = 15;

/// Returns a reading, with at most `items` items of each pool.
pub(super) fn lines(reading: &Reading, items: usize) -> Vec<Line> {
    let rate = reading.rate.map_or_else(String::new, |rate| format!(", {rate:.1} a second"));
    let more = if reading.is_all { "" } else { " (there are more)" };
    let mut lines = vec![plain(format!(
        "{} {}{more}; {} {}{rate}; {} {} open",
        grouped(reading.count as u64),
        plural(reading.count as u64, "pool"),
        grouped(reading.draws),
        plural(reading.draws, "draw"),
        grouped(reading.reservations),
        plural(reading.reservations, "reservation"),
    ))];
    if !reading.pools.is_empty() {
        lines.push(title(format!(
            "{:>10} {:>14} {:>9} {:>6} {:>7} {:>8}  POOL",
            "DRAWS/S", "DRAWS", "RESERVED", "EPOCH", "ITEMS", "SOLD OUT"
        )));
    }
    reading.pools.iter().for_each(|pool| lines.extend(of_pool(pool, items)));
    lines
}

fn of_pool(pool: &Pool, items: usize) -> Vec<Line> {
    let summary = &pool.summary;
    let rate = summary.rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
    let mut lines = vec![plain(format!(
        "{rate:>10} {:>14} {:>9} {:>6} {:>7} {:>8}  {}",
        grouped(summary.draws),
        grouped(summary.reservations),
        summary.epoch,
        grouped(summary.items),
        pool.sold_out(),
        clipped(&printable(&summary.key), KEY),
    ))];
    let shown = pool.most_informative().into_iter().take(items);
    lines.extend(shown.map(|item| plain(of_item(pool, item))));
    let verdict = &pool.verdict;
    if verdict.compared + verdict.left_out > 0 {
        let left_out = match verdict.left_out {
            0 => String::new(),
            draws => format!("; {} left out (odds changed)", grouped(draws)),
        };
        let tone = if verdict.is_alarming() { Tone::Alert } else { Tone::Plain };
        lines.push(Line::new(
            tone,
            format!(
                "  {} {} seen: {}{left_out}",
                grouped(verdict.compared),
                plural(verdict.compared, "draw"),
                verdict.word()
            ),
        ));
    }
    lines
}

/// Describes an item: what is left, what was drawn, its share of all draws, and the odds of the
/// next draw.
fn of_item(pool: &Pool, item: &Item) -> String {
    let left = match item.left {
        None => "unlimited".to_owned(),
        Some(0) => "SOLD OUT".to_owned(),
        Some(left) => format!("{} left", grouped(left)),
    };
    format!(
        "  {} {left:>13} {:>9} drawn {:>7} odds {:>7}  {}",
        bar(item.fullness()),
        grouped(item.drawn),
        percent(pool.share(item)),
        percent(item.odds),
        clipped(&printable(&item.id), ID),
    )
}

fn bar(fullness: Option<f64>) -> String {
    let Some(fullness) = fullness else { return " ".repeat(BAR) };
    // Any remaining stock, however little, gets a mark.
    let marks = (fullness * BAR as f64).ceil() as usize;
    format!("{}{}", "#".repeat(marks.min(BAR)), ".".repeat(BAR.saturating_sub(marks)))
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::super::test_pool::pool;
    use super::super::verdict::Verdict;
    use super::{bar, lines};
    use crate::top::line::Tone;

    #[test]
    fn a_reading_is_a_page() {
        let items = [
            ("mug", None, 1_000, 0.6),
            ("car", Some(0), 3, 0.0),
            ("vouch\u{1b}[2J", Some(2_500), 7_500, 0.4),
        ];
        let mut pool = pool(&items, 0.0, 8_503);
        pool.summary.key = b"summer\n".to_vec();
        pool.verdict = Verdict { compared: 900, left_out: 17, deviation: Some(0.3) };
        let mut reading = Reading {
            count: 1,
            is_all: true,
            draws: 8_503,
            rate: Some(12.5),
            reservations: 3,
            pools: vec![pool],
        };
        let page: Vec<String> = lines(&reading, 3).into_iter().map(|line| line.text).collect();
        assert_eq!(
            page,
            [
                "1 pool; 8,503 draws, 12.5 a second; 3 reservations open",
                "   DRAWS/S          DRAWS  RESERVED  EPOCH   ITEMS SOLD OUT  POOL",
                "      12.5          8,503         3      1       3        1  summer\\n",
                "  ###.......    2,500 left     7,500 drawn  88.2 % odds  40.0 %  vouch\\u{1b}[2J",
                "  ..........      SOLD OUT         3 drawn   0.0 % odds   0.0 %  car",
                "                 unlimited     1,000 drawn  11.8 % odds  60.0 %  mug",
                "  900 draws seen: as the odds say, within chance; 17 left out (odds changed)",
            ]
        );
        reading.pools[0].verdict.deviation = Some(9.0);
        let last = lines(&reading, 0).pop().expect("a line");
        assert_eq!(last.tone, Tone::Alert);
        assert!(last.text.contains("beyond chance"), "{}", last.text);
    }

    #[test]
    fn a_bar_is_empty_only_where_nothing_is_left() {
        assert_eq!(bar(Some(0.0)), "..........");
        assert_eq!(bar(Some(0.001)), "#.........");
        assert_eq!(bar(Some(0.5)), "#####.....");
        assert_eq!(bar(Some(1.0)), "##########");
        assert_eq!(bar(None), "          ");
    }
}
