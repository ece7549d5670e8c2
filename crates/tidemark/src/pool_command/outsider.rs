//! `tidemark pool verify --audit`: verifies draws with an exported audit and the revealed
//! secrets alone, without access to the server.
//!
//! The file has the state of the pool and everything logged after it, with commitments in place of
//! secrets. The check writes all lines again from this, draw by draw, and compares them with the
//! file. Secrets in the file, and secrets given as arguments, must match their commitments, and the
//! draws must follow from them.

use super::hexadecimal;
use super::line::{AUDIT, Line, Stated};
use super::scribe::{Lines, Scribe};
use super::tally::{Demands, Tally};
use anyhow::{Context, anyhow, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use tidemark_engine::value::pool::{Inner, Sight};
use tidemark_pool::selector::{AnySelector, SelectorKind};
use tidemark_pool::{Chain, Commitment, Events, Frame, PoolImage, Recorder, Secret, unsealed};

/// Longest line that is read: a call of a million draws takes some megabytes. Bytes.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Longest file of secrets. Bytes.
const SECRETS_BYTES_MAX: u64 = 16 << 20;

/// Checks a file and reports what was checked.
pub(super) fn run(
    path: &Path,
    secrets: &[[u8; 32]],
    revealed: &[String],
    mut demands: Demands,
) -> anyhow::Result<ExitCode> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut all = secrets.to_vec();
    for secret in secrets {
        demands.secrets(format!("--secret {}", hexadecimal::encode(secret)), &[*secret]);
    }
    for argument in revealed {
        let secrets = revealed_by(argument)?;
        demands.secrets(format!("--revealed {argument}"), &secrets);
        all.extend(secrets);
    }
    let mut input = Input { reader: BufReader::new(file), line: 0, ahead: None };
    let known = Known::of(&mut input, &all)
        .map_err(|error| anyhow!("{}, line {}: {error:#}", path.display(), input.line))?;
    input.begin_again()?;
    let (key, expected) = (String::new(), Expected::default());
    let mut outsider = Outsider { known, demands, pools: 0, key, now: None, expected };
    outsider
        .check(&mut input)
        .map_err(|error| anyhow!("not good\n{}, line {}: {error:#}", path.display(), input.line))?;
    outsider.demands.check()?;
    outsider.report(path)
}

/// Returns the secrets of an argument: the argument itself, or a file with one secret a line or in
/// the form of a reply to `POOL.REVEAL`.
fn revealed_by(given: &str) -> anyhow::Result<Vec<[u8; 32]>> {
    if let Ok(secret) = hexadecimal::decode(given) {
        return Ok(vec![secret]);
    }
    let mut text = String::new();
    let file = File::open(given)
        .with_context(|| format!("--revealed {given:?} is neither 64 hexadecimal digits nor a file"))?;
    file.take(SECRETS_BYTES_MAX).read_to_string(&mut text).with_context(|| format!("cannot read {given}"))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut stated = lines.clone().filter_map(|line| line.strip_prefix("secret ")).peekable();
    let read = |line: &str| hexadecimal::decode(line.trim()).map_err(|error| anyhow!("{given}: {error}"));
    if stated.peek().is_some() { stated.map(read).collect() } else { lines.map(read).collect() }
}

/// Known secrets, by their commitments.
struct Known(HashMap<[u8; 32], Secret>);

impl Known {
    /// Collects the given secrets, and those anywhere in the file.
    fn of(input: &mut Input, given: &[[u8; 32]]) -> anyhow::Result<Self> {
        let mut known = Self(HashMap::new());
        given.iter().for_each(|secret| known.add(*secret));
        while let Some(line) = input.next()? {
            // Most lines have none.
            if line.contains("\"secret\"") {
                let stated: Stated = serde_json::from_str(&line).with_context(|| input.place())?;
                let secret = stated.secret.map(|secret| hexadecimal::decode(&secret)).transpose();
                secret
                    .map_err(|error| anyhow!("{}: {error}", input.place()))?
                    .into_iter()
                    .for_each(|secret| known.add(secret));
            }
        }
        Ok(known)
    }

    fn add(&mut self, bytes: [u8; 32]) {
        let secret = Secret::new(bytes);
        self.0.insert(secret.commitment().0, secret);
    }

    fn get(&self, commitment: Commitment) -> Option<Secret> {
        self.0.get(&commitment.0).cloned()
    }
}

