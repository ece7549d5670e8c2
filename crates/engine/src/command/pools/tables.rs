//! Nested tables: arguments of `POOL.CREATE`.

use super::options;
use crate::command::parse;
use crate::error::CommandError;
use tidemark_pool::{Item, Lead, Stock, Table};

/// Prefix of a table's name in place of a quantity.
const PREFIX: &[u8] = b"TABLE:";

/// Parses `name numitems id weight <quantity | TABLE:name> [...]`. Returns the table and the
/// remaining words.
pub(super) fn table<'w, 'a>(
    words: &'w [&'a [u8]],
    leads: &mut Vec<Lead>,
) -> Result<(Table, &'w [&'a [u8]]), CommandError> {
    let [name, count, rest @ ..] = words else { return Err(CommandError::Syntax) };
    let count =
        parse::positive(count).ok().and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let count = count.and_then(|count| count.checked_mul(3));
    let count =
        count.ok_or_else(|| CommandError::text("ERR TABLE takes a name and how many items there are"))?;
    let (words, rest) = rest.split_at_checked(count).ok_or(CommandError::Syntax)?;
    Ok((Table { name: options::id(name)?.into(), items: items(words, leads)? }, rest))
}

/// Parses `id weight <quantity | TABLE:name> [...]`.
pub(super) fn items(words: &[&[u8]], leads: &mut Vec<Lead>) -> Result<Vec<Item>, CommandError> {
    if !words.len().is_multiple_of(3) {
        return Err(CommandError::text("ERR ITEMS takes an id, a weight and a quantity for each item"));
    }
    let item = |words: &[&[u8]]| {
        let (id, weight): (Box<str>, _) = (options::id(words[0])?.into(), options::weight(words[1])?);
        let stock = match table_of(words[2]) {
            Some(name) => {
                leads.push(Lead { item: id.clone(), table: options::id(name)?.into() });
                Stock::Unlimited
            }
            None => options::stock(words[2])?,
        };
        Ok(Item { id, weight, stock })
    };
    words.chunks(3).map(item).collect()
}

/// Returns the table's name in place of a quantity, if it is one.
fn table_of(word: &[u8]) -> Option<&[u8]> {
    word.split_at_checked(PREFIX.len())
        .filter(|(prefix, _)| prefix.eq_ignore_ascii_case(PREFIX))
        .map(|(_, name)| name)
}
