//! `tidemark series export` and `tidemark series import` with real servers and files.

use crate::support::wire::{Pipeline, Value};
use crate::support::{Answer, Server, call};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tidemark_tables::{Layout, Points, SeriesRow, Unit, parquet_writer};

fn command(subcommand: &str, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["series", subcommand, "--port", &port.to_string()]).stdin(Stdio::null());
    command
}

fn run(subcommand: &str, port: u16, arguments: &[&str]) -> Output {
    command(subcommand, port).args(arguments).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Runs a subcommand that succeeds; returns what it writes.
#[track_caller]
fn done(subcommand: &str, port: u16, arguments: &[&str]) -> String {
    let output = run(subcommand, port, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Runs a subcommand that fails; returns its last line.
#[track_caller]
fn failed(subcommand: &str, port: u16, arguments: &[&str], code: i32) -> String {
    let output = run(subcommand, port, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stderr).lines().last().unwrap_or_default().to_owned()
}

fn start(directory: &Path, name: &str) -> Server {
    Server::start(&directory.join(name), &["--enable-debug-command", "yes"])
}

fn digest(server: &Server) -> Answer {
    call(&mut server.client(), &["DEBUG", "DIGEST"])
}

/// Returns the names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Two series with labels and one without points.
fn fill(server: &Server) {
    let mut client = server.client();
    for (key, room) in [("t:hall", "hall"), ("t:a\"b", "a b")] {
        call(&mut client, &["TS.CREATE", key, "LABELS", "kind", "t", "room", room]);
        for (time, value) in
            [("0", "20.5"), ("60000", "-0"), ("120000", "nan"), ("9223372036854775807", "0.1")]
        {
            assert!(!call(&mut client, &["TS.ADD", key, time, value]).is_error());
        }
    }
    call(&mut client, &["TS.CREATE", "none", "LABELS", "floor", "1"]);
    call(&mut client, &["SET", "other", "value"]);
}

#[test]
fn what_is_exported_makes_the_same_series_on_another_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (start(directory.path(), "one"), start(directory.path(), "two"));
    fill(&one);
    for client in [&mut one.client(), &mut two.client()] {
        call(client, &["DEL", "none", "other"]);
    }
    let expected = digest(&one);
    for format in ["parquet", "csv", "jsonl"] {
        let file = directory.path().join(format!("points.{format}"));
        let file = file.to_str().expect("text");
        let output = run("export", one.port, &["--all", "-o", file]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), format!("8 points of 2 series exported as {format}\n"));
        call(&mut two.client(), &["FLUSHALL"]);
        // A second import of the same file changes nothing.
        for _ in 0..2 {
            assert_eq!(done("import", two.port, &[file]), "8 points of 2 series taken\n", "{format}");
            assert_eq!(digest(&two), expected, "{format}");
        }
    }
    assert_eq!(names(directory.path()), ["points.csv", "points.jsonl", "points.parquet"]);
}

#[test]
fn an_import_of_parquet_keeps_all_bits_of_nan() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (start(directory.path(), "one"), start(directory.path(), "two"));
    // Quiet and signalling ones, of both signs, with payloads.
    let bits = [0x7ff8_0000_0000_0000, 0x7ff8_0000_dead_beef, 0xfff0_0000_0000_0001, 0x7ff4_0000_0000_0002];
    let (times, values) = ([0_i64, 1, 2, 3], bits.map(f64::from_bits));
    let path = directory.path().join("nan.parquet");
    let layout =
        Layout { unit: Unit::Milliseconds, dates: false, labels: Vec::new(), values: Layout::one_value() };
    let file = Box::new(fs::File::create(&path).expect("a file"));
    let mut writer = parquet_writer(&layout, file).expect("a table");
    let series = SeriesRow { key: b"s".to_vec(), labels: Vec::new() };
    let points = Points { times: times.to_vec(), columns: vec![values.to_vec()] };
    writer.write(&series, &points).expect("writes");
    writer.finish().expect("writes");
    done("import", one.port, &[path.to_str().expect("text")]);
    let stamps = times.map(i64::to_le_bytes).concat();
    let mut pipeline = Pipeline::connect(two.port).expect("connects");
    let mut append = |bits: [u64; 4]| {
        let values = bits.map(u64::to_le_bytes).concat();
        let answer = pipeline.call(&[b"TS.APPEND", b"s", &stamps, &values]).expect("an answer");
        assert_eq!(answer, Value::Integer(4));
    };
    append(bits);
    assert_eq!(digest(&one), digest(&two));
    call(&mut two.client(), &["FLUSHALL"]);
    append([bits[0]; 4]);
    assert_ne!(digest(&one), digest(&two), "the digest has the payloads");
}