/// The lines of a file.
struct Input {
    reader: BufReader<File>,
    /// Number of the line read last, counted from 1.
    line: u64,
    ahead: Option<String>,
}

impl Input {
    fn next(&mut self) -> anyhow::Result<Option<String>> {
        if let Some(line) = self.ahead.take() {
            self.line += 1;
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        if self.reader.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        ensure!(
            line.len() as u64 <= LINE_BYTES_MAX,
            "{} is longer than {LINE_BYTES_MAX} bytes",
            self.place()
        );
        let line = String::from_utf8(line).with_context(|| format!("{} is not UTF-8", self.place()))?;
        ensure!(!line.trim().is_empty(), "the line is empty");
        Ok(Some(line))
    }

    fn put_back(&mut self, line: String) {
        self.line -= 1;
        self.ahead = Some(line);
    }

    fn begin_again(&mut self) -> io::Result<()> {
        (self.line, self.ahead) = (0, None);
        self.reader.rewind()
    }

    fn place(&self) -> String {
        format!("line {}", self.line)
    }
}

/// A map without duplicate names: readers would not agree on which value counts.
struct Once(Map<String, Value>);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Once;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Once, A::Error> {
                let mut map = Map::new();
                while let Some((name, value)) = fields.next_entry::<String, Value>()? {
                    if map.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("{name:?} is given twice")));
                    }
                    map.insert(name, value);
                }
                Ok(Once(map))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Lines that must come next in the file.
#[derive(Default)]
struct Expected(VecDeque<Value>);

impl Lines for Expected {
    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        // Numbers are compared as parsed, so an expected line is written and parsed as well.
        let text = serde_json::to_vec(line)?;
        self.0.push_back(serde_json::from_slice(&text)?);
        Ok(())
    }
}

/// State of the pool up to the line read last.
struct Now {
    pool: Inner,
    chain: Chain,
    scribe: Scribe,
    tally: Tally,
}

struct Outsider {
    known: Known,
    demands: Demands,
    /// Number of earlier pools in the file.
    pools: u64,
    key: String,
    now: Option<Now>,
    expected: Expected,
}

impl Outsider {
    fn check(&mut self, input: &mut Input) -> anyhow::Result<()> {
        while let Some(line) = input.next()? {
            let stated: Stated =
                serde_json::from_str(&line).context("this is not a line of an audit in JSON Lines")?;
            match &*stated.event {
                "pool" => self.begin(&stated, &line, input)?,
                "frame" => self.frame(&stated, &line, input)?,
                "gone" => {}
                other => bail!("the event {other:?} does not follow from the lines before it"),
            }
        }
        ensure!(self.now.is_some(), "the file has no pool");
        Ok(())
    }

    fn begin(&mut self, stated: &Stated, line: &str, input: &mut Input) -> anyhow::Result<()> {
        ensure!(
            stated.audit == AUDIT,
            "the audit has version {}; this program reads version {AUDIT}",
            stated.audit
        );
        let mut scribe = Scribe::new(stated.key.clone(), stated.db);
        let (pool, parts) = self.read(stated.selector.parse()?, input)?;
        let chain = chain_of(stated)?;
        if stated.made {
            let expected = pool.origin();
            ensure!(
                chain == expected,
                "the pool's chain begins with {chain}; expected {expected}, from its commitments and items"
            );
        }
        scribe.pool(stated.lsn, &pool, chain, stated.made, &mut self.expected)?;
        for line in std::iter::once(line.to_owned()).chain(parts) {
            self.meet(&line)?;
        }
        self.meet_rest(input)?;
        self.pools += u64::from(self.now.is_some());
        self.key.clone_from(&stated.key);
        self.demands.pass(&pool, chain);
        self.demands.pass_over(&pool);
        let tally = Tally::of(stated.lsn, &pool, chain, stated.made);
        self.now = Some(Now { pool, chain, scribe, tally });
        Ok(())
    }

