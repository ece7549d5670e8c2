//! A simulation of the original's files: what it writes at each step, and what it forgets.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use tidemark_pool::original::{Given, OriginalItem, Recovered, Recovery, Snapshot, Stocks};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    StringLine,
    Json,
}

/// Successive runs of the original in one working directory.
#[derive(Clone)]
pub(crate) struct Original {
    pub(crate) configuration: Vec<OriginalItem>,
    /// The stock in the original's memory.
    pub(crate) stock: Vec<OriginalItem>,
    pub(crate) request: u64,
    pub(crate) format: Format,
    pub(crate) files: Vec<(u64, Vec<u8>)>,
    pub(crate) snapshot: String,
    /// What callers have won according to the original's answers, over all its runs.
    pub(crate) awarded: BTreeMap<Box<str>, u64>,
    /// The stock according to the written records.
    pub(crate) written: Vec<OriginalItem>,
    /// Every state that the disk has had: a crash may leave any of them.
    pub(crate) disks: Vec<Disk>,
    /// Staged draws and updates.
    pending: Vec<Staged>,
}

/// The state of the disk that a crash leaves.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) files: Vec<(u64, Vec<u8>)>,
    pub(crate) snapshot: String,
    pub(crate) written: Vec<OriginalItem>,
}

#[derive(Clone)]
struct Staged {
    line: String,
    /// The drawn item; a rotation returns it to the stock.
    drawn: Option<usize>,
    /// An item's new amounts.
    update: Option<(usize, i64, i64)>,
}

pub(crate) const HEADER_BYTES: usize = 256;

/// 256 bytes: magic, version 1, status, number, length of the data, zeros.
pub(crate) fn header(number: u64, data_bytes: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend_from_slice(&0x746E_776C_u32.to_le_bytes());
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(&u32::from(data_bytes.is_some()).to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&data_bytes.unwrap_or(0).to_le_bytes());
    bytes.resize(HEADER_BYTES, 0);
    bytes
}

/// A file that was not closed, with these records.
pub(crate) fn open_file(number: u64, records: &str) -> Vec<u8> {
    let mut bytes = header(number, None);
    bytes.extend_from_slice(records.as_bytes());
    bytes
}

pub(crate) fn snapshot_json(last_request: u64, items: &[OriginalItem]) -> String {
    let json = |items: &[&OriginalItem]| {
        let all: Vec<String> = items
            .iter()
            .map(|item| {
                let OriginalItem { id, quantity, weight } = item;
                format!(r#"{{"item_id":"{id}","quantity":{quantity},"probability":{weight}}}"#)
            })
            .collect();
        format!("[{}]", all.join(","))
    };
    let mut order: Vec<&OriginalItem> = items.iter().collect();
    let catalogue = json(&order);
    order.sort_by(|left, right| left.id.cmp(&right.id));
    let hash = Sha256::digest(json(&order)).iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("memory");
        digits
    });
    format!("{{\"last_request_id\":{last_request},\"catalog\":{catalogue},\"sha256\":\"{hash}\"}}\n")
}

impl Original {
    /// Starts the original for the first time.
    pub(crate) fn start(configuration: Vec<OriginalItem>, format: Format) -> Self {
        let mut original = Self {
            stock: configuration.clone(),
            written: configuration.clone(),
            disks: Vec::new(),
            configuration,
            request: 0,
            format,
            files: Vec::new(),
            snapshot: String::new(),
            awarded: BTreeMap::new(),
            pending: Vec::new(),
        };
        original.begin_file();
        original
    }

    /// Draws this item, or nothing if none is left.
    pub(crate) fn draw(&mut self, item: usize) {
        self.request += 1;
        let OriginalItem { id, quantity, .. } = &mut self.stock[item];
        let won = *quantity > 0 || *quantity == -1;
        if *quantity > 0 {
            *quantity -= 1;
        }
        if won {
            *self.awarded.entry(id.clone()).or_default() += 1;
        }
        let request = self.request;
        let line = match (self.format, won) {
            (Format::StringLine, true) => format!("1,{request},{id},0,true\n"),
            (Format::StringLine, false) => format!("1,{request},,1,false\n"),
            (Format::Json, true) => {
                format!("{{\"type\":1,\"request_id\":{request},\"item_id\":\"{id}\",\"success\":true}}\n")
            }
            (Format::Json, false) => {
                format!("{{\"type\":1,\"error\":1,\"request_id\":{request},\"success\":false}}\n")
            }
        };
        self.pending.push(Staged { line, drawn: won.then_some(item), update: None });
    }

    /// Draws and writes the draws immediately.
    pub(crate) fn draws(&mut self, item: usize, count: usize) {
        (0..count).for_each(|_| self.draw(item));
        self.flush();
    }

    pub(crate) fn update(&mut self, item: usize, quantity: i64, weight: i64) {
        self.flush();
        let held = &mut self.stock[item];
        (held.quantity, held.weight) = (quantity, weight);
        let id = &held.id;
        let line = match self.format {
            Format::StringLine => format!("2,{id},{quantity},{weight}\n"),
            Format::Json => {
                format!(
                    "{{\"type\":2,\"item_id\":\"{id}\",\"quantity\":{quantity},\"probability\":{weight}}}\n"
                )
            }
        };
        self.pending.push(Staged { line, drawn: None, update: Some((item, quantity, weight)) });
        self.flush();
    }

