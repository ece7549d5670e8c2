//! A page as its reader sees it: blocks, each with what to do with it.
//!
//! | block | |
//! |---|---|
//! | `console` | lines after a prompt are typed, those below them are compared with the output |
//! | `sh` | is run by the page's shell and must succeed |
//! | `yaml FILE`, `csv FILE` | becomes a file in the reader's directory |
//! | `rust` | is compiled and run as a documentation test |
//! | `text` | shows something that is not typed |
//! | any, with `(not run: why)` | is not run |
//!
//! Prompts of `console` are `$ ` of the page's shell, `> ` of `tidemark cli` in one terminal (or of
//! the client that the page has started there, with the prompt that this one has), and `other> ` of
//! `tidemark cli` in another. Output that arrives in the first terminal after a command in the
//! other is shown after the other's answer. Two spaces and `# ` begin a remark, which is not typed.
//! `…` stands for what varies: a part of a line, or, alone on a line, any number of lines. `‹name›`
//! stands for what varies as well, and for the same value in every line below.

/// A page of the book.
pub(super) struct Page {
    pub(super) path: String,
    pub(super) blocks: Vec<Block>,
}

/// A fenced block.
pub(super) struct Block {
    /// Number of the line of the first fence, from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) lines: Vec<String>,
}

#[derive(PartialEq, Eq)]
pub(super) enum Kind {
    Console,
    Shell,
    File(String),
    Rust,
    Text,
    NotRun(String),
    Unknown(String),
}

/// A typed line, and the answer that the page shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// Number of the line, from 1.
    pub(super) line: usize,
    pub(super) prompt: Prompt,
    pub(super) typed: String,
    pub(super) answer: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Shell,
    First,
    Other,
}

impl Page {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let mut blocks: Vec<Block> = Vec::new();
        let mut is_open = false;
        for (number, line) in (1..).zip(text.lines()) {
            match line.strip_prefix("```") {
                Some(_) if is_open => is_open = false,
                Some(info) => {
                    is_open = true;
                    blocks.push(Block { line: number, kind: Kind::parse(info.trim()), lines: Vec::new() });
                }
                None if is_open => blocks.last_mut().expect("it is open").lines.push(line.to_owned()),
                None => {}
            }
        }
        assert!(!is_open, "{path}: the last block has no end");
        Self { path: path.to_owned(), blocks }
    }
}

impl Kind {
    fn parse(info: &str) -> Self {
        if let Some((_, reason)) = info.split_once("(not run: ") {
            return Self::NotRun(reason.trim_end_matches(')').to_owned());
        }
        match info.split_once(' ').map_or((info, ""), |(language, rest)| (language, rest.trim())) {
            ("console", "") => Self::Console,
            ("sh", "") => Self::Shell,
            ("rust", "") => Self::Rust,
            ("text", "") => Self::Text,
            ("yaml" | "csv", file) if !file.is_empty() => Self::File(file.to_owned()),
            _ => Self::Unknown(info.to_owned()),
        }
    }
}

impl Block {
    /// Returns the exchanges of a `console` block, in order.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        let mut exchanges: Vec<Exchange> = Vec::new();
        for (line, text) in (self.line + 1..).zip(&self.lines) {
            let text = without_remark(text);
            let prompts = [
                ("$ ", Prompt::Shell),
                ("> ", Prompt::First),
                ("127.0.0.1:7379> ", Prompt::First),
                ("other> ", Prompt::Other),
            ];
            let typed =
                prompts.into_iter().find_map(|(mark, prompt)| Some((prompt, text.strip_prefix(mark)?)));
            match (typed, exchanges.last_mut()) {
                (Some((prompt, typed)), _) => {
                    exchanges.push(Exchange { line, prompt, typed: typed.to_owned(), answer: Vec::new() });
                }
                (None, Some(last)) => last.answer.push(text.to_owned()),
                (None, None) => panic!("line {line}: what answers nothing: {text}"),
            }
        }
        exchanges
    }
}

/// Returns a line without its remark and trailing spaces.
fn without_remark(line: &str) -> &str {
    line.split_once("  # ").map_or(line, |(text, _)| text).trim_end()
}

#[test]
fn a_page_is_blocks_of_exchanges() {
    let text = "\
# Title
```console
> SET k \"a  b\"      # a remark
OK
other> GET k
\"a  b\"

1> \"push\"
```
```sh (not run: it takes long)
sleep 1000
```
```yaml a.yaml
a: 1
```
";
    let page = Page::parse("page", text);
    let exchange = |line, prompt, typed: &str, answer: &[&str]| Exchange {
        line,
        prompt,
        typed: typed.to_owned(),
        answer: answer.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(
        page.blocks[0].exchanges(),
        [
            exchange(3, Prompt::First, "SET k \"a  b\"", &["OK"]),
            exchange(5, Prompt::Other, "GET k", &["\"a  b\"", "", "1> \"push\""]),
        ]
    );
    assert!(page.blocks[1].kind == Kind::NotRun("it takes long".to_owned()));
    assert!(page.blocks[2].kind == Kind::File("a.yaml".to_owned()));
}
