//! What scripts get, give and cannot reach.

use crate::script::Script;
use crate::{Answer, Caller, with_interpreter};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Answers `ECHO` with its argument, and other commands with the answer in their second argument.
#[derive(Default)]
struct Echo {
    calls: usize,
    questions: usize,
    /// Question at which the script is ended.
    ends_at: Option<usize>,
    logged: Vec<(u8, String)>,
}

impl Caller for Echo {
    fn call(
        &mut self,
        args: &[&[u8]],
        _is_resp3: bool,
        answer: &mut Vec<u8>,
    ) -> Result<(), Cow<'static, str>> {
        self.calls += 1;
        match args {
            [b"ECHO", text] => {
                answer.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
                answer.extend_from_slice(text);
                answer.extend_from_slice(b"\r\n");
            }
            [b"ANSWER", encoded] => answer.extend_from_slice(encoded),
            _ => return Err("Unknown Redis command called from script".into()),
        }
        Ok(())
    }

    fn interrupt(&mut self) -> Option<&'static str> {
        self.questions += 1;
        (Some(self.questions) == self.ends_at).then_some("Script killed by user with SCRIPT KILL.")
    }

    fn log(&mut self, level: u8, message: &[u8]) {
        self.logged.push((level, String::from_utf8_lossy(message).into_owned()));
    }

    fn knows(&self, name: &[u8]) -> bool {
        name == b"ECHO"
    }
}

/// Bytes of an answer after which it is full.
const MOST_SHOWN: usize = 1 << 20;

/// An answer as a line of text.
#[derive(Default)]
struct Shown(String);

impl Answer for Shown {
    fn is_full(&self) -> bool {
        self.0.len() > MOST_SHOWN
    }
    fn integer(&mut self, value: i64) {
        let _ = write!(self.0, "{value} ");
    }
    fn bulk(&mut self, bytes: &[u8]) {
        let _ = write!(self.0, "\"{}\" ", bytes.escape_ascii());
    }
    fn simple(&mut self, text: &[u8]) {
        let _ = write!(self.0, "+{} ", text.escape_ascii());
    }
    fn error(&mut self, text: &[u8]) {
        let _ = write!(self.0, "-{} ", String::from_utf8_lossy(text));
    }
    fn null(&mut self) {
        self.0 += "null ";
    }
    fn boolean(&mut self, value: bool) {
        let _ = write!(self.0, "#{value} ");
    }
    fn double(&mut self, value: f64) {
        let _ = write!(self.0, ",{value} ");
    }
    fn big_number(&mut self, digits: &[u8]) {
        let _ = write!(self.0, "({} ", digits.escape_ascii());
    }
    fn verbatim(&mut self, format: &[u8], text: &[u8]) {
        let _ = write!(self.0, "={}:{} ", format.escape_ascii(), text.escape_ascii());
    }
    fn array(&mut self, len: usize) {
        let _ = write!(self.0, "*{len} ");
    }
    fn map(&mut self, pairs: usize) {
        let _ = write!(self.0, "%{pairs} ");
    }
    fn set(&mut self, len: usize) {
        let _ = write!(self.0, "~{len} ");
    }
}

fn run_with(text: &str, keys: &[&[u8]], args: &[&[u8]], caller: &mut Echo) -> String {
    let script = Script::new(text.as_bytes(), |_| false).expect("a first line that is valid");
    let mut answer = Shown::default();
    with_interpreter(|interpreter| interpreter.run(&script, (keys, args), caller, &mut answer))
        .expect("an interpreter");
    answer.0.trim_end().replace(&crate::script::hexadecimal(&script.id), "SHA")
}

fn run(text: &str) -> String {
    run_with(text, &[b"k1", b"k2"], &[b"a1"], &mut Echo::default())
}

fn check(cases: &[(&str, &str)]) {
    for (text, answer) in cases {
        assert_eq!(run(text), *answer, "{text}");
    }
}