#[test]
fn texts_have_a_row_for_each_point() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    fill(&server);
    let csv = done("export", server.port, &["--filter", "room=hall", "--to", "120000"]);
    let rows = "key,time_ms,value,label_kind,label_room\n\
                t:hall,0,20.5,t,hall\nt:hall,60000,-0.0,t,hall\nt:hall,120000,NaN,t,hall\n";
    assert_eq!(csv, rows);
    let jsonl = done("export", server.port, &["t:a\"b", "none", "--from", "120000", "--format", "jsonl"]);
    let rows = concat!(
        r#"{"key":"t:a\"b","time_ms":120000,"value":null,"label_floor":null,"label_kind":"t","label_room":"a b"}"#,
        "\n",
        r#"{"key":"t:a\"b","time_ms":9223372036854775807,"value":0.1,"label_floor":null,"label_kind":"t","label_room":"a b"}"#,
        "\n"
    );
    assert_eq!(jsonl, rows);
}

#[test]
fn ranges_are_numbers_dates_and_ages() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    for (key, unit, scale) in [("s", "s", 1), ("us", "us", 1_000_000_i64)] {
        call(&mut client, &["TS.CREATE", key, "UNIT", unit]);
        for second in [0, 86_399, 86_400, 90_000] {
            call(&mut client, &["TS.ADD", key, &(second * scale).to_string(), "1"]);
        }
        call(&mut client, &["TS.ADD", key, "*", "2"]);
    }
    let times = |arguments: &[&str]| -> Vec<String> {
        let csv = done("export", server.port, arguments);
        csv.lines().skip(1).map(|line| line.split(',').nth(1).expect("a time").to_owned()).collect()
    };
    assert_eq!(times(&["s", "--from", "1970-01-02", "--to", "90000"]), ["86400", "90000"]);
    assert_eq!(times(&["s", "--to", "1970-01-01T23:59:59.5Z"]), ["0", "86399"]);
    assert_eq!(
        times(&["us", "--from", "1970-01-01T23:59:59.0000005Z", "--to", "1970-01-02"]),
        ["86400000000"]
    );
    assert_eq!(times(&["s", "--from", "-1h", "--to", "now"]).len(), 1);
    assert_eq!(times(&["s", "--to", "-1h"]).len(), 4);
    assert_eq!(times(&["us", "--unit", "ns", "--to", "0"]), ["0"]);
    assert_eq!(times(&["us", "--dates", "--to", "86399000000"])[1], "1970-01-01T23:59:59.000000Z");
    assert_eq!(
        failed("export", server.port, &["s", "us"], 1),
        "tidemark: the unit of s is s, and that of us is us: export them separately, or give --unit"
    );
    assert_eq!(times(&["s", "us", "--unit", "us", "--to", "0"]), ["0", "0"]);
}

#[test]
fn long_ranges_are_read_in_pages_also_of_buckets_and_lenses() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    let file = directory.path().join("in.csv");
    let mut points = String::from("key,time_ms,value\n");
    for time in 0..50_000_i64 {
        writeln!(points, "long,{},{}", time * 10 + 7, time % 1000).expect("memory");
    }
    fs::write(&file, points).expect("a disk");
    done("import", server.port, &[file.to_str().expect("text")]);
    let all = done("export", server.port, &["long"]);
    assert_eq!(all.lines().count(), 50_001);
    assert_eq!(all.lines().last(), Some("long,499997,999.0"));
    // Buckets of one point each make pages; the server answers the same in one piece.
    let pages = done(
        "export",
        server.port,
        &["long", "--aggregation", "sum,increase,twa", "--bucket", "20ms", "--align", "3"],
    );
    assert!(pages.starts_with("key,time_ms,sum,increase,twa\n"), "{}", &pages[..60]);
    let whole = call(
        &mut client,
        &["TS.RANGE", "long", "-", "+", "ALIGN", "3", "AGGREGATION", "sum,increase,twa", "20"],
    );
    let rows: Vec<Vec<f64>> = pages
        .lines()
        .skip(1)
        .map(|line| line.split(',').skip(1).map(|field| field.parse().expect("a number")).collect())
        .collect();
    let expected: Vec<Vec<f64>> = whole
        .array()
        .into_iter()
        .map(|row| {
            let fields = row.array().into_iter();
            fields
                .map(|field| match field {
                    Answer::Integer(time) => time as f64,
                    Answer::Bulk(text) | Answer::Status(text) => text.parse().expect("a number"),
                    other => panic!("{other:?}"),
                })
                .collect()
        })
        .collect();
    assert_eq!(rows, expected);
    call(&mut client, &["LENS.CREATE", "double", "long", "affine", "2", "1"]);
    let lens = done("export", server.port, &["double"]);
    assert_eq!(lens.lines().count(), 50_001);
    assert_eq!(lens.lines().last(), Some("double,499997,1999.0"));
    call(&mut client, &["LENS.CREATE", "labelled", "long", "affine", "2", "1", "LABELS", "room", "hall"]);
    let found = done("export", server.port, &["--filter", "room=hall"]);
    assert_eq!(found.lines().next(), Some("key,time_ms,value,label_room"));
    assert_eq!((found.lines().count(), found.lines().last()), (50_001, Some("labelled,499997,1999.0,hall")));
}

