//! The server's description of its commands: the source of completion, hints, help and suggestions.

use std::collections::BTreeMap;
use std::fmt::Write;
use tidemark_engine::command;
use tidemark_server::resp::Value;

/// The commands of a server by upper-case name; subcommands as `CONFIG GET`.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    commands: BTreeMap<String, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    summary: String,
    since: String,
    group: String,
    complexity: String,
    /// Arguments as hints show them: `key value [NX|XX]`.
    arguments: Vec<String>,
}

/// Most levels of nested arguments that are read: the description comes from outside.
const ARGUMENT_DEPTH_MAX: usize = 16;

impl Catalogue {
    /// Reads the reply to `COMMAND DOCS`; leaves out what it does not understand.
    pub(super) fn from_docs(reply: &Value) -> Self {
        let mut catalogue = Catalogue::default();
        catalogue.add("", reply);
        catalogue
    }

    fn add(&mut self, parent: &str, commands: &Value) {
        for (name, description) in commands.as_pairs().unwrap_or_default() {
            // Subcommands are named `config|get`.
            let name = text(name).to_uppercase().replace('|', " ");
            let arguments = field(description, "arguments").and_then(Value::as_elements).unwrap_or_default();
            let entry = Entry {
                summary: field(description, "summary").map(text).unwrap_or_default(),
                since: field(description, "since").map(text).unwrap_or_default(),
                group: field(description, "group").map(text).unwrap_or_default(),
                complexity: field(description, "complexity").map(text).unwrap_or_default(),
                arguments: arguments.iter().map(|argument| syntax(argument, 0)).collect(),
            };
            if parent.is_empty()
                && let Some(subcommands) = field(description, "subcommands")
            {
                self.add(&name, subcommands);
            }
            self.commands.insert(name, entry);
        }
    }

    /// Returns the names that start with `typed`, in any case.
    pub(super) fn completions(&self, typed: &str) -> Vec<&str> {
        let typed = typed.to_uppercase();
        let from_here = self.commands.range(typed.clone()..).map(|(name, _)| name.as_str());
        from_here.take_while(|name| name.starts_with(&typed)).collect()
    }

    /// Returns the arguments that are missing after `words`; `None` for an unknown command.
    pub(super) fn hint(&self, words: &[String]) -> Option<String> {
        let (entry, used) = self.find(words)?;
        let missing = entry.arguments.get(words.len() - used..).unwrap_or_default();
        (!missing.is_empty()).then(|| missing.join(" "))
    }

    /// Returns the text of `help words`: help for a command, or for a group written as `@group`.
    pub(super) fn help(&self, words: &[String]) -> String {
        if let Some(group) = words.first().and_then(|word| word.strip_prefix('@')) {
            return self.group_help(group);
        }
        let Some((entry, used)) = self.find(words) else {
            let known = !words.is_empty();
            return if known { self.unknown(&words.join(" ")) } else { self.overview() };
        };
        let name = words[..used].join(" ").to_uppercase();
        let mut help = format!("{name} {}\n", entry.arguments.join(" "));
        let lines = [
            ("summary", &entry.summary),
            ("group", &entry.group),
            ("cost", &entry.complexity),
            ("since", &entry.since),
        ];
        for (label, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
            put(&mut help, format_args!("  {label}: {value}\n"));
        }
        for subcommand in self.completions(&format!("{name} ")) {
            let summary = self.commands.get(subcommand).map_or("", |entry| entry.summary.as_str());
            put(&mut help, format_args!("  {subcommand}: {summary}\n"));
        }
        help
    }

    /// Returns known names that are close to `typed`, nearest first.
    pub(super) fn nearest(&self, typed: &str) -> Vec<&str> {
        command::similar(&typed.to_uppercase(), self.commands.keys().map(String::as_str))
    }

    fn find(&self, words: &[String]) -> Option<(&Entry, usize)> {
        [2, 1].into_iter().find_map(|used| {
            let name = words.get(..used)?.join(" ").to_uppercase();
            Some((self.commands.get(&name)?, used))
        })
    }

    fn unknown(&self, typed: &str) -> String {
        match self.nearest(typed).as_slice() {
            [] => format!("No command is named {typed:?}; `help` lists the groups.\n"),
            names => format!("No command is named {typed:?}; did you mean {}?\n", names.join(", ")),
        }
    }

    fn overview(&self) -> String {
        let mut groups: Vec<&str> = self.commands.values().map(|entry| entry.group.as_str()).collect();
        groups.retain(|group| !group.is_empty());
        groups.sort_unstable();
        groups.dedup();
        let groups: Vec<String> = groups.into_iter().map(|group| format!("@{group}")).collect();
        let groups =
            if groups.is_empty() { "(the server describes none)".to_owned() } else { groups.join(" ") };
        format!(
            "help COMMAND   what a command does and takes\nhelp @GROUP    a group's commands: {groups}\n\
             TAB            complete a command's name\nclear          clear the screen\nquit           leave\n"
        )
    }

    fn group_help(&self, group: &str) -> String {
        let mut help = String::new();
        for (name, entry) in self.commands.iter().filter(|(_, entry)| entry.group.eq_ignore_ascii_case(group))
        {
            put(&mut help, format_args!("{name} {}\n  {}\n", entry.arguments.join(" "), entry.summary));
        }
        if help.is_empty() { self.overview() } else { help }
    }
}

