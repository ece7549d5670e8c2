//! Writing a catalogue as text.

use super::format::FileFormat;
use crate::catalogue::item::{Item, Stock};
use crate::catalogue::rules::{Guarantee, Limit, Scope, Soft};
use crate::catalogue::schedule::{Release, Unsold};
use crate::catalogue::{Catalogue, Mode, SoldOut};
use std::fmt::{self, Display, Write};

pub(super) fn text(catalogue: &Catalogue, format: FileFormat) -> String {
    /// Estimated size of an item without its id, in bytes.
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
    for (name, entries) in beside_items(catalogue, &|key| format!("\"{key}\": ")) {
        writeln!(text, "  \"{name}\": [\n    {{{}}}\n  ],", entries.join("},\n    {"))?;
    }
    text.write_str("  \"items\": [")?;
    json_items(text, catalogue, 0, catalogue.first_items(), "    ")?;
    text.write_str("\n  ]")?;
    let mut number = catalogue.first_items().len();
    for (position, (name, items)) in catalogue.tables().enumerate() {
        let begin = if position == 0 { ",\n  \"tables\": [" } else { "," };
        write!(text, "{begin}\n    {{\"name\": {}, \"items\": [", Quoted(name))?;
        json_items(text, catalogue, number, items, "      ")?;
        text.write_str("\n    ]}")?;
        number += items.len();
    }
    let end = if catalogue.tables().len() > 0 { "\n  ]\n}\n" } else { "\n}\n" };
    text.write_str(end)
}

fn json_items(
    text: &mut String,
    catalogue: &Catalogue,
    first: usize,
    items: &[Item],
    indent: &str,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        let comma = if position == 0 { "" } else { "," };
        let (id, weight, source) =
            (Quoted(&item.id), item.weight, Source::of(catalogue, first + position, item));
        let key = source.key();
        write!(text, "{comma}\n{indent}{{\"id\": {id}, \"weight\": {weight}, \"{key}\": {source}}}")?;
    }
    Ok(())
}

fn yaml(text: &mut String, catalogue: &Catalogue) -> fmt::Result {
    writeln!(text, "mode: {}", mode(catalogue))?;
    match catalogue.sold_out() {
        SoldOut::Fallback(id) => writeln!(text, "sold_out:\n  fallback: {}", Quoted(id))?,
        rule => writeln!(text, "sold_out: {}", word(rule))?,
    }
    for (name, entries) in beside_items(catalogue, &|key| format!("{key}: ")) {
        writeln!(text, "{name}:\n  - {{{}}}", entries.join("}\n  - {"))?;
    }
    text.write_str("items:\n")?;
    yaml_items(text, catalogue, 0, catalogue.first_items(), "  ")?;
    let mut number = catalogue.first_items().len();
    for (position, (name, items)) in catalogue.tables().enumerate() {
        if position == 0 {
            text.write_str("tables:\n")?;
        }
        write!(text, "  - name: {}\n    items:\n", Quoted(name))?;
        yaml_items(text, catalogue, number, items, "      ")?;
        number += items.len();
    }
    Ok(())
}

fn yaml_items(
    text: &mut String,
    catalogue: &Catalogue,
    first: usize,
    items: &[Item],
    indent: &str,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        let (id, weight, source) =
            (Quoted(&item.id), item.weight, Source::of(catalogue, first + position, item));
        let key = source.key();
        write!(text, "{indent}- id: {id}\n{indent}  weight: {weight}\n{indent}  {key}: {source}\n")?;
    }
    Ok(())
}

fn toml(text: &mut String, catalogue: &Catalogue) -> fmt::Result {
    writeln!(text, "mode = {}", Quoted(mode(catalogue)))?;
    match catalogue.sold_out() {
        SoldOut::Fallback(id) => writeln!(text, "sold_out = {{ fallback = {} }}", Quoted(id))?,
        rule => writeln!(text, "sold_out = {}", Quoted(word(rule)))?,
    }
    for (name, entries) in beside_items(catalogue, &|key| format!("{key} = ")) {
        writeln!(text, "{name} = [\n  {{ {} }},\n]", entries.join(" },\n  { "))?;
    }
    toml_items(text, catalogue, 0, catalogue.first_items(), "items")?;
    let mut number = catalogue.first_items().len();
    for (name, items) in catalogue.tables() {
        write!(text, "\n[[tables]]\nname = {}\n", Quoted(name))?;
        toml_items(text, catalogue, number, items, "tables.items")?;
        number += items.len();
    }
    Ok(())
}

