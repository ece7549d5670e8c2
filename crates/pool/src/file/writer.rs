//! From a catalogue to a text that says it.

use super::format::FileFormat;
use crate::catalogue::{Catalogue, Mode, SoldOut};
use crate::item::Stock;
use std::fmt::{self, Display, Write};

/// The text.
pub(super) fn text(catalogue: &Catalogue, format: FileFormat) -> String {
    /// What an item takes beside its id. Bytes.
    const ITEM_BYTES: usize = 64;
    let mut text = String::with_capacity(catalogue.items().len() * ITEM_BYTES);
    let written = match format {
        FileFormat::Json => json(&mut text, catalogue),
        FileFormat::Yaml => yaml(&mut text, catalogue),
        FileFormat::Toml => toml(&mut text, catalogue),
    };
    debug_assert!(written.is_ok(), "a string takes everything");
    text
}

fn json(text: &mut String, catalogue: &Catalogue) -> fmt::Result {
    writeln!(text, "{{\n  \"mode\": {},", Quoted(mode(catalogue)))?;
    match catalogue.sold_out() {
        SoldOut::Fallback(id) => writeln!(text, "  \"sold_out\": {{\"fallback\": {}}},", Quoted(id))?,
        rule => writeln!(text, "  \"sold_out\": {},", Quoted(word(rule)))?,
    }
    text.write_str("  \"items\": [")?;
    for (position, item) in catalogue.items().iter().enumerate() {
        let comma = if position == 0 { "" } else { "," };
        let (id, weight, quantity) = (Quoted(&item.id), item.weight, Quantity(item.stock));
        write!(text, "{comma}\n    {{\"id\": {id}, \"weight\": {weight}, \"quantity\": {quantity}}}")?;
    }
    text.write_str("\n  ]\n}\n")
}

fn yaml(text: &mut String, catalogue: &Catalogue) -> fmt::Result {
    writeln!(text, "mode: {}", mode(catalogue))?;
    match catalogue.sold_out() {
        SoldOut::Fallback(id) => writeln!(text, "sold_out:\n  fallback: {}", Quoted(id))?,
        rule => writeln!(text, "sold_out: {}", word(rule))?,
    }
    text.write_str("items:\n")?;
    for item in catalogue.items() {
        let (id, weight, quantity) = (Quoted(&item.id), item.weight, Quantity(item.stock));
        write!(text, "  - id: {id}\n    weight: {weight}\n    quantity: {quantity}\n")?;
    }
    Ok(())
}

fn toml(text: &mut String, catalogue: &Catalogue) -> fmt::Result {
    writeln!(text, "mode = {}", Quoted(mode(catalogue)))?;
    match catalogue.sold_out() {
        SoldOut::Fallback(id) => writeln!(text, "sold_out = {{ fallback = {} }}", Quoted(id))?,
        rule => writeln!(text, "sold_out = {}", Quoted(word(rule)))?,
    }
    for item in catalogue.items() {
        let (id, weight, quantity) = (Quoted(&item.id), item.weight, Quantity(item.stock));
        write!(text, "\n[[items]]\nid = {id}\nweight = {weight}\nquantity = {quantity}\n")?;
    }
    Ok(())
}

fn mode(catalogue: &Catalogue) -> &'static str {
    match catalogue.mode() {
        Mode::FixedOdds => "fixed-odds",
        Mode::PerUnit => "per-unit",
    }
}

/// The word for a rule; one that names an item is written by its format.
fn word(rule: &SoldOut) -> &str {
    match rule {
        SoldOut::Renormalise => "renormalise",
        SoldOut::NoPrize => "no-prize",
        SoldOut::Fallback(id) => id,
    }
}

/// A text in quotes, in the one way that JSON, YAML and TOML share.
struct Quoted<'t>(&'t str);

impl Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(formatter, "\\{character}")?,
                // Controls, and what YAML takes for line breaks, byte order marks or nothing printable.
                '\0'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}' => {
                    write!(formatter, "\\u{:04x}", character as u32)?;
                }
                _ => formatter.write_char(character)?,
            }
        }
        formatter.write_char('"')
    }
}

struct Quantity(Stock);

impl Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Stock::Limited(quantity) => write!(formatter, "{quantity}"),
            Stock::Unlimited => formatter.write_str("\"unlimited\""),
        }
    }
}