    /// Reads the pool from the lines that come next; also returns these lines.
    fn read(&self, selector: SelectorKind, input: &mut Input) -> anyhow::Result<(Inner, Vec<String>)> {
        let (mut head, mut image, mut lines) = (Vec::new(), None::<PoolImage>, Vec::new());
        while let Some(line) = input.next()? {
            let part: Stated =
                serde_json::from_str(&line).context("this is not a line of an audit in JSON Lines")?;
            match &*part.event {
                "head" => head.extend(bytes_of(&part)?),
                "items" => {
                    if image.is_none() {
                        image = Some(PoolImage::read(&head)?);
                    }
                    let items = bytes_of(&part)?;
                    image.as_mut().context("the items stand before the head")?.read_items(&items)?;
                }
                _ => {
                    input.put_back(line);
                    break;
                }
            }
            lines.push(line);
        }
        let mut image = image.context("the bytes of the pool are missing")?;
        image.unseal(|commitment| self.known.get(commitment));
        Ok((image.finish_with(|weights| AnySelector::with(selector, weights))?, lines))
    }

    fn frame(&mut self, stated: &Stated, line: &str, input: &mut Input) -> anyhow::Result<()> {
        let (bytes, said) = (bytes_of(stated)?, chain_of(stated)?);
        let now = self.now.as_mut().context("the pool of this frame is missing before it")?;
        let Stated { time_us, first_draw, .. } = *stated;
        let next = now.pool.next_draw();
        ensure!(
            first_draw == next,
            "draws are missing: expected draw {next}, but the frame begins with {first_draw}"
        );
        let sealed = Frame { time_us, first_draw, events: &bytes };
        now.scribe.sealed_frame(stated.lsn, &sealed, said, &mut self.expected)?;
        let (mut events, mut is_sealed) = (Recorder::default(), false);
        for event in Events::new(&bytes) {
            let event = unsealed(event?, |commitment| self.known.get(commitment));
            if let tidemark_pool::Event::Epoch { after, .. } = &event {
                is_sealed |= after.is_sealed();
            }
            now.scribe.see(Sight::Before(&now.pool, &event), &mut self.expected)?;
            now.pool.check(time_us, &event)?;
            now.scribe.see(Sight::Behind(&now.pool, &event), &mut self.expected)?;
            now.tally.event(&now.pool, &event);
            events.record(&event);
        }
        let follows = Frame { time_us, first_draw, events: events.bytes() }.write(now.chain, &mut Vec::new());
        ensure!(is_sealed || follows == said, "the chain is {said}; expected {follows}");
        now.chain = said;
        now.tally.frame(stated.lsn, said, is_sealed);
        self.demands.pass(&now.pool, said);
        self.meet(line)?;
        self.meet_rest(input)
    }

    /// Checks that a line of the file is the next expected one.
    fn meet(&mut self, line: &str) -> anyhow::Result<()> {
        let expected = self
            .expected
            .0
            .pop_front()
            .context("the file has a line that does not follow from the lines before it")?;
        let Once(stated) = serde_json::from_str(line)?;
        if expected.as_object() == Some(&stated) {
            return Ok(());
        }
        // One wrong field is easier to see than two lines that differ.
        let other = expected.as_object().filter(|expected| expected.get("event") == stated.get("event"));
        let names = other.into_iter().flat_map(|expected| expected.keys().chain(stated.keys()));
        for name in names {
            let (said, follows) = (stated.get(name), expected.get(name));
            if said != follows {
                let word =
                    |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
                bail!("{name:?} is {}; expected {}", word(said), word(follows));
            }
        }
        bail!("found {}; expected {expected}", Value::Object(stated))
    }

    /// Checks that all expected lines come next.
    fn meet_rest(&mut self, input: &mut Input) -> anyhow::Result<()> {
        while let Some(expected) = self.expected.0.front() {
            let Some(line) = input.next()? else { bail!("the file ends; expected {expected}") };
            self.meet(&line)?;
        }
        Ok(())
    }

    fn report(&self, path: &Path) -> anyhow::Result<ExitCode> {
        let Some(now) = &self.now else { bail!("the file {} has no pool", path.display()) };
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "pool {}: good, according to {}",
            crate::name::printable(self.key.as_bytes()),
            path.display()
        )?;
        write!(out, "{}", now.tally)?;
        if self.pools > 0 {
            writeln!(out, "{} earlier pools in the file: good as well", self.pools)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn bytes_of(stated: &Stated) -> anyhow::Result<Vec<u8>> {
    BASE64_STANDARD.decode(&stated.bytes).context("the bytes are not base64")
}

fn chain_of(stated: &Stated) -> anyhow::Result<Chain> {
    let bytes = hexadecimal::decode(&stated.chain).map_err(|error| anyhow!("the chain: {error}"))?;
    Ok(Chain::from(bytes))
}