#[test]
fn values_become_answers_as_in_redis() {
    check(&[
        ("return 1", "1"),
        ("return 3.99", "3"),
        ("return -3.99", "-3"),
        ("return 'a\\0b'", "\"a\\x00b\""),
        ("return true", "1"),
        ("return false", "null"),
        ("return nil", "null"),
        ("return", "null"),
        ("return {1, 2, {3, 'x'}, nil, 4}", "*3 1 2 *2 3 \"x\""),
        ("return {}", "*0"),
        ("return {ok = 'fine'}", "+fine"),
        ("return {err = 'ERR bad'}", "-ERR bad"),
        ("return {double = 1.5}", ",1.5"),
        ("return {map = {a = 1}}", "%1 \"a\" 1"),
        ("return {set = {a = true}}", "~1 \"a\""),
        ("return {big_number = '123'}", "(123"),
        ("return {verbatim_string = {format = 'txt', string = 'x'}}", "=txt:x"),
        ("return {verbatim_string = {string = 'x'}}", "*0"),
        ("redis.setresp(3) return true", "#true"),
        ("return redis.status_reply('FINE')", "+FINE"),
        ("return redis.error_reply('My error')", "-My error"),
        ("return redis.error_reply('-My error')", "-My error"),
        ("return redis.error_reply('WORD')", "-ERR WORD"),
        ("return redis.error_reply()", "-ERR wrong number or type of arguments"),
        ("return {KEYS, ARGV}", "*2 *2 \"k1\" \"k2\" *1 \"a1\""),
        ("return redis.sha1hex('')", "\"da39a3ee5e6b4b0d3255bfef95601890afd80709\""),
        ("return function() end", "null"),
    ]);
}

#[test]
fn a_table_in_itself_ends_where_redis_ends() {
    let answer = run("local t = {} t[1] = t return t");
    assert!(answer.ends_with("-ERR reached lua stack limit"), "{answer}");
}

#[test]
fn answers_of_commands_become_values_as_in_redis() {
    check(&[
        ("return redis.call('ECHO', 'x')", "\"x\""),
        ("return redis.call('ECHO', 12)", "\"12\""),
        ("return redis.call('ECHO', 0.1)", "\"0.10000000000000001\""),
        ("return redis.call('ANSWER', ':7\\r\\n') + 1", "8"),
        ("return type(redis.call('ANSWER', '$-1\\r\\n'))", "\"boolean\""),
        ("return type(redis.call('ANSWER', '*-1\\r\\n'))", "\"boolean\""),
        ("return redis.call('ANSWER', '+OK\\r\\n').ok", "\"OK\""),
        ("return redis.call('ANSWER', '*2\\r\\n:1\\r\\n*1\\r\\n$1\\r\\na\\r\\n')", "*2 1 *1 \"a\""),
        ("return redis.pcall('ANSWER', '-WRONGTYPE no\\r\\n').err", "\"WRONGTYPE no\""),
        ("return redis.call('ANSWER', '%1\\r\\n+a\\r\\n:1\\r\\n').map ~= nil", "1"),
        ("return redis.call('ANSWER', '~1\\r\\n$1\\r\\na\\r\\n').set.a", "1"),
        ("return type(redis.call('ANSWER', '_\\r\\n'))", "\"nil\""),
        ("return redis.call('ANSWER', ',1.5\\r\\n').double * 2", "3"),
        ("return redis.call('ANSWER', '(123\\r\\n').big_number", "\"123\""),
        ("return redis.call('ANSWER', '=5\\r\\ntxt:x\\r\\n').verbatim_string.string", "\"x\""),
        ("return redis.call('ANSWER', '#t\\r\\n')", "1"),
    ]);
}