#[test]
fn a_file_appears_only_when_it_is_complete() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    for time in 0..20_000 {
        client.send(&["TS.ADD", "long", &time.to_string(), &format!("0.{time}")]).expect("a connection");
    }
    for _ in 0..20_000 {
        client.read().expect("an answer");
    }
    let out = directory.path().join("out");
    fs::create_dir(&out).expect("a disk");
    let file = out.join("points.csv");
    let path = file.to_str().expect("text");
    // A limit of the size of files stands for a full disk.
    let port = server.port.to_string();
    for format in ["csv", "parquet"] {
        let limited = Command::new("sh")
            .args([
                "-c",
                "ulimit -f 16; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_tidemark"),
                "series",
                "export",
            ])
            .args(["--port", &port, "long", "--format", format, "-o", path])
            .output()
            .expect("sh");
        assert_eq!(limited.status.code(), Some(1), "{limited:?}");
        let said = text(&limited.stderr);
        assert!(said.starts_with(&format!("tidemark: cannot write {path}: ")), "{said}");
        assert_eq!(names(&out), [""; 0], "{format}");
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = command("export", server.port).arg("long").stdout(full).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("tidemark: cannot write to standard output: No space left"), "{said}");
    // What exists is kept unless it is to be replaced.
    fs::write(&file, "precious").expect("a disk");
    assert_eq!(
        failed("export", server.port, &["long", "-o", path], 1),
        format!("tidemark: {path} exists; give --force to replace it")
    );
    assert_eq!(
        failed("export", server.port, &["absent", "-o", path, "--force"], 1),
        "tidemark: cannot read absent: ERR TSDB: the key does not exist"
    );
    assert_eq!(fs::read_to_string(&file).expect("the file"), "precious");
    done("export", server.port, &["long", "-o", path, "--force"]);
    assert_eq!(fs::read_to_string(&file).expect("the file").lines().count(), 20_001);
    assert_eq!(names(&out), ["points.csv"]);
    assert!(
        failed("export", server.port, &["long", "-o", "/dev/null", "--format", "csv", "--force"], 1)
            .contains("is no file")
    );
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_export_quietly() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    let file = directory.path().join("in.csv");
    let rows: Vec<String> = (0..100_000).map(|time| format!("k,{time},1")).collect();
    fs::write(&file, format!("key,time_ms,value\n{}\n", rows.join("\n"))).expect("a disk");
    done("import", server.port, &[file.to_str().expect("text")]);
    assert_eq!(call(&mut client, &["TS.GET", "k"]).array()[0], Answer::Integer(99_999));
    let line = "\"$0\" series export --port \"$1\" k | head -n 2; echo \"${PIPESTATUS[0]}\"";
    let output = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_tidemark"), &server.port.to_string()])
        .output()
        .expect("bash");
    assert_eq!(text(&output.stdout), "key,time_ms,value\nk,0,1.0\n0\n", "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_signal_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let file = directory.path().join("in.csv");
    let rows: Vec<String> = (0..400_000).map(|time| format!("k,{time},0.{time}")).collect();
    fs::write(&file, format!("key,time_ms,value\n{}\n", rows.join("\n"))).expect("a disk");
    done("import", server.port, &[file.to_str().expect("text")]);
    let out = directory.path().join("out");
    fs::create_dir(&out).expect("a disk");
    let path = out.join("points.parquet");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        crate::support::wait_until("an export is interrupted in the middle", || {
            let mut child = command("export", server.port)
                .args(["k", "--force", "-o"])
                .arg(&path)
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary starts");
            crate::support::wait_until("the file is begun", || !names(&out).is_empty());
            // Whatever the export has read by now, it waits for the rest.
            server.signal("STOP");
            let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
            assert!(sent.expect("kill").success());
            let status = child.wait().expect("it ends");
            server.signal("CONT");
            // Unless it had read everything before.
            let is_interrupted = status.code() == Some(code);
            assert!(is_interrupted || status.success(), "{signal}: {status}");
            assert_eq!(names(&out).is_empty(), is_interrupted, "{signal}: {:?}", names(&out));
            let _ = fs::remove_file(&path);
            is_interrupted
        });
    }
}

