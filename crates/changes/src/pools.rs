//! Change-stream form of pool records. The log has them in binary, with secrets that must not be
//! shown.
//!
//! ```text
//! pool.create   key COMMITMENT sha256 NEXT sha256 MODE mode SOLDOUT rule [fallback] rules (TABLE name count items)* ITEMS items
//! pool.draw     key first-draw who item*       of each draw the number of its item, - for nothing
//! pool.reserve  key number until-us who item*
//! pool.confirm  key number                     and pool.cancel, pool.expire
//! pool.update   key (SET item weight quantity | ADD id weight quantity | REMOVE item)
//! pool.return   key item count [USER id]
//! pool.release  key time                       all scheduled releases until then, in ms since 1970
//! pool.epoch    key SEED seed NEXT sha256      NEXT: commitment to the secret of the epoch after it
//!
//! who           [USER id] [REQUEST id]         if given
//! rules         LIMIT, GUARANTEE and SCHEDULE as POOL.CREATE takes them
//! items         (id weight quantity)*, the quantity being TABLE:name for a link to a table
//! ```

use tidemark_engine::record::Cursor;
use tidemark_engine::value::pool::Inner;
use tidemark_engine::value::{Pool, Value};
use tidemark_engine::{ApplyError, Malformed};
use tidemark_pool::{
    By, Ending, Entry, Event, Events, Frame, Guarantee, Limit, Mode, Release, Scope, Soft, Stock, Unsold,
};

/// Change-stream form of an internal log command.
pub(crate) struct PoolCommand {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<Vec<u8>>,
}

impl PoolCommand {
    fn new(name: &'static str, key: &[u8]) -> Self {
        Self { name, args: vec![key.to_vec()] }
    }

    fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.args.push(text.as_ref().to_vec());
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.text(number.to_string())
    }

    fn stock(&mut self, stock: Stock) -> &mut Self {
        match stock {
            Stock::Limited(left) => self.number(left),
            Stock::Unlimited => self.text("UNLIMITED"),
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        self.text(entry.id).number(entry.weight);
        match entry.leads_to {
            Some(table) => self.text(format!("TABLE:{table}")),
            None => self.stock(entry.stock),
        };
    }

    fn limit(&mut self, pool: &Inner, limit: &Limit<u32>) {
        self.text("LIMIT").text(if limit.wins_of.is_some() { "WINS" } else { "DRAWS" }).number(limit.max);
        if let Some(per_ms) = limit.per_ms {
            self.text("PER").number(per_ms);
        }
        if let Some(items) = &limit.wins_of {
            self.named(pool, items);
        }
    }

    fn guarantee(&mut self, pool: &Inner, guarantee: &Guarantee<u32>) {
        self.text("GUARANTEE").number(guarantee.after);
        if guarantee.scope == Scope::Pool {
            self.text("POOL");
        }
        if let Some(Soft { from, step }) = guarantee.soft {
            self.text("SOFT").number(from).number(step);
        }
        self.named(pool, &guarantee.of);
    }

    fn release(&mut self, pool: &Inner, release: &Release<u32>) {
        let &Release { item, units, from_ms, every_ms, times, unsold } = release;
        self.text("SCHEDULE").text(pool.urn().id(item)).number(units).text("FROM").number(from_ms);
        self.text("EVERY").number(every_ms).text("TIMES").number(times);
        if unsold == Unsold::Lapses {
            self.text("LAPSES");
        }
    }

    fn named(&mut self, pool: &Inner, items: &[u32]) {
        self.text("OF").number(items.len() as u64);
        items.iter().for_each(|item| _ = self.text(pool.urn().id(*item)));
    }

    fn by(&mut self, by: &By<'_>) {
        for (word, name) in [("USER", by.user), ("REQUEST", by.request)] {
            if let Some(name) = name {
                self.text(word).text(name);
            }
        }
    }

    fn item(&mut self, item: Option<u32>) -> &mut Self {
        match item {
            Some(item) => self.number(u64::from(item)),
            None => self.text("-"),
        }
    }
}