#[test]
fn errors_name_their_place() {
    check(&[
        (
            "return redis.call('NONE')",
            "-ERR Unknown Redis command called from script script: SHA, on @user_script:1.",
        ),
        ("return redis.pcall('NONE')", "-ERR Unknown Redis command called from script"),
        ("\nredis.call('ANSWER', '-WRONGTYPE no\\r\\n')", "-WRONGTYPE no script: SHA, on @user_script:2."),
        (
            "redis.call()",
            "-ERR Please specify at least one argument for this redis lib call script: SHA, on @user_script:1.",
        ),
        (
            "redis.call('ECHO', {})",
            "-ERR Lua redis lib command arguments must be strings or integers script: SHA, on @user_script:1.",
        ),
        ("error('oops')", "-ERR user_script:1: oops script: SHA, on @user_script:1."),
        ("error({err = 'CODE oops'})", "-CODE oops script: SHA, on @user_script:1."),
        (
            "return x + 1",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: SHA, on \
             @user_script:1.",
        ),
        ("x = 1", "-ERR user_script:1: Attempt to modify a readonly table script: SHA, on @user_script:1."),
        (
            "local x = nil return x.y",
            "-ERR user_script:1: attempt to index local 'x' (a nil value) script: SHA, on @user_script:1.",
        ),
        ("return pcall(function() error('x') end)", "null"),
        ("return {pcall(function() error({err = 'E x'}) end)}", "*2 null \"E x\""),
        ("return select(2, pcall(redis.call, 'NONE'))", "\"ERR Unknown Redis command called from script\""),
        (
            "return cjson.decode('[1')",
            "-ERR user_script:1: Expected comma or array end but found T_END at character 3 script: SHA, on \
             @user_script:1.",
        ),
    ]);
    let unfinished = run("if");
    assert!(
        unfinished.starts_with("-ERR Error compiling script (new function): user_script:1: "),
        "{unfinished}"
    );
}

#[test]
fn nothing_that_scripts_share_can_be_changed() {
    const REFUSED: &str =
        "-ERR user_script:1: Attempt to modify a readonly table script: SHA, on @user_script:1.";
    for text in [
        "redis.call = nil",
        "string.rep = nil",
        "_G.x = 1",
        "KEYS = {}",
        "math.random = nil",
        "cjson.encode = nil",
        "table.insert(redis, 1)",
        "getmetatable('').__index = {}",
        "local _, shown = pairs(string) shown.rep = nil",
    ] {
        assert_eq!(run(text), REFUSED, "{text}");
    }
    for text in [
        "rawset(_G, 'x', 1)",
        "rawset(string, 'rep', nil)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
    ] {
        let refused = "-ERR Attempt to modify a readonly table script: SHA, on @user_script:1.";
        assert_eq!(run(text), refused, "{text}");
    }
    check(&[
        ("return getmetatable(_G)", "null"),
        ("for name in pairs(bit) do if name == 'band' then return 'listed' end end", "\"listed\""),
        ("return next({}) == nil", "1"),
        ("return rawget(_G, 'undefined') == nil", "1"),
        ("return ('x'):rep(3)", "\"xxx\""),
        ("return _G.KEYS[1]", "\"k1\""),
    ]);
}

#[test]
fn nothing_leads_out_of_the_sandbox() {
    for name in [
        "os", "io", "debug", "require", "package", "module", "dofile", "loadfile", "getfenv", "setfenv",
        "print", "newproxy", "host",
    ] {
        let answer = run(&format!("return {name}"));
        assert!(answer.contains(&format!("nonexistent global variable '{name}'")), "{answer}");
    }
    check(&[
        ("return select(2, loadstring('\\27Lua'))", "\"bytecode is not loaded\""),
        ("return select(2, load(function() return nil end)) == nil", "1"),
        ("return loadstring('return 1 + 1')()", "2"),
        ("return (select(2, pcall(loadstring('x = 1'))):find('Attempt to modify a readonly table'))", "21"),
        ("return pcall(string.dump, function() end)", "null"),
        ("return collectgarbage('stop')", "0"),
    ]);
    let answer = run("return loadstring('os.exit()')()");
    assert!(answer.contains("nonexistent global variable 'os'"), "{answer}");
    let answer = run("local f = string.dump(function() end) return f");
    assert!(answer.contains("unable to dump given function"), "{answer}");
}

