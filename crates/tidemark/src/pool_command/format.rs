//! The two formats of an audit: JSON Lines, which can be checked, and CSV for tables.

use super::line::{EventLine, ItemLine, Left, Line};
use super::scribe::Lines;
use clap::ValueEnum;
use std::borrow::Cow;
use std::io::{self, Write};

/// Format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum AuditFormat {
    /// A JSON object a line: with it anybody can check the draws
    #[default]
    Jsonl,
    /// A table (RFC 4180)
    Csv,
}

/// Number of columns of the table.
const COLUMNS_LEN: usize = 22;

/// Column titles of the table.
const COLUMNS: [&str; COLUMNS_LEN] = [
    "event",
    "lsn",
    "time",
    "draw",
    "user",
    "request",
    "epoch",
    "version",
    "item",
    "id",
    "weight",
    "total_weight",
    "odds",
    "left",
    "drawn",
    "reservation",
    "until",
    "count",
    "client_seed",
    "secret",
    "commitment",
    "next_commitment",
];

/// Writes lines to a file or a pipe.
pub(super) struct Writer<W> {
    format: AuditFormat,
    out: W,
    /// Number of lines about draws.
    pub(super) draws: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the titles, if the format has any.
    pub(super) fn new(format: AuditFormat, mut out: W) -> io::Result<Self> {
        if format == AuditFormat::Csv {
            row(&mut out, &COLUMNS.map(Cow::Borrowed))?;
        }
        Ok(Self { format, out, draws: 0 })
    }

    /// Flushes and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Lines for Writer<W> {
    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.draws += u64::from(matches!(line, Line::Event(event) if event.event == "draw"));
        match (self.format, line) {
            (AuditFormat::Jsonl, line) => {
                serde_json::to_writer(&mut self.out, line)?;
                self.out.write_all(b"\n")
            }
            (AuditFormat::Csv, Line::Event(event)) => row(&mut self.out, &of_event(event)),
            (AuditFormat::Csv, Line::Item(item)) => row(&mut self.out, &of_item(item)),
            // A table has no place for the state of a pool or the bytes from which it is read back.
            (AuditFormat::Csv, Line::Pool(_) | Line::State { .. } | Line::Release(_) | Line::Frame(_)) => {
                Ok(())
            }
        }
    }
}

fn of_event<'a>(line: &'a EventLine<'a>) -> [Cow<'a, str>; COLUMNS_LEN] {
    let text = |text: &'a Option<String>| Cow::Borrowed(text.as_deref().unwrap_or_default());
    [
        line.event.into(),
        line.lsn.to_string().into(),
        Cow::Borrowed(&*line.time),
        number(line.draw),
        text(&line.user),
        text(&line.request),
        number(line.epoch),
        number(line.version),
        number(line.item.map(u64::from)),
        Cow::Borrowed(line.id.unwrap_or_default()),
        number(line.weight),
        number(line.total_weight),
        line.odds.map_or_else(String::new, |odds| odds.to_string()).into(),
        line.left.map_or_else(String::new, units).into(),
        "".into(),
        number(line.reservation),
        text(&line.until),
        number(line.count),
        text(&line.client_seed),
        text(&line.secret),
        text(&line.commitment),
        text(&line.next_commitment),
    ]
}

fn of_item<'a>(line: &'a ItemLine<'a>) -> [Cow<'a, str>; COLUMNS_LEN] {
    let mut cells: [Cow<'a, str>; COLUMNS_LEN] = std::array::from_fn(|_| "".into());
    cells[0] = line.event.into();
    cells[7] = line.version.to_string().into();
    cells[8] = line.item.to_string().into();
    cells[9] = line.id.into();
    cells[10] = line.weight.to_string().into();
    cells[13] = units(line.left).into();
    cells[14] = line.drawn.to_string().into();
    cells
}

fn number(number: Option<u64>) -> Cow<'static, str> {
    number.map_or_else(String::new, |number| number.to_string()).into()
}

fn units(left: Left) -> String {
    match left {
        Left::Units(left) => left.to_string(),
        Left::Unlimited(word) => word.to_owned(),
    }
}

fn row(out: &mut impl Write, cells: &[Cow<'_, str>; COLUMNS_LEN]) -> io::Result<()> {
    for (place, text) in cells.iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        cell(out, text)?;
    }
    out.write_all(b"\r\n")
}

/// Writes a cell: quoted if it contains a delimiter, and with a `'` before a text that a
/// spreadsheet would take for a formula.
fn cell(out: &mut impl Write, text: &str) -> io::Result<()> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text: Cow<'_, str> = if is_formula { format!("'{text}").into() } else { text.into() };
    if text.contains(['"', ',', '\r', '\n']) || text.starts_with(' ') || text.ends_with(' ') {
        write!(out, "\"{}\"", text.replace('"', "\"\""))
    } else {
        out.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        cell(&mut out, text).expect("memory does not fail");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_cell_ends_where_it_should_and_is_no_formula() {
        for (text, expected) in [
            ("car", "car"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            (" x", "\" x\""),
            ("=1+1", "'=1+1"),
            ("+a", "'+a"),
            ("-", "'-"),
            ("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""),
            ("it's", "it's"),
        ] {
            assert_eq!(written(text), expected);
        }
    }

    #[test]
    fn each_line_of_the_table_has_a_cell_for_each_title() {
        let event = EventLine { event: "draw", id: Some("a,b"), odds: Some(0.5), ..EventLine::default() };
        let mut writer = Writer::new(AuditFormat::Csv, Vec::new()).expect("memory does not fail");
        writer.write(&Line::Event(Box::new(event))).expect("memory does not fail");
        writer.write(&Line::State { event: "head", bytes: String::new() }).expect("memory does not fail");
        assert_eq!(writer.draws, 1);
        let text = String::from_utf8(writer.finish().expect("memory does not fail")).expect("text");
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines, [COLUMNS.join(","), "draw,0,,,,,,,,\"a,b\",,,0.5,,,,,,,,,".to_owned()]);
        assert_eq!(lines[1].replace("\"a,b\"", "").matches(',').count(), COLUMNS.len() - 1);
    }
}