fn toml_items(
    text: &mut String,
    catalogue: &Catalogue,
    first: usize,
    items: &[Item],
    list: &str,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        let (id, weight, source) =
            (Quoted(&item.id), item.weight, Source::of(catalogue, first + position, item));
        let key = source.key();
        write!(text, "\n[[{list}]]\nid = {id}\nweight = {weight}\n{key} = {source}\n")?;
    }
    Ok(())
}

/// Returns the rules and releases as contents of inline maps, with keys in the style of the format.
fn beside_items(catalogue: &Catalogue, key: &dyn Fn(&str) -> String) -> Vec<(&'static str, Vec<String>)> {
    let (limits, guarantees) = (catalogue.rules().limits(), catalogue.rules().guarantees());
    let limits = limits.iter().map(|limit| limit_entry(limit, key)).collect();
    let guarantees = guarantees.iter().map(|guarantee| guarantee_entry(guarantee, key)).collect();
    let releases = catalogue.schedule().releases();
    let schedule = releases.iter().map(|release| release_entry(release, key)).collect();
    let all: [(_, Vec<String>); 3] = [("limits", limits), ("guarantees", guarantees), ("schedule", schedule)];
    all.into_iter().filter(|(_, entries)| !entries.is_empty()).collect()
}

fn limit_entry(limit: &Limit, key: &dyn Fn(&str) -> String) -> String {
    let mut pairs = match &limit.wins_of {
        None => vec![format!("{}{}", key("draws"), limit.max)],
        Some(of) => vec![format!("{}{}", key("wins"), limit.max), named(of, key)],
    };
    pairs.extend(limit.per_ms.map(|per_ms| format!("{}{per_ms}", key("per"))));
    pairs.join(", ")
}

fn guarantee_entry(guarantee: &Guarantee, key: &dyn Fn(&str) -> String) -> String {
    let Guarantee { after, of, scope, soft } = guarantee;
    let mut pairs = vec![format!("{}{after}", key("after")), named(of, key)];
    if *scope == Scope::Pool {
        pairs.push(format!("{}\"pool\"", key("scope")));
    }
    if let Some(Soft { from, step }) = soft {
        pairs.push(format!("{}{from}", key("soft_from")));
        pairs.push(format!("{}{step}", key("soft_step")));
    }
    pairs.join(", ")
}

fn release_entry(release: &Release, key: &dyn Fn(&str) -> String) -> String {
    let Release { item, units, from_ms, every_ms, times, unsold } = release;
    let mut pairs = vec![format!("{}{}", key("item"), Quoted(item))];
    for (name, number) in [("units", units), ("from", from_ms), ("every", every_ms), ("times", times)] {
        pairs.push(format!("{}{number}", key(name)));
    }
    if *unsold == Unsold::Lapses {
        pairs.push(format!("{}\"lapses\"", key("unsold")));
    }
    pairs.join(", ")
}

fn named(of: &[Box<str>], key: &dyn Fn(&str) -> String) -> String {
    let ids: Vec<String> = of.iter().map(|id| Quoted(id).to_string()).collect();
    format!("{}[{}]", key("of"), ids.join(", "))
}

fn mode(catalogue: &Catalogue) -> &'static str {
    match catalogue.mode() {
        Mode::FixedOdds => "fixed-odds",
        Mode::PerUnit => "per-unit",
    }
}

/// Returns the word for a rule; each format writes a fallback in its own way.
fn word(rule: &SoldOut) -> &str {
    match rule {
        SoldOut::Renormalise => "renormalise",
        SoldOut::NoPrize => "no-prize",
        SoldOut::Fallback(id) => id,
    }
}

/// A quoted text, in the form that JSON, YAML and TOML share.
struct Quoted<'t>(&'t str);

impl Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(formatter, "\\{character}")?,
                // Control characters, and what YAML treats as line breaks, byte order marks or not
                // printable.
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

/// What an item gives: its own units, or an item of a table.
enum Source<'c> {
    Units(u64),
    Unlimited,
    Table(&'c str),
}

impl<'c> Source<'c> {
    fn of(catalogue: &'c Catalogue, number: usize, item: &Item) -> Self {
        match (catalogue.leads_to(number as u32), item.stock) {
            (Some(table), _) => Self::Table(table),
            (None, Stock::Limited(quantity)) => Self::Units(quantity),
            (None, Stock::Unlimited) => Self::Unlimited,
        }
    }

    fn key(&self) -> &'static str {
        if matches!(self, Self::Table(_)) { "table" } else { "quantity" }
    }
}

impl Display for Source<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Units(quantity) => write!(formatter, "{quantity}"),
            Self::Unlimited => formatter.write_str("\"unlimited\""),
            Self::Table(name) => Quoted(name).fmt(formatter),
        }
    }
}