#[test]
fn no_script_takes_more_than_its_memory_or_stack() {
    let memory = run("local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1e6) .. i end");
    assert!(memory.contains("not enough memory"), "{memory}");
    assert_eq!(run("return 1"), "1", "the next script has an interpreter");
    for text in [
        "local function f() return 1 + f() end return f()",
        "local s = string.rep('x', 1e10) return #s",
        "return unpack({}, 1, 1e8)",
        "return string.rep('(', 40000):find(string.rep('(', 40000))",
        "return ('a'):rep(100000):find(('a?'):rep(100000))",
        "local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
        "return cjson.decode(('['):rep(100000))",
        "local f = coroutine.wrap(function() local function g() return coroutine.wrap(g)() end return g() end) f()",
        "return table.insert({}, -1e9, 1)",
        "return table.concat({}, 'x', 1, 1e9)",
        "return cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(10))",
        "return struct.unpack('c0', 'x')",
        "return struct.pack('i100', 1)",
        "return loadstring(('('):rep(100000))()",
    ] {
        let answer = run(text);
        assert!(answer.starts_with('-'), "{text}: {answer}");
    }
    assert_eq!(run("return #string.rep('', 1e15)"), "0");
    assert_eq!(run("return #cmsgpack.pack(setmetatable({}, {__index = function() return 1 end}))"), "1");
}

#[test]
fn no_library_writes_without_end() {
    // Each value is in the next one several times.
    let nested = "local s = ('x'):rep(2^16) local t = {s, s, s, s, s, s, s, s} \
                  for i = 1, 12 do t = {t, t, t, t, t, t, t, t} end return ";
    let long = "local s = ('x'):rep(2^26) ";
    for text in [
        format!("{nested} cjson.encode(t)"),
        format!("{nested} cmsgpack.pack(t)"),
        format!("{long} return struct.pack(('s'):rep(4), s, s, s, s)"),
        format!("{long} return (s:gsub('.*', '%0%0%0%0%0'))"),
        format!("{long} return s:rep(3)"),
        format!("{long} return cjson.encode({{s, s, s}})"),
        format!("{long} return cmsgpack.pack(s, s, s)"),
    ] {
        let answer = run(&text);
        let is_refused =
            answer.contains("not enough memory") || answer.contains("resulting string too large");
        assert!(is_refused, "{text}: {answer}");
    }
    let answer = run("local t = {} for i = 1, 40 do t = {t, t} end return t");
    assert!(answer.len() < 2 * MOST_SHOWN, "what is written beyond the limit is dropped");
}

#[test]
fn values_in_each_other_need_no_stack() {
    let deep = "local t = {} for i = 1, 1000 do t = {t} end ";
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let ran = small.spawn(move || {
        let depth = "local n = 0 while type(t) == 'table' do t, n = t[1], n + 1 end return n";
        check(&[
            (&format!("{deep} t = cjson.decode(cjson.encode(t[1])) {depth}"), "1000"),
            ("return #cmsgpack.pack(cmsgpack.unpack(('\\145'):rep(1000) .. '\\1'))", "17"),
            (
                "return cmsgpack.unpack(('\\145'):rep(1002)) == nil",
                "-ERR user_script:1: Bad data format in input. script: SHA, on @user_script:1.",
            ),
        ]);
        let answer = run(&format!("{deep} return t"));
        assert!(answer.ends_with("-ERR reached lua stack limit"), "{answer}");
    });
    ran.expect("a thread").join().expect("no stack overflows");
}

