//! Counters as lines for people.

use super::reading::{Rates, Reading};
use crate::counted::plural;
use crate::name::printable;
use crate::top::line::{Line, Tone, grouped, percent, plain, seconds, title};

/// Returns a reading, with the rates since the one before.
pub(super) fn lines(reading: &Reading, rates: Option<&Rates>) -> Vec<Line> {
    let (totals, state) = (&reading.totals, &reading.state);
    let mut lines = vec![
        plain(format!(
            "{} {}; {} uncommitted with {} {}, the oldest for {}; {} {} reserved",
            grouped(state.keys),
            plural(state.keys, "counter"),
            grouped(state.uncommitted),
            grouped(state.uncommitted_units),
            plural(state.uncommitted_units, "unit"),
            seconds(state.oldest),
            grouped(state.reserved_units),
            plural(state.reserved_units, "unit"),
        )),
        Line::new(
            if totals.commit_errors == 0 { Tone::Plain } else { Tone::Alert },
            format!(
                "{} {} refused by the log",
                grouped(totals.commit_errors),
                plural(totals.commit_errors, "commit")
            ),
        ),
        title(format!("{:<16} {:>22} {:>18}", "", "SINCE THE START", "PER SECOND")),
    ];
    for (name, total, rate) in [
        ("moves", totals.moves, rates.map(|rates| rates.moves)),
        ("units moved", totals.moved_units, rates.map(|rates| rates.moved_units)),
        ("commits", totals.commits, rates.map(|rates| rates.commits)),
        ("units committed", totals.committed_units, rates.map(|rates| rates.committed_units)),
    ] {
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        lines.push(plain(format!("{name:<16} {:>22} {rate:>18}", grouped(total))));
    }
    for (name, total, now) in [
        ("writes saved", totals.write_reduction(), rates.map(|rates| rates.write_reduction)),
        ("churn", totals.churn(), rates.map(|rates| rates.churn)),
    ] {
        let now = now.map_or_else(|| "-".to_owned(), percent);
        lines.push(plain(format!("{name:<16} {:>22} {now:>18}", percent(total))));
    }
    lines.push(plain(String::new()));
    lines.push(plain(about_top(reading)));
    lines.extend(table(reading));
    lines
}

/// Returns a table of the counters that move most. Columns are as wide as their content.
fn table(reading: &Reading) -> Vec<Line> {
    if reading.keys.is_empty() {
        return Vec::new();
    }
    let titles = ["MOVES", "ERROR", "UNITS", "COMMITTED", "CHURN", "DB"].map(str::to_owned);
    let rows = reading.keys.iter().map(|key| {
        let cells = [
            grouped(key.moves),
            grouped(key.error),
            grouped(key.units),
            grouped(key.committed),
            percent(key.churn),
            key.db.to_string(),
        ];
        (cells, printable(&key.key))
    });
    let rows: Vec<([String; 6], String)> = std::iter::once((titles, "KEY".to_owned())).chain(rows).collect();
    // Initial widths that keep the columns still when a number gains a digit.
    let widths = rows.iter().fold([9, 5, 11, 9, 7, 2], |mut widths, (cells, _)| {
        widths.iter_mut().zip(cells).for_each(|(width, cell)| *width = cell.len().max(*width));
        widths
    });
    let text = |(cells, key): &([String; 6], String)| {
        let cells: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        format!("{}  {key}", cells.join("  "))
    };
    let lines = rows.iter().enumerate();
    lines.map(|(index, row)| if index == 0 { title(text(row)) } else { plain(text(row)) }).collect()
}

fn about_top(reading: &Reading) -> String {
    let window = seconds(reading.window);
    match (reading.sample, reading.keys.len()) {
        (0, _) => {
            "Sampling of counter moves is off: CONFIG SET counter-churn-sample 16 turns it on".to_owned()
        }
        (_, 0) => format!("No counter has moved within the last {window}"),
        (1, _) => format!("Counters that moved most within the last {window}; every move was sampled"),
        (sample, _) => {
            format!(
                "Counters that moved most within the last {window}, from one of {sample} moves, chosen at random"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::top::counters::test_reading::reading;
    use crate::top::line::{Line, Tone};
    use std::time::Duration;

    fn text(lines: &[Line]) -> String {
        let lines: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn a_reading_is_a_page() {
        let (earlier, mut later) = (reading(), reading());
        later.totals.moves += 200;
        later.totals.moved_units += 400;
        later.totals.commits += 1;
        later.totals.committed_units += 100;
        later.at = earlier.at + Duration::from_secs(2);
        let page = lines(&later, later.rates_since(&earlier).as_ref());
        let expected = "\
3 counters; 2 uncommitted with 40 units, the oldest for 0.8 s; 10 units reserved
2 commits refused by the log
                        SINCE THE START         PER SECOND
moves                            12,545              100.0
units moved                      50,400              200.0
commits                             346                0.5
units committed                  10,100               50.0
writes saved                     97.2 %             99.5 %
churn                            80.0 %             75.0 %

Counters that moved most within the last 45.2 s, from one of 16 moves, chosen at random
    MOVES  ERROR        UNITS  COMMITTED    CHURN  DB  KEY
    1,600     32        3,200         16   99.5 %   0  seats\\n
       16      0           16         16    0.0 %  15  likes
";
        assert_eq!(text(&page), expected);
        assert_eq!(page[1].tone, Tone::Alert, "what the log has refused is to be seen");
    }

    #[test]
    fn a_first_reading_has_no_rates_and_says_so() {
        let mut first = reading();
        first.totals.commit_errors = 0;
        first.keys.clear();
        let page = lines(&first, None);
        assert!(text(&page).contains("moves                            12,345                  -\n"));
        assert!(text(&page).ends_with("No counter has moved within the last 45.2 s\n"));
        assert_eq!(page[1].tone, Tone::Plain);
        first.sample = 0;
        assert!(text(&lines(&first, None)).ends_with("CONFIG SET counter-churn-sample 16 turns it on\n"));
        first.sample = 1;
        first.keys = reading().keys;
        assert!(text(&lines(&first, None)).contains("; every move was sampled\n"));
    }
}