/// Returns the change-stream form of an internal log command; `None` for any other command.
pub(crate) fn commands_of(name: &str, args: &[&[u8]]) -> Option<Result<Vec<PoolCommand>, ApplyError>> {
    match (name, args) {
        ("pool.load", [key, image]) => Some(loaded(key, image).map(|command| vec![command])),
        ("pool.step", [key, frame]) => Some(stepped(key, frame)),
        _ => None,
    }
}

fn loaded(key: &[u8], image: &[u8]) -> Result<PoolCommand, ApplyError> {
    let mut bytes = Cursor::new(image);
    let value = Pool::decode(&mut bytes).ok_or_else(|| {
        let (offset, len) = (bytes.offset(), image.len());
        Malformed::of(format!("the image of a pool, of {len} bytes, is none at its byte {offset}"))
    })?;
    let pool = value.inner();
    let urn = pool.urn();
    let mut command = PoolCommand::new("pool.create", key);
    command.text("COMMITMENT").text(pool.commitment().to_string());
    command.text("NEXT").text(pool.next_commitment().to_string());
    command.text("MODE").text(match urn.mode() {
        Mode::FixedOdds => "FIXED",
        Mode::PerUnit => "UNIT",
    });
    command.text("SOLDOUT");
    match urn.fallback() {
        Some(item) => command.text("FALLBACK").text(urn.id(item)),
        None if urn.keeps_odds() => command.text("NOPRIZE"),
        None => command.text("RENORMALISE"),
    };
    if let Some(rules) = pool.rules() {
        rules.limits().iter().for_each(|limit| command.limit(pool, limit));
        rules.guarantees().iter().for_each(|guarantee| command.guarantee(pool, guarantee));
    }
    urn.releases().iter().for_each(|release| command.release(pool, release));
    for table in 0..urn.tables() {
        let entries: Vec<Entry<'_>> = urn.table_items(table).filter_map(|item| urn.entry(item)).collect();
        command.text("TABLE").text(urn.table_name(table)).number(entries.len() as u64);
        entries.iter().for_each(|entry| command.entry(entry));
    }
    command.text("ITEMS");
    urn.entries().filter(|entry| entry.table.is_none()).for_each(|entry| command.entry(&entry));
    Ok(command)
}

fn stepped(key: &[u8], frame: &[u8]) -> Result<Vec<PoolCommand>, ApplyError> {
    let mut all: Vec<PoolCommand> = Vec::new();
    // Only a reader of the whole log can check that the frame continues the one before it.
    let frame = Frame::read_alone(frame).map_err(|error| Malformed::of(error.to_string()))?;
    let mut next_draw = frame.first_draw;
    // Consecutive draws are merged into one command.
    let mut is_open = false;
    for event in Events::new(frame.events) {
        let event = event.map_err(|error| Malformed::of(format!("an event of a pool: {error}")))?;
        if let Event::Drew(item) = event {
            if !is_open {
                let mut command = PoolCommand::new("pool.draw", key);
                command.number(next_draw);
                all.push(command);
            }
            is_open = true;
            next_draw += 1;
            all.last_mut().expect("a draw has been opened").item(item);
            continue;
        }
        is_open = false;
        let (command, draws) = command_of(key, &event, next_draw);
        next_draw += draws;
        all.push(command);
    }
    Ok(all)
}