/// What was published about Lua in Redis and its libraries. Each of these crashed a server, ran code, or read
/// memory of others.
#[test]
fn published_defects_of_redis_are_not_here() {
    for (defect, text) in [
        // A heap overflow by the number of arguments to pack.
        ("CVE-2018-11218", "return #cmsgpack.pack(unpack({}, 1, 7000))"),
        ("CVE-2018-11218", "local t = {} for i = 1, 7000 do t[i] = i end return #cmsgpack.pack(unpack(t))"),
        // Sizes and offsets that overflow.
        ("CVE-2018-11219", "return struct.unpack('i2147483647', 'x')"),
        ("CVE-2018-11219", "return struct.unpack('c2147483647', 'x')"),
        ("CVE-2018-11219", "return struct.unpack('I32c2147483647', 'x')"),
        ("CVE-2018-11219", "return struct.pack('c2147483647', 'x')"),
        ("CVE-2018-11219", "return struct.unpack('i4294967296', ('x'):rep(100))"),
        ("CVE-2020-14147", "return struct.unpack('i', 'xxxx', 2^31 - 1)"),
        ("CVE-2020-14147", "return struct.unpack('i', 'xxxx', 2^32 + 1)"),
        ("CVE-2020-14147", "return struct.unpack('>!4i', ('x'):rep(8), -1)"),
        // A string without its end, and an escape at the end.
        ("CVE-2022-24834", "return cjson.encode(('\\0'):rep(2^26))"),
        ("CVE-2022-24834", "return cjson.decode('\"\\\\')"),
        ("CVE-2022-24834", "return cjson.decode('\"\\\\u12')"),
        // Globals, and the metatable of texts, that others see.
        ("CVE-2022-24735", "getmetatable('').__index = function() end"),
        ("CVE-2022-24735", "string.rep = nil"),
        ("CVE-2022-24735", "getmetatable(redis).__index = nil"),
        ("CVE-2025-46818", "getmetatable('').__add = function() end"),
        ("CVE-2025-46818", "getmetatable(1).__index = function() end"),
        ("CVE-2025-46818", "getmetatable(print).__index = function() end"),
        // A text that is no program.
        ("CVE-2022-24736", "return loadstring('\\27Lua')()"),
        ("CVE-2022-24736", "return load(function() return '\\27Lua' end)()"),
        ("CVE-2022-24736", "return loadstring(('('):rep(1e6))()"),
        // Digits of the least number.
        ("CVE-2024-31449", "return error(bit.tohex(1, -2147483648))"),
        ("CVE-2024-31449", "return error(bit.tohex(65535, -2147483648 - 1))"),
        ("CVE-2024-31449", "return error(bit.tohex(1, 2147483648))"),
        // Ranges that overflow.
        ("CVE-2025-46817", "return unpack({1, 2, 3}, -2147483648, 2147483647)"),
        ("CVE-2025-46817", "return unpack({1, 2, 3}, 0, 2147483647)"),
        ("CVE-2025-46817", "return unpack({1, 2, 3}, -2, 2147483647)"),
        // A long bracket, and a comment, without their ends.
        ("CVE-2025-46819", "return loadstring('return [' .. ('='):rep(1e6))()"),
        ("CVE-2025-46819", "return loadstring('--[' .. ('='):rep(1e6) .. '[')()"),
        ("CVE-2025-46819", "return loadstring('return [===[' .. (']='):rep(1e5))()"),
    ] {
        let answer = run(text);
        assert!(
            answer.starts_with('-') || answer.chars().all(|c| c.is_ascii_digit()),
            "{defect}: {text}: {answer}"
        );
        assert_eq!(run("return ('x'):rep(2) .. cjson.encode({1})"), "\"xx[1]\"", "{defect}: {text}");
    }
}

/// CVE-2024-46981 and CVE-2025-49844: what the collector frees while it is in use.
#[test]
fn the_collector_frees_nothing_that_is_in_use() {
    for text in [
        // A userdata with a collector's method cannot be made, and a table has none.
        "return newproxy(true)",
        "local t = setmetatable({}, {__gc = function() error('collected') end}) t = nil collectgarbage() error('fine')",
        // Programs that are read while much is collected.
        "for i = 1, 2000 do loadstring('return \"' .. ('x'):rep(i) .. i .. '\"', ('n'):rep(i)) collectgarbage('step', 100) end error('fine')",
        "for i = 1, 200 do loadstring(('local x = {} '):rep(150), 'name' .. i) collectgarbage() end error('fine')",
        "for i = 1, 200 do pcall(loadstring, ('x = '):rep(i), ('y'):rep(i)) collectgarbage() end error('fine')",
        "for i = 1, 1000 do local c = coroutine.wrap(function() coroutine.yield(('x'):rep(i)) end) c() end collectgarbage() error('fine')",
    ] {
        let answer = run(text);
        assert!(answer.contains("fine") || answer.contains("newproxy"), "{text}: {answer}");
    }
    assert_eq!(run("return 1"), "1");
}