/// Returns the syntax of one argument: `[EX seconds|PX milliseconds]`, `key [key ...]`.
fn syntax(argument: &Value, depth: usize) -> String {
    if depth > ARGUMENT_DEPTH_MAX {
        return "…".to_owned();
    }
    let kind = field(argument, "type").map(text).unwrap_or_default();
    let inner = field(argument, "arguments").and_then(Value::as_elements).unwrap_or_default();
    let inner =
        |separator| inner.iter().map(|part| syntax(part, depth + 1)).collect::<Vec<_>>().join(separator);
    let body = match kind.as_str() {
        "pure-token" => String::new(),
        "oneof" => inner("|"),
        "block" => inner(" "),
        _ => {
            field(argument, "display_text").or_else(|| field(argument, "name")).map(text).unwrap_or_default()
        }
    };
    let flags = field(argument, "flags").and_then(Value::as_elements).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|given| given.as_bytes() == Some(flag.as_bytes()));
    let token = field(argument, "token").map(text).unwrap_or_default();
    let with_token = |body: &str| format!("{token} {body}").trim().to_owned();
    let whole = match (has("multiple"), has("multiple_token")) {
        (true, true) => format!("{} [{} ...]", with_token(&body), with_token(&body)),
        (true, false) => with_token(&format!("{body} [{body} ...]")),
        _ => with_token(&body),
    };
    if has("optional") { format!("[{whole}]") } else { whole }
}

fn field<'a>(description: &'a Value, name: &str) -> Option<&'a Value> {
    let pairs = description.as_pairs()?;
    pairs.into_iter().find(|(key, _)| key.as_bytes() == Some(name.as_bytes())).map(|(_, value)| value)
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::Catalogue;
    use tidemark_server::resp::Value;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn map(pairs: &[(&str, Value)]) -> Value {
        Value::Map(pairs.iter().map(|(name, value)| (bulk(name), value.clone())).collect())
    }

    fn argument(name: &str, kind: &str, extra: &[(&str, Value)]) -> Value {
        map(&[&[("name", bulk(name)), ("type", bulk(kind))], extra].concat())
    }

    fn flags(names: &[&str]) -> (&'static str, Value) {
        ("flags", Value::Set(names.iter().map(|name| bulk(name)).collect()))
    }

    fn catalogue() -> Catalogue {
        let ex = argument("seconds", "integer", &[("token", bulk("EX"))]);
        let nx = argument("nx", "pure-token", &[("token", bulk("NX"))]);
        let choice =
            argument("how", "oneof", &[("arguments", Value::Array(vec![ex, nx])), flags(&["optional"])]);
        let key = argument("key", "key", &[]);
        let keys = argument("key", "key", &[flags(&["multiple"])]);
        let set = [
            ("summary", bulk("Sets a value.")),
            ("group", bulk("string")),
            ("arguments", Value::Array(vec![key, argument("value", "string", &[]), choice])),
        ];
        let get = map(&[("summary", bulk("Reads settings."))]);
        Catalogue::from_docs(&map(&[
            ("set", map(&set)),
            ("del", map(&[("arguments", Value::Array(vec![keys]))])),
            ("config", map(&[("subcommands", map(&[("config|get", get)]))])),
        ]))
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn hints_show_what_is_still_to_be_typed() {
        let catalogue = catalogue();
        assert_eq!(catalogue.hint(&words("set")).as_deref(), Some("key value [EX seconds|NX]"));
        assert_eq!(catalogue.hint(&words("SET k")).as_deref(), Some("value [EX seconds|NX]"));
        assert_eq!(catalogue.hint(&words("set k v NX more")), None);
        assert_eq!(catalogue.hint(&words("del")).as_deref(), Some("key [key ...]"));
        assert_eq!(catalogue.hint(&words("nope")), None);
    }

    #[test]
    fn names_and_subcommands_complete() {
        let catalogue = catalogue();
        assert_eq!(catalogue.completions("s"), ["SET"]);
        assert_eq!(catalogue.completions("config "), ["CONFIG GET"]);
        assert!(catalogue.completions("zz").is_empty());
    }

    #[test]
    fn a_mistyped_name_finds_its_neighbours() {
        let catalogue = catalogue();
        assert_eq!(catalogue.nearest("ste"), ["SET"]);
        assert_eq!(catalogue.nearest("confg"), ["CONFIG"]);
        assert!(catalogue.nearest("frobnicate").is_empty());
        assert!(catalogue.nearest("gas").is_empty(), "two of three letters are another name");
        assert!(catalogue.help(&words("ste")).contains("did you mean SET?"));
    }

    #[test]
    fn help_explains_a_command_a_group_and_itself() {
        let catalogue = catalogue();
        let set = catalogue.help(&words("set"));
        assert_eq!(set, "SET key value [EX seconds|NX]\n  summary: Sets a value.\n  group: string\n");
        assert!(catalogue.help(&words("config")).contains("CONFIG GET: Reads settings."));
        assert!(catalogue.help(&words("@string")).contains("Sets a value."));
        assert!(catalogue.help(&[]).contains("@string"));
    }

    #[test]
    fn what_is_no_description_is_left_out() {
        let catalogue = Catalogue::from_docs(&Value::Error(b"ERR unknown".to_vec()));
        assert_eq!(catalogue.hint(&words("set")), None);
        assert!(catalogue.help(&[]).contains("describes none"));
    }
}
