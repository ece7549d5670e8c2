//! Lines for people: emphasis, and the format of numbers.

use std::time::Duration;

/// Emphasis of a line, where the output can show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Title,
    Alert,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) tone: Tone,
    pub(super) text: String,
}

impl Line {
    pub(super) fn new(tone: Tone, text: String) -> Self {
        Self { tone, text }
    }
}

pub(super) fn plain(text: String) -> Line {
    Line::new(Tone::Plain, text)
}

pub(super) fn title(text: String) -> Line {
    Line::new(Tone::Title, text)
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a number with its digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let groups = [0, 12, 999, 1000, 123_456, u64::MAX].map(grouped);
        assert_eq!(groups, ["0", "12", "999", "1,000", "123,456", "18,446,744,073,709,551,615"]);
    }
}