#[test]
fn an_import_that_was_killed_is_completed_by_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (start(directory.path(), "one"), start(directory.path(), "two"));
    let rows = |count: i64| -> String {
        let mut rows = String::from("key,time_ms,value,label_room\n");
        for time in 0..count {
            writeln!(rows, "k{},{time},0.{time},hall", time % 2).expect("memory");
        }
        rows
    };
    let file = directory.path().join("in.csv");
    fs::write(&file, rows(60_000)).expect("a disk");
    let path = file.to_str().expect("text");
    assert_eq!(done("import", one.port, &[path]), "60000 points of 2 series taken\n");
    let mut import = command("import", two.port);
    let import = import.args(["-", "--format", "csv"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = import.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(rows(50_000).as_bytes()).expect("a reader");
    let mut client = two.client();
    crate::support::wait_until("some points are there", || {
        call(&mut client, &["TS.GET", "k0"]) != Answer::Error("ERR TSDB: the key does not exist".into())
    });
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    drop(input);
    assert_ne!(digest(&two), digest(&one));
    assert_eq!(done("import", two.port, &[path]), "60000 points of 2 series taken\n");
    assert_eq!(digest(&two), digest(&one));
}

#[test]
fn flags_of_an_import_name_columns_and_labels() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    let file = directory.path().join("weather.csv");
    fs::write(&file, "when;room;temp\n1970-01-01 00:00:01;hall;20.5\n1970-01-01 00:00:02;attic;\n")
        .expect("a disk");
    let arguments = [
        file.to_str().expect("text"),
        "--delimiter",
        ";",
        "--key",
        "temperature:{room}",
        "--time",
        "when",
        "--value",
        "temp",
        "--label",
        "room={room}",
        "--label",
        "kind=temperature",
        "--unit",
        "s",
        "--nulls",
        "skip",
    ];
    assert_eq!(done("import", server.port, &arguments), "1 point of 1 series taken\n");
    assert_eq!(
        call(&mut client, &["TS.RANGE", "temperature:hall", "-", "+"]).array()[0].clone().array()[0],
        Answer::Integer(1)
    );
    assert_eq!(
        call(&mut client, &["TS.QUERYINDEX", "kind=temperature", "room=hall"]).array(),
        [Answer::Bulk("temperature:hall".into())]
    );
}

