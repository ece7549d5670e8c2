//! Options shared by commands on pools.

use crate::command::parse::{self, is};
use crate::error::CommandError;
use tidemark_pool::{AMOUNT_MAX, By, DRAWS_MAX, ID_BYTES_MAX, NAME_BYTES_MAX, Repeats, Stock};

/// Number of draws, their rules, and the user.
pub(super) struct Draws<'a> {
    pub(super) count: usize,
    pub(super) repeats: Repeats,
    /// Whether the count was given; then the answer is an array of draws.
    pub(super) is_counted: bool,
    pub(super) by: By<'a>,
}

impl<'a> Draws<'a> {
    /// Parses `[COUNT count] [UNIQUE] [USER user] [REQUEST request]`. `now_us` is in microseconds
    /// since 1970.
    pub(super) fn parse(args: &[&'a [u8]], now_us: u64) -> Result<Self, CommandError> {
        let by = By { now_ms: now_us / 1000, ..By::default() };
        let mut draws = Self { count: 1, repeats: Repeats::Allowed, is_counted: false, by };
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            if is(word, "COUNT") {
                let count = parse::positive(rest.next().ok_or(CommandError::Syntax)?)?;
                draws.count = usize::try_from(count).unwrap_or(usize::MAX);
                draws.is_counted = true;
            } else if is(word, "UNIQUE") {
                draws.repeats = Repeats::Excluded;
            } else if is(word, "USER") {
                draws.by.user = Some(rest.next().ok_or(CommandError::Syntax)?);
            } else if is(word, "REQUEST") {
                draws.by.request = Some(rest.next().ok_or(CommandError::Syntax)?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(draws)
    }

    /// Returns the most bytes of the draws in the log.
    pub(super) fn event_bytes(&self) -> usize {
        // An item's number has at most five bytes; names and times are added.
        self.count.min(DRAWS_MAX) * 5 + 2 * NAME_BYTES_MAX + 64
    }
}

/// The items to show: `[FROM start] [COUNT count]`.
pub(super) struct Page {
    pub(super) from: usize,
    pub(super) count: usize,
}

impl Page {
    pub(super) fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let mut page = Self { from: 0, count: 1000 };
        for pair in args.chunks(2) {
            let [word, number] = pair else { return Err(CommandError::Syntax) };
            if is(word, "FROM") {
                page.from = parse::at_least(0, number, "ERR value is out of range, must be positive")?;
            } else if is(word, "COUNT") {
                page.count = parse::at_least(1, number, "ERR value is out of range, must be positive")?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(page)
    }
}

pub(super) fn id(arg: &[u8]) -> Result<&str, CommandError> {
    let text = std::str::from_utf8(arg).ok().filter(|id| id.len() <= ID_BYTES_MAX);
    text.ok_or_else(|| CommandError::text("ERR an item's id must be text of 1 to 255 bytes in UTF-8"))
}

pub(super) fn weight(arg: &[u8]) -> Result<u64, CommandError> {
    amount(arg).ok_or_else(|| {
        let said = clipped(arg);
        let error = format!(
            "ERR a weight must be a whole number from 0 to {AMOUNT_MAX}, and {said} is none: multiply all weights by the same power of ten, or send JSON"
        );
        CommandError::Text(error.into())
    })
}

pub(super) fn stock(arg: &[u8]) -> Result<Stock, CommandError> {
    if is(arg, "UNLIMITED") {
        return Ok(Stock::Unlimited);
    }
    let quantity = amount(arg).map(Stock::Limited);
    quantity.ok_or_else(|| {
        let said = clipped(arg);
        let error =
            format!("ERR a quantity must be a whole number from 0 to {AMOUNT_MAX}, or UNLIMITED, and {said} is neither");
        CommandError::Text(error.into())
    })
}

/// Returns the beginning of an argument, quoted for error messages.
fn clipped(arg: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = &arg[..arg.len().min(SHOWN)];
    let more = if arg.len() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", shown.escape_ascii())
}

/// Parses the number of a reservation, epoch or draw.
pub(super) fn number(arg: &[u8]) -> Result<u64, CommandError> {
    amount(arg).ok_or(CommandError::NotAnInteger)
}

fn amount(arg: &[u8]) -> Option<u64> {
    let amount = u64::try_from(parse::integer(arg).ok()?).ok()?;
    (amount <= AMOUNT_MAX).then_some(amount)
}