#[test]
fn a_script_that_is_ended_does_not_go_on() {
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(error, 'x') end",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
        "return ('a'):rep(10000):find('.-.-.-.-.-b')",
        "return ('a'):rep(10000):gsub('.-.-.-.-.-b', 'x')",
        "for _ in ('a'):rep(10000):gmatch('.-.-.-.-.-b') do end",
    ] {
        let mut caller = Echo { ends_at: Some(3), ..Echo::default() };
        let answer = run_with(text, &[], &[], &mut caller);
        assert!(answer.contains("Script killed by user with SCRIPT KILL."), "{text}: {answer}");
    }
    assert_eq!(run("return 1"), "1");
}

#[test]
fn the_functions_of_strings_are_those_of_lua() {
    check(&[
        ("return {('hello world'):find('o w')}", "*2 5 7"),
        ("return {('hello'):find('l', 1, true)}", "*2 3 3"),
        ("return {('hello'):find('')}", "*2 1 0"),
        ("return {('hello'):find('xyz')}", "*0"),
        ("return {('hello'):find('(l)(l)')}", "*4 3 4 \"l\" \"l\""),
        ("return {('key=value'):match('(%w+)=(%w+)')}", "*2 \"key\" \"value\""),
        ("return ('hello'):match('^h', 2)", "null"),
        ("return ('hello'):match('.', -1)", "\"o\""),
        ("return {('hello'):gsub('l', 'L')}", "*2 \"heLLo\" 2"),
        ("return {('hello'):gsub('l', 'L', 1)}", "*2 \"heLlo\" 1"),
        ("return {('hello'):gsub('', '-')}", "*2 \"-h-e-l-l-o-\" 6"),
        ("return {('abc'):gsub('%w', '%0%0')}", "*2 \"aabbcc\" 3"),
        ("return {('hello world'):gsub('(%w+) (%w+)', '%2 %1')}", "*2 \"world hello\" 1"),
        ("return {('$name'):gsub('%$(%w+)', {name = 'x'})}", "*2 \"x\" 1"),
        ("return {('abc'):gsub('%w', function(c) if c == 'b' then return 'B' end end)}", "*2 \"aBc\" 3"),
        ("return {('abc'):gsub('^a', 'x')}", "*2 \"xbc\" 1"),
        ("return {('abc'):gsub('', function() return '.' end)}", "*2 \".a.b.c.\" 4"),
        (
            "local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t + 1] = k .. v end return t",
            "*2 \"a1\" \"b2\"",
        ),
        ("local n = 0 for _ in ('abc'):gmatch('') do n = n + 1 end return n", "4"),
        (
            "return select(2, pcall(function() ('x'):gsub('x', function() error({err = 'E'}) end) end))",
            "\"E\"",
        ),
        ("return string.format('%5.1f|%s|%q', 1.25, 'a', 'b')", "\"  1.2|a|\\\"b\\\"\""),
    ]);
    let answer = run("return ('x'):find()");
    assert!(answer.contains("bad argument #2 to 'find' (string expected, got no value)"), "{answer}");
}

#[test]
fn random_numbers_are_those_of_redis_for_a_seed_and_go_on() {
    let seeded = "math.randomseed(7) return tostring(math.random())";
    assert_eq!(run(seeded), run(seeded));
    assert_ne!(run("return tostring(math.random())"), run("return tostring(math.random())"));
    assert_eq!(run("return math.random(1, 1)"), "1");
    assert_eq!(run("return tostring(math.random()) == tostring(math.random())"), "null");
    let answer = run("return math.random(0)");
    assert!(answer.contains("bad argument #1 to 'random' (interval is empty)"), "{answer}");
}

