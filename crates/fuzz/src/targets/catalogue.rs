//! Catalogues of pools in JSON, YAML and TOML: an error, or a catalogue that stays the same when it
//! is written and read again, and whose pool never gives more of an item than its stock.

use super::Target;
use tidemark_pool::file::{CatalogueFile, FileFormat};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Pool, Secret, Stock};

/// Draws from the pool of a catalogue.
const DRAWS: usize = 64;
/// Most items of a catalogue that is drawn from; larger ones are only read.
const DRAWN_ITEMS_MAX: usize = 4096;

pub(super) const TARGET: Target = Target {
    name: "catalogue",
    run,
    corpus,
    words: &[
        b"items",
        b"tables",
        b"table",
        b"name",
        b"limits",
        b"guarantees",
        b"schedule",
        b"weight",
        b"quantity",
        b"unlimited",
        b"fallback",
        b"per-unit",
        b"fixed-odds",
        b"no-prize",
        b"sold_out",
        b"units",
        b"from",
        b"every",
        b"times",
        b"unsold",
        b"lapses",
        b"wins",
        b"draws",
        b"of",
        b"per",
        b"scope",
        b"after",
        b"soft_from",
        b"soft_step",
        b"probability",
        b"catalog",
        b"item_id",
        b"pool",
        b"- ",
        b"{",
        b"}",
        b"[",
        b"]",
        b": ",
        b"\n",
        b"\n  ",
        b"\"",
        b"%",
        b"1e9",
        b"0.0000000000000000001",
        b"9223372036854775807",
        b"2026-12-24T18:00:00+01:00",
        b"[[items]]\n",
        b"\"\"\"",
        b"|\n",
        b"&a ",
        b"*a",
        b"\xef\xbb\xbf",
        b"\\ud800",
        b"---\n",
        b"!!int ",
    ],
};

fn run(data: &[u8]) -> bool {
    let Some((&first, text)) = data.split_first() else { return false };
    let format = FileFormat::ALL[usize::from(first) % FileFormat::ALL.len()];
    let file = match CatalogueFile::parse_bytes(text, format) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    file.unused.iter().for_each(|setting| assert!(!setting.to_string().is_empty()));
    for format in FileFormat::ALL {
        let text = CatalogueFile::to_text(&file.catalogue, format);
        let again = CatalogueFile::parse(&text, format);
        let again =
            again.unwrap_or_else(|error| panic!("a catalogue that was written is read: {error}\n{text}"));
        assert_eq!(again.catalogue, file.catalogue, "{text}");
    }
    if file.catalogue.items().len() <= DRAWN_ITEMS_MAX {
        draw(&file.catalogue);
    }
    true
}

/// Checks that the units left and the units given add up to the stock.
fn draw(catalogue: &Catalogue) {
    let mut pool = Pool::<WideTree>::new(catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
    let mut given = vec![0_u64; catalogue.items().len()];
    for _ in 0..DRAWS {
        let Ok(draw) = pool.draw() else { break };
        if let Some(item) = draw.item {
            given[item as usize] += 1;
        }
    }
    for entry in pool.urn().entries().filter(|entry| entry.leads_to.is_none()) {
        let item = &catalogue.items()[entry.item as usize];
        let drawn = given[entry.item as usize];
        assert_eq!(entry.drawn, drawn, "{} was drawn {drawn} times", item.id);
        match (item.stock, entry.stock) {
            (Stock::Limited(quantity), Stock::Limited(left)) => {
                assert_eq!(left.checked_add(drawn), Some(quantity), "{}", item.id);
            }
            (stock, left) => assert_eq!(stock, left, "{}", item.id),
        }
    }
    // Advances to the end of every schedule; nothing may overflow.
    pool.advance(u64::MAX);
    let _ = pool.draw();
}

const YAML: &str = r#"mode: fixed-odds
sold_out: {fallback: sticker}
items:
  - id: car
    weight: 0.5
    quantity: 3
  - {id: "100", weight: 12.25, table: inner}
  - id: sticker
    weight: "99.5"
    quantity: unlimited
tables:
  - name: inner
    items:
      - {id: pen, weight: 1, quantity: 2}
      - {id: cap, weight: 2, quantity: -1}
limits:
  - {wins: 1, of: [car], per: 86400000}
  - {draws: 10, scope: pool}
guarantees:
  - {after: 5, of: [car], soft_from: 3, soft_step: 2}
schedule:
  - {item: car, units: 5, from: "2026-12-24T18:00:00+01:00", every: 3600000, times: 24, unsold: lapses}
"#;

const TOML: &str = r#"mode = "per-unit"
sold_out = "no-prize"

[[items]]
id = "a\u00e4"
weight = 3
quantity = 2

[[items]]
id = 'b'
weight = 0
quantity = 0
"#;

const JSON: &str = r#"{"items": [{"id": "car", "weight": "12.5%", "quantity": 3},
{"id": "mug\u0041", "weight": "87.5%", "quantity": "unlimited"}], "schedule": [{"item": "car", "units": 1, "from": 1000}]}"#;

const ORIGINAL_YAML: &str = "pool:\n  catalog:\n  - item_id: gold\n    quantity: 100\n    probability: 20\nworking_dir: ./tmp\n\
wal:\n  type: file\ngrpc:\n  listen_addr: \":50051\"\n";

const ORIGINAL_JSON: &str = r#"{"catalog":[{"item_id":"gold","quantity":-1,"probability":20}]}"#;

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let input = |format: u8, text: &str| [&[format], text.as_bytes()].concat();
    vec![
        ("json", input(0, JSON)),
        ("yaml", input(1, YAML)),
        ("toml", input(2, TOML)),
        ("original-json", input(0, ORIGINAL_JSON)),
        ("original-yaml", input(1, ORIGINAL_YAML)),
        ("yaml-in-json", input(1, JSON)),
    ]
}