#[test]
fn points_that_the_server_refuses_are_counted_with_their_reasons() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    call(&mut client, &["TS.CREATE", "short", "RETENTION", "100"]);
    call(&mut client, &["TS.ADD", "short", "1000", "1"]);
    call(&mut client, &["TS.CREATE", "seconds", "UNIT", "s"]);
    call(&mut client, &["SET", "text", "x"]);
    let mut input = String::from("{\"key\":\"short\",\"time_ms\":1000,\"value\":9}\n");
    for (key, time) in [
        ("short", 5),
        ("short", 950),
        ("short", 6),
        ("text", 1),
        ("seconds", 1500),
        ("seconds", 2000),
        ("new", 0),
    ] {
        writeln!(input, "{{\"key\":\"{key}\",\"time_ms\":{time},\"value\":2}}").expect("memory");
    }
    let file = directory.path().join("in.jsonl");
    fs::write(&file, &input).expect("a disk");
    let file = file.to_str().expect("text");
    let output = run("import", server.port, &[file, "--on-duplicate", "block"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "tidemark: the server refused 5 points\n");
    let said = text(&output.stdout);
    for line in [
        "3 points of 4 series taken\n",
        "2 points refused: Timestamp is older than retention\n",
        "1 point refused: the time is no whole number of s, the unit of the series, or too late for it\n",
        "1 point refused: Error at upsert, update is not supported",
    ] {
        assert!(said.contains(line), "{line} is missing in {said}");
    }
    let seconds = call(&mut client, &["TS.RANGE", "seconds", "-", "+"]).array();
    assert_eq!(seconds[0].clone().array()[0], Answer::Integer(2));
    // The order of rows decides, also when a batch was refused.
    let again = run("import", server.port, &[file, "--on-duplicate", "last"]);
    assert_eq!(text(&again.stderr), "tidemark: the server refused 4 points\n");
    assert_eq!(call(&mut client, &["TS.GET", "short"]).array()[1], Answer::Status("9".into()));
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut client = server.client();
    let file = directory.path().join("in.csv");
    fs::write(&file, "key,time_ms,value,label_a\nk,1,1,x\nk,two,2,x\nk,3,3,y\nk,4,4,x\n").expect("a disk");
    let path = file.to_str().expect("text");
    let output = run("import", server.port, &[path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        format!("tidemark: {path}: line 3, column time_ms: \"two\" is no time in ms since 1970\n")
    );
    assert_eq!(text(&output.stdout), "1 point of 1 series taken\n", "what was read before is in");
    let output = run("import", server.port, &[path, "--skip-bad"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "2 points of 1 series taken\n");
    let said = text(&output.stderr);
    assert!(
        said.contains("line 4: its labels differ from those of an earlier row of the series\n"),
        "{said}"
    );
    assert!(said.ends_with("2 bad rows left out\n"), "{said}");
    assert_eq!(call(&mut client, &["TS.INFO", "k"]).array()[1], Answer::Integer(2));
}

#[test]
fn standard_input_is_a_file_and_empty_files_are_tables_only_with_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), "data");
    let mut import = command("import", server.port);
    let mut child = import
        .args(["-", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    child.stdin.take().expect("a pipe").write_all(b"key,time,value\nk,1970-01-01,1\n").expect("a reader");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "1 point of 1 series taken\n");
    for (name, content, expected) in [
        ("empty.csv", "", Err("it is empty: the first line must name the columns")),
        ("empty.jsonl", "", Err("it is empty")),
        ("empty.parquet", "", Err("")),
        ("header.csv", "key,time,value\n", Ok("0 points of 0 series taken\n")),
        ("other.csv", "a,b\n", Err("there is no column time")),
        ("other.txt", "a,b\n", Err("the extension of")),
    ] {
        let file = directory.path().join(name);
        fs::write(&file, content).expect("a disk");
        let output = run("import", server.port, &[file.to_str().expect("text")]);
        match expected {
            Ok(said) => assert_eq!(text(&output.stdout), said, "{name}"),
            Err(reason) => {
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{name}");
                assert!(said.starts_with("tidemark: ") && said.contains(reason), "{name}: {said}");
                assert_eq!(text(&output.stdout), "", "{name}: nothing was sent");
            }
        }
    }
    assert_eq!(done("export", server.port, &["--match", "no*"]), "key,time_ms,value\n");
}

#[test]
fn wrong_flags_are_refused() {
    let port = crate::support::free_port();
    for (subcommand, arguments) in [
        ("export", &[][..]),
        ("export", &["k", "--all"]),
        ("export", &["k", "--from", "yesterday"]),
        ("export", &["k", "--format", "xlsx"]),
        ("export", &["k", "--bucket", "5m"]),
        ("export", &["k", "--aggregation", "avg"]),
        ("export", &["k", "--force"]),
        ("import", &[]),
        ("import", &["f.csv", "--key", "{a"]),
        ("import", &["f.csv", "--label", "room"]),
        ("import", &["f.csv", "--delimiter", ",,"]),
        ("import", &["f.csv", "--time-format", "unix"]),
        ("import", &["f.csv", "--on-duplicate", "replace"]),
    ] {
        let output = run(subcommand, port, arguments);
        assert_eq!(output.status.code(), Some(2), "{subcommand} {arguments:?}: {}", text(&output.stderr));
    }
    let nobody = failed("export", port, &["k"], 1);
    assert!(nobody.starts_with(&format!("tidemark: could not connect to 127.0.0.1:{port}: ")), "{nobody}");
    assert!(failed("export", port, &["k", "-o", "k.txt"], 1).contains("names no format"));
}