#[test]
fn json_is_that_of_lua_cjson() {
    check(&[
        ("return cjson.encode({1, 2, 'x'})", "\"[1,2,\\\"x\\\"]\""),
        ("return cjson.encode({})", "\"{}\""),
        ("return cjson.encode({a = 1.5})", "\"{\\\"a\\\":1.5}\""),
        ("return cjson.encode(1e15)", "\"1e+15\""),
        ("return cjson.encode(12345678901234)", "\"12345678901234\""),
        ("return cjson.encode(1/3)", "\"0.33333333333333\""),
        ("return cjson.encode('a/b\\n\\1')", "\"\\\"a\\\\/b\\\\n\\\\u0001\\\"\""),
        ("return cjson.encode({[1] = 1, [3] = 3})", "\"[1,null,3]\""),
        ("return cjson.encode({[5] = 1})", "\"[null,null,null,null,1]\""),
        ("return cjson.encode({[1.5] = 1})", "\"{\\\"1.5\\\":1}\""),
        ("return cjson.encode({cjson.null, true, false})", "\"[null,true,false]\""),
        ("return cjson.decode('[1,2,{\"a\":null}]')[3].a == cjson.null", "1"),
        ("return cjson.decode('\"\\\\u00e9\\\\ud83d\\\\ude00\"')", "\"\\xc3\\xa9\\xf0\\x9f\\x98\\x80\""),
        ("return tostring(cjson.decode('[0x10]')[1])", "\"16\""),
        ("return tostring(cjson.decode('1.5e3'))", "\"1500\""),
        ("return cjson.decode('{\"a\":[]}').a[1] == nil", "1"),
    ]);
    for (text, reason) in [
        ("cjson.encode({[20] = 1})", "Cannot serialise table: excessively sparse array"),
        ("cjson.encode(print and 1 or function() end)", "nonexistent global"),
        ("cjson.encode(function() end)", "Cannot serialise function: type not supported"),
        ("cjson.encode({[true] = 1})", "Cannot serialise boolean: table key must be a number or string"),
        ("cjson.encode(1/0)", "Cannot serialise number: must not be NaN or Inf"),
        ("local t = {} t[1] = t cjson.encode(t)", "Cannot serialise, excessive nesting (1001)"),
        ("cjson.decode('')", "Expected value but found T_END at character 1"),
        ("cjson.decode('{\"a\" 1}')", "Expected colon but found T_NUMBER at character 6"),
        ("cjson.decode('[1,]')", "Expected value but found T_ARR_END at character 4"),
        ("cjson.decode('nope')", "Expected value but found invalid token at character 1"),
        ("cjson.decode('1 2')", "Expected the end but found T_NUMBER at character 3"),
        ("cjson.decode('\"\\\\x\"')", "invalid escape code"),
        ("cjson.decode(string.rep('[', 1001))", "Found too many nested data structures (1001)"),
    ] {
        let answer = run(text);
        assert!(answer.contains(reason), "{text}: {answer}");
    }
}