/// Returns the change-stream form of one event, and its number of draws.
fn command_of(key: &[u8], event: &Event<'_>, next_draw: u64) -> (PoolCommand, u64) {
    let mut command = PoolCommand::new(name(event), key);
    match event {
        Event::Drew(item) => {
            command.number(next_draw).item(*item);
            return (command, 1);
        }
        Event::DrewDifferent { items } => {
            command.number(next_draw);
            items.iter().for_each(|item| _ = command.item(*item));
            return (command, items.len() as u64);
        }
        Event::Reserved { items, until_us, .. } => {
            command.number(next_draw).number(*until_us);
            items.iter().for_each(|item| _ = command.item(*item));
            return (command, items.len() as u64);
        }
        Event::Asked(asked) => {
            command.number(next_draw);
            if let Some(until_us) = asked.until_us {
                command.number(until_us);
            }
            command.by(&asked.by);
            asked.items.iter().for_each(|item| _ = command.item(*item));
            return (command, asked.items.len() as u64);
        }
        Event::Ended { number, .. } => command.number(*number),
        Event::Changed { item, weight, stock } => {
            command.text("SET").number(u64::from(*item)).number(*weight).stock(*stock)
        }
        Event::Added { id, weight, stock } => command.text("ADD").text(id).number(*weight).stock(*stock),
        Event::Removed { item } => command.text("REMOVE").number(u64::from(*item)),
        Event::GivenBack { item, count } => command.number(u64::from(*item)).number(*count),
        Event::GivenBackBy { user, item, count, .. } => {
            command.number(u64::from(*item)).number(*count).text("USER").text(user)
        }
        Event::Advanced { now_ms } => command.number(*now_ms),
        Event::Epoch { client_seed, after } => {
            command.text("SEED").text(client_seed).text("NEXT").text(after.commitment().to_string())
        }
    };
    (command, 0)
}