    /// Writes the staged records.
    pub(crate) fn flush(&mut self) {
        for Staged { line, drawn, update } in std::mem::take(&mut self.pending) {
            if let Some(item) = drawn {
                let quantity = &mut self.written[item].quantity;
                *quantity -= i64::from(*quantity > 0);
            }
            if let Some((item, quantity, weight)) = update {
                (self.written[item].quantity, self.written[item].weight) = (quantity, weight);
            }
            self.append(&line);
        }
        self.step();
    }

    /// Takes a snapshot by hand, which is possible only when nothing is staged. Its record waits
    /// for the next flush.
    pub(crate) fn snapshot(&mut self) {
        self.flush();
        self.overwrite_snapshot();
        self.pending.push(Staged { line: self.snapshot_line(), drawn: None, update: None });
    }

    /// Rotates, because the staged draws do not fit into the file. The original returns them to the
    /// stock, begins the next file with a snapshot, and writes them after it.
    pub(crate) fn rotate(&mut self) {
        let carried = std::mem::take(&mut self.pending);
        self.give_back(&carried, 1);
        self.close();
        self.begin_file();
        self.give_back(&carried, -1);
        self.pending = carried;
        self.flush();
    }

    fn give_back(&mut self, carried: &[Staged], sign: i64) {
        for item in carried.iter().filter_map(|staged| staged.drawn) {
            let quantity = &mut self.stock[item].quantity;
            *quantity += if *quantity == -1 { 0 } else { sign };
        }
    }

    /// Stops cleanly.
    pub(crate) fn stop(&mut self) {
        self.flush();
        self.close();
    }

    /// Kills the original with `kill -9`: staged records are lost, although callers have their
    /// answers.
    pub(crate) fn kill(&mut self) {
        self.pending.clear();
    }

    /// Starts with a length of 0 in the newest header: the original starts over.
    pub(crate) fn start_anew(&mut self) {
        self.stock = self.configuration.clone();
        self.request = 0;
        self.begin_file();
    }

    fn close(&mut self) {
        let (number, bytes) = self.files.last_mut().expect("a file");
        let data_bytes = (bytes.len() - HEADER_BYTES) as u64;
        bytes[..HEADER_BYTES].copy_from_slice(&header(*number, Some(data_bytes)));
        self.step();
    }

    fn begin_file(&mut self) {
        let number = self.files.last().map_or(0, |(number, _)| number + 1);
        self.files.push((number, header(number, None)));
        self.step();
        self.overwrite_snapshot();
        let line = self.snapshot_line();
        self.append(&line);
        self.step();
    }

    fn overwrite_snapshot(&mut self) {
        self.snapshot.clear();
        self.step();
        self.snapshot = snapshot_json(self.request, &self.stock);
        self.step();
    }

    fn step(&mut self) {
        let Self { files, snapshot, written, .. } = self;
        self.disks.push(Disk { files: files.clone(), snapshot: snapshot.clone(), written: written.clone() });
    }

    fn snapshot_line(&self) -> String {
        match self.format {
            Format::StringLine => "3,tmp/snapshot.json\n".into(),
            Format::Json => "{\"type\":3,\"path\":\"tmp/snapshot.json\"}\n".into(),
        }
    }

    fn append(&mut self, line: &str) {
        self.files.last_mut().expect("a file").1.extend_from_slice(line.as_bytes());
    }

    /// Recovers from the directory and the configuration.
    pub(crate) fn recover(&self) -> Recovered {
        self.recover_with(Some(self.configuration.clone()))
    }

    /// Recovers from the directory alone.
    pub(crate) fn recover_without_configuration(&self) -> Recovered {
        self.recover_with(None)
    }

    fn recover_with(&self, configuration: Option<Vec<OriginalItem>>) -> Recovered {
        let snapshot = Snapshot::parse(self.snapshot.as_bytes()).expect("a snapshot");
        recover(Given { snapshot: Some(snapshot), configuration, ..Given::default() }, &self.files)
    }

    /// Returns the stock if no award is made twice.
    pub(crate) fn truth(&self) -> Vec<OriginalItem> {
        let left = |item: &OriginalItem| {
            let awarded = self.awarded.get(&item.id).copied().unwrap_or(0) as i64;
            let quantity = if item.quantity == -1 { -1 } else { (item.quantity - awarded).max(0) };
            OriginalItem { quantity, ..item.clone() }
        };
        self.configuration.iter().map(left).collect()
    }
}

pub(crate) fn recover(given: Given, files: &[(u64, Vec<u8>)]) -> Recovered {
    let mut recovery = Recovery::new(given).expect("few items");
    for (number, bytes) in files {
        recovery.read(*number, &bytes[..]).expect("a file of the original");
    }
    recovery.finish()
}

/// Returns the items of one of the recovered stocks.
pub(crate) fn left(stocks: Option<&Stocks>) -> Vec<OriginalItem> {
    stocks.expect("stocks").items.iter().map(|recovered| recovered.item.clone()).collect()
}