#[test]
fn message_pack_is_that_of_lua_cmsgpack() {
    check(&[
        ("return cmsgpack.pack(1)", "\"\\x01\""),
        ("return cmsgpack.pack(-1)", "\"\\xff\""),
        ("return cmsgpack.pack(200)", "\"\\xcc\\xc8\""),
        ("return cmsgpack.pack(-200)", "\"\\xd1\\xff8\""),
        ("return cmsgpack.pack(70000)", "\"\\xce\\x00\\x01\\x11p\""),
        ("return cmsgpack.pack(1.5)", "\"\\xca?\\xc0\\x00\\x00\""),
        ("return cmsgpack.pack(0.1)", "\"\\xcb?\\xb9\\x99\\x99\\x99\\x99\\x99\\x9a\""),
        ("return cmsgpack.pack('abc', true, nil)", "\"\\xa3abc\\xc3\\xc0\""),
        ("return cmsgpack.pack({1, 2})", "\"\\x92\\x01\\x02\""),
        ("return cmsgpack.pack({})", "\"\\x90\""),
        ("return cmsgpack.pack({a = 1})", "\"\\x81\\xa1a\\x01\""),
        ("return {cmsgpack.unpack(cmsgpack.pack(1, 'x', {1, {2}}))}", "*3 1 \"x\" *2 1 *1 2"),
        ("return {cmsgpack.unpack_one(cmsgpack.pack(1, 2))}", "*2 1 1"),
        ("return {cmsgpack.unpack_one(cmsgpack.pack(1, 2), 1)}", "*2 -1 2"),
        ("return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2)}", "*3 2 1 2"),
        ("return cmsgpack.unpack(cmsgpack.pack(-70000)) + 70000", "0"),
    ]);
    for (text, reason) in [
        ("cmsgpack.pack()", "MessagePack pack needs input."),
        ("cmsgpack.unpack('\\217')", "Missing bytes in input."),
        ("cmsgpack.unpack('\\193')", "Bad data format in input."),
    ] {
        let answer = run(text);
        assert!(answer.contains(reason), "{text}: {answer}");
    }
}

#[test]
fn structures_and_bits_are_those_of_their_libraries() {
    check(&[
        ("return struct.pack('>I2h', 258, -2)", "\"\\x01\\x02\\xff\\xfe\""),
        ("return struct.pack('>I2<h', 258, -2)", "\"\\x01\\x02\\xfe\\xff\""),
        ("return struct.pack('Bs', 1, 'ab')", "\"\\x01ab\\x00\""),
        ("return struct.pack('!4Bi', 1, 2)", "\"\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00\""),
        ("return {struct.unpack('>I2', '\\1\\2')}", "*2 258 3"),
        ("return {struct.unpack('b', '\\255')}", "*2 -1 2"),
        ("return {struct.unpack('Bc0', '\\3abcd')}", "*2 \"abc\" 5"),
        ("return {struct.unpack('s', 'ab\\0c')}", "*2 \"ab\" 4"),
        ("return {struct.unpack('<d', struct.pack('<d', 1.5))}", "*2 1 9"),
        ("return struct.size('!8Bd')", "16"),
        ("return bit.band(0xff, 0x0f)", "15"),
        ("return bit.bor(1, 2, 4)", "7"),
        ("return bit.bxor(5, 1)", "4"),
        ("return bit.bnot(0)", "-1"),
        ("return bit.lshift(1, 31)", "-2147483648"),
        ("return bit.rshift(-1, 28)", "15"),
        ("return bit.arshift(-16, 2)", "-4"),
        ("return bit.rol(0x12345678, 8) == 0x34567812", "1"),
        ("return bit.tohex(255)", "\"000000ff\""),
        ("return bit.tohex(255, -4)", "\"00FF\""),
        ("return bit.tobit(0xffffffff)", "-1"),
        ("return bit.bswap(0x12345678) == 0x78563412", "1"),
    ]);
}

#[test]
fn a_script_logs_and_asks_for_commands() {
    let mut caller = Echo::default();
    let text = "redis.log(redis.LOG_WARNING, 'a', 1) return redis.acl_check_cmd('ECHO')";
    assert_eq!(run_with(text, &[], &[], &mut caller), "1");
    assert_eq!(caller.logged, [(3, "a 1".to_owned())]);
    let answer = run("return redis.acl_check_cmd('NONE')");
    assert!(answer.starts_with("-ERR Invalid command passed to redis.acl_check_cmd()"), "{answer}");
    let answer = run("redis.log(4, 'x')");
    assert!(answer.starts_with("-ERR Invalid debug level."), "{answer}");
    let answer = run("redis.setresp(4)");
    assert!(answer.starts_with("-ERR RESP version must be 2 or 3."), "{answer}");
    check(&[("return redis.replicate_commands()", "1"), ("return redis.REDIS_VERSION_NUM", "459776")]);
}
