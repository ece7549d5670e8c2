//! Working directories of the system from which pools can be imported: the catalogue of its
//! configuration, `snapshot.json`, and its log. The recovered units add up to the original ones,
//! and a second run gives the same result.
//!
//! ```text
//! input   flags u8 │ (file u8 │ block)*
//! file    0: snapshot; 1: configuration; else a file of the log, and the step to the next number
//! ```

use super::Target;
use crate::input::{Input, put_block};
use tidemark_pool::file::{CatalogueFile, FileFormat};
use tidemark_pool::original::{Given, Limits, OriginalItem, Recovered, Recovery, Snapshot};

const SNAPSHOT: u8 = 0;
const CONFIGURATION: u8 = 1;
const HEADER_BYTES: usize = 256;

pub(super) const TARGET: Target = Target {
    name: "original",
    run,
    corpus,
    words: &[
        b"\n",
        b"1,7,gold,0,true\n",
        b"1,8,,0,false\n",
        b"2,gold,5,20\n",
        b"3,snapshot.json\n",
        b"4,\n",
        b"lwnt\x01\0\0\0",
        b"\0\0\0\0",
        b"{\"type\":1,",
        b"\"request_id\":",
        b"\"item_id\":\"gold\"",
        b"\"quantity\":",
        b"\"probability\":",
        b"\"last_request_id\":",
        b"\"sha256\":\"",
        b"\r\n",
        b"-1",
        b"9223372036854775807",
        b"18446744073709551615",
    ],
};

fn run(data: &[u8]) -> bool {
    let recovered = recover(data);
    assert_eq!(recovered, recover(data), "the same files give the same");
    assert!(!recovered.report.to_string().is_empty() || recovered.report.files.is_empty());
    for stocks in [&recovered.from_snapshot, &recovered.from_history].into_iter().flatten() {
        for item in &stocks.items {
            assert!(item.beyond <= item.drawn, "{item}");
            assert!(!item.to_string().is_empty());
        }
        if let Ok(catalogue) = stocks.catalogue() {
            let text = CatalogueFile::to_text(&catalogue, FileFormat::Json);
            let read = CatalogueFile::parse(&text, FileFormat::Json);
            assert_eq!(read.expect("a catalogue that was written is read").catalogue, catalogue);
        }
    }
    recovered.recommended.is_some() && recovered.report.files.iter().any(|file| file.records > 0)
}

fn recover(data: &[u8]) -> Recovered {
    let mut input = Input::new(data);
    let flags = input.u8();
    let mut given = Given { accept_changed_snapshot: flags & 1 == 1, ..Given::default() };
    if flags & 2 == 2 {
        given.limits = Limits { line_bytes: 40, listed: 2, unknown_items: 1 };
    }
    let (mut logs, mut number) = (Vec::new(), 0_u64);
    while !input.is_empty() {
        let (kind, bytes) = (input.u8(), input.block());
        match kind {
            SNAPSHOT => given.snapshot = Snapshot::parse(bytes).ok(),
            CONFIGURATION => {
                given.configuration = match CatalogueFile::parse_bytes(bytes, FileFormat::Yaml) {
                    Ok(file) => Some(file.catalogue.items().iter().map(OriginalItem::from).collect()),
                    // May have amounts that no catalogue has.
                    Err(_) => Snapshot::parse(bytes).ok().map(|snapshot| snapshot.items),
                };
            }
            step => {
                logs.push((number, bytes));
                number += u64::from(step) - 1;
            }
        }
    }
    let mut recovery = Recovery::new(given).expect("there are few items");
    for (number, bytes) in logs {
        if let Err(error) = recovery.read(number, bytes) {
            assert!(!error.to_string().is_empty());
        }
    }
    recovery.finish()
}

/// Returns a file of the log; a `closed` file has its length in its header.
fn log_file(records: &str, closed: bool) -> Vec<u8> {
    let mut file = [0; HEADER_BYTES].to_vec();
    file[..8].copy_from_slice(b"lwnt\x01\0\0\0");
    if closed {
        file[8] = 1;
        file[20..28].copy_from_slice(&(records.len() as u64).to_le_bytes());
    }
    file.extend_from_slice(records.as_bytes());
    file
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    const CONFIGURED: &str = "pool:\n  catalog:\n  - {item_id: gold, quantity: 100, probability: 20}\n  \
                              - {item_id: rock, quantity: -1, probability: 40}\n";
    const SNAPSHOT_JSON: &str = r#"{"last_request_id":3,"catalog":[{"item_id":"gold","quantity":98,"probability":20},{"item_id":"rock","quantity":-1,"probability":40}]}"#;
    const JSON_LINES: &str = "{\"type\":1,\"request_id\":1,\"item_id\":\"gold\",\"success\":true}\n\
                              {\"type\":2,\"item_id\":\"gold\",\"quantity\":7,\"probability\":3}\n{\"type\":3,\"path\":\"s\"}\n";
    let input = |flags: u8, files: &[(u8, &[u8])]| {
        let mut input = vec![flags];
        for (kind, bytes) in files {
            input.push(*kind);
            put_block(&mut input, bytes);
        }
        input
    };
    let first = log_file("3,snapshot.json\n1,1,gold,0,true\n1,2,gold,0,true\n1,3,rock,0,true\n", true);
    let second = log_file(
        "3,snapshot.json\n1,4,gold,0,true\n1,5,,1,false\n2,gold,50,21\n1,6,pin,0,true\n1,7,go",
        false,
    );
    let lines = log_file(JSON_LINES, false);
    let (snapshot, configuration) = (SNAPSHOT_JSON.as_bytes(), CONFIGURED.as_bytes());
    vec![
        ("all", input(1, &[(SNAPSHOT, snapshot), (CONFIGURATION, configuration), (2, &first), (2, &second)])),
        ("history", input(0, &[(CONFIGURATION, configuration), (2, &first), (3, &second)])),
        ("snapshot", input(0, &[(SNAPSHOT, snapshot), (2, &second)])),
        ("json-lines", input(0, &[(CONFIGURATION, configuration), (2, &lines)])),
        ("limited", input(2, &[(CONFIGURATION, configuration), (2, &second), (2, &first)])),
    ]
}