fn name(event: &Event<'_>) -> &'static str {
    match event {
        Event::Asked(asked) if asked.until_us.is_some() => "pool.reserve",
        Event::Drew(_) | Event::DrewDifferent { .. } | Event::Asked(_) => "pool.draw",
        Event::Reserved { .. } => "pool.reserve",
        Event::Ended { how: Ending::Confirmed, .. } => "pool.confirm",
        Event::Ended { how: Ending::Cancelled, .. } => "pool.cancel",
        Event::Ended { how: Ending::Expired, .. } => "pool.expire",
        Event::Changed { .. } | Event::Added { .. } | Event::Removed { .. } => "pool.update",
        Event::GivenBack { .. } | Event::GivenBackBy { .. } => "pool.return",
        Event::Advanced { .. } => "pool.release",
        Event::Epoch { .. } => "pool.epoch",
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, Selection};
    use std::sync::Arc;
    use tidemark_engine::{Call, Engine, Reply, command};
    use tidemark_log::{Log, Lsn, MemoryStorage, Options};

    fn run(engine: &Engine, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = command::resolve(&words).expect("a command");
        let mut reply = Reply::default();
        engine.execute(&Call { command, args: &words, db: 0, now_us: 1_000_000 }, &mut reply);
        String::from_utf8_lossy(reply.bytes()).into_owned()
    }

    /// Returns the commands in the change stream, as lines.
    fn commands(engine: &Engine) -> Vec<String> {
        let log = engine.log();
        log.wait_durable(log.appended()).expect("memory does not fail");
        let mut replay = log.replay(Lsn(1)).expect("the log is complete");
        let mut lines = Vec::new();
        while let Some(batch) = replay.next_batch().expect("the log is sound") {
            for record in batch {
                let selection = Selection::default();
                let Some(json) = Format::Json.encode(&record, &selection, usize::MAX).expect("a record")
                else {
                    continue;
                };
                let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
                for command in json["commands"].as_array().expect("commands") {
                    let args = command["args"].as_array().expect("arguments").iter();
                    let args: Vec<&str> = args.map(|arg| arg.as_str().expect("text")).collect();
                    lines.push(format!(
                        "{} {}",
                        command["command"].as_str().expect("a name"),
                        args.join(" ")
                    ));
                }
            }
        }
        lines
    }

    #[test]
    fn pool_changes_are_published_without_secrets() {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log");
        let engine = Engine::new(Arc::new(log), 8, 42);
        run(&engine, "POOL.CREATE p SOLDOUT FALLBACK mug ITEMS car 0 1 mug 1 UNLIMITED");
        for line in [
            "POOL.DRAW p",
            "POOL.DRAW p COUNT 3",
            "POOL.DRAW p COUNT 1 UNIQUE",
            "POOL.RESERVE p 1000 COUNT 2",
            "POOL.CONFIRM p 5",
            "POOL.DRAW p REQUEST r1",
            "POOL.DRAW p REQUEST r1",
            "POOL.DRAW p USER mira COUNT 2",
            "POOL.RESERVE p 1000 USER mira REQUEST r2",
            "POOL.UPDATE p WEIGHT car 7 ADD hat 2 3 REMOVE car",
            "POOL.RETURN p mug 2",
            "POOL.EPOCH p SEED luck",
        ] {
            assert!(!run(&engine, line).starts_with('-'), "{line}");
        }
        let state = run(&engine, "POOL.STATE p");
        let (commands, revealed) = (commands(&engine), run(&engine, "POOL.REVEAL p"));
        let hexadecimal = |text: &str| {
            let words = text.split("\r\n").filter(|word| word.len() == 64).map(str::to_owned);
            words.collect::<Vec<_>>()
        };
        let [commitment, next] = &hexadecimal(&state)[..2] else { panic!("{state}") };
        let [secret, first] = &hexadecimal(&revealed)[..] else { panic!("{revealed}") };
        assert_eq!(
            commands,
            [
                format!(
                    "pool.create p COMMITMENT {first} NEXT {commitment} MODE FIXED SOLDOUT FALLBACK mug \
                     ITEMS car 0 1 mug 1 UNLIMITED"
                ),
                "pool.draw p 0 1".to_owned(),
                "pool.draw p 1 1 1 1".to_owned(),
                "pool.draw p 4 1".to_owned(),
                "pool.reserve p 5 2000000 1 1".to_owned(),
                "pool.confirm p 5".to_owned(),
                "pool.draw p 7 REQUEST r1 1".to_owned(),
                "pool.draw p 8 USER mira 1 1".to_owned(),
                "pool.reserve p 10 2000000 USER mira REQUEST r2 1".to_owned(),
                "pool.update p SET 0 7 1".to_owned(),
                "pool.update p ADD hat 2 3".to_owned(),
                "pool.update p REMOVE 0".to_owned(),
                "pool.return p 1 2".to_owned(),
                format!("pool.epoch p SEED luck NEXT {next}"),
            ]
        );
        assert!(!commands.join(" ").contains(secret), "not even of an epoch that is over");
    }

    #[test]
    fn rules_are_published_as_they_are_given() {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log");
        let engine = Engine::new(Arc::new(log), 8, 42);
        let schedule = "SCHEDULE car 3 FROM 1000 EVERY 5000 TIMES 3 LAPSES";
        let tables = "TABLE wheels 2 bicycle 3 4 hat 1 UNLIMITED";
        let rules = "LIMIT DRAWS 2 PER 5000 LIMIT WINS 1 OF 2 car mug GUARANTEE 3 POOL SOFT 2 1 OF 1 car GUARANTEE 4 OF 1 mug";
        for line in [
            &format!(
                "POOL.CREATE p {rules} {schedule} {tables} ITEMS car 0 1 mug 1 UNLIMITED rare 0 TABLE:wheels"
            ),
            "POOL.DRAW p USER mira",
            "POOL.RETURN p mug 1 USER mira",
        ] {
            assert!(!run(&engine, line).starts_with('-'), "{line}");
        }
        let commands = commands(&engine);
        let expected = format!(
            " SOLDOUT RENORMALISE {rules} {schedule} {tables} ITEMS car 0 1 mug 1 UNLIMITED rare 0 TABLE:wheels"
        );
        assert!(commands[0].ends_with(&expected), "{}", commands[0]);
        assert_eq!(
            commands[1..],
            ["pool.release p 1000", "pool.draw p 0 USER mira 1", "pool.return p 1 1 USER mira"]
        );
    }
}
