//! Which names stay where: the core's purity, the one place for the codec, the size of a file.

use crate::none;
use crate::source::{Source, has_name, sources};

/// What the core never names, and what it does instead.
const IMPURE: &[(&str, &str)] = &[
    ("Instant::now", "the time is an argument"),
    ("std::time::Instant", "the core has an `Instant` of its own"),
    ("SystemTime", "wall-clock time is an argument"),
    ("std::thread", "the core owns no threads"),
    ("thread::spawn", "the core owns no threads"),
    ("thread::sleep", "a wait is a deadline that the caller waits for"),
    ("std::net", "the core owns no sockets"),
    ("TcpStream", "the core owns no sockets"),
    ("TcpListener", "the core owns no sockets"),
    ("UdpSocket", "the core owns no sockets"),
    ("async fn", "the core computes and never waits"),
    ("async move", "the core computes and never waits"),
    (".await", "the core computes and never waits"),
    ("Waker", "waking is the adapter's part"),
    ("HashMap", "its order is random: use `BTreeMap` or an indexed table"),
    ("HashSet", "its order is random: use `BTreeSet`"),
    ("RandomState", "randomness is a seed in the constructor"),
];

/// The modules that decide, and which of the others each may know. They stay plain values, so none knows anything of the
/// machinery.
const DECISIONS: &[(&str, &[&str])] = &[
    ("delay", &[]),
    ("retry", &[]),
    ("envelope", &[]),
    ("lane", &[]),
    ("topology", &["delay", "retry", "envelope", "lane"]),
    ("settle", &["delay", "retry", "envelope", "lane", "topology"]),
];
const MACHINERY: &[&str] = &["wire", "connection", "session"];

const LONGEST_FILE: usize = 600;

#[test]
fn the_core_names_no_clock_thread_socket_or_random_order() {
    let core = sources().into_iter().filter(|source| source.is_in("core/src"));
    let findings: Vec<String> = core.flat_map(|source| impurities(&source)).collect();
    none(&findings, "core/src is pure: what happens outside comes in as an argument.");
}

fn impurities(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in source.code() {
        for (name, instead) in IMPURE {
            if has_name(line, name) {
                findings.push(source.at(number, &format!("names `{name}`: {instead}")));
            }
        }
    }
    findings
}

#[test]
fn the_modules_that_decide_know_nothing_of_the_machinery() {
    let sources = sources();
    let decisions = sources.iter().filter(|source| decision(source).is_some());
    let findings: Vec<String> = decisions.flat_map(|source| modules_named(source, MACHINERY)).collect();
    none(
        &findings,
        "topology, delay, retry, envelope, lane and settle are plain values: hand them what they need, or move the \
         type that both sides share to a module of its own.",
    );
}

#[test]
fn the_modules_that_decide_depend_on_each_other_in_one_order() {
    let findings: Vec<String> = sources().iter().flat_map(circles).collect();
    none(
        &findings,
        "delay, retry, envelope, lane <- topology <- settle: what a decision is built on knows nothing of it.",
    );
}

/// The decision that a file belongs to.
fn decision(source: &Source) -> Option<&'static (&'static str, &'static [&'static str])> {
    DECISIONS.iter().find(|(module, _)| source.is_in(&format!("core/src/{module}")))
}

/// Where a decision names another that it may not know.
fn circles(source: &Source) -> Vec<String> {
    let Some((own, may)) = decision(source) else { return Vec::new() };
    let others = DECISIONS.iter().map(|(module, _)| *module);
    let unknown: Vec<&str> = others.filter(|module| module != own && !may.contains(module)).collect();
    modules_named(source, &unknown)
}

/// Where a file names one of these modules: in a path, or anywhere in a `use` of the crate's own items.
fn modules_named(source: &Source, modules: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut in_use = false;
    for (number, line) in source.code() {
        let words = line.trim_start();
        if ["use crate::", "use super::", "pub use crate::", "pub use super::"]
            .iter()
            .any(|start| words.starts_with(start))
        {
            in_use = true;
        }
        for module in modules {
            let in_path =
                ["crate::", "super::"].iter().any(|from| has_name(line, &format!("{from}{module}")));
            if in_path || in_use && has_name(line, module) {
                findings.push(source.at(number, &format!("names `crate::{module}`")));
            }
        }
        if line.ends_with(';') {
            in_use = false;
        }
    }
    findings
}

#[test]
fn the_codec_is_named_in_one_place() {
    let elsewhere = |source: &Source| !source.is_in("core/src/wire") && !source.is_in("tests");
    let mut findings = Vec::new();
    for source in sources().iter().filter(|source| elsewhere(source)) {
        for (number, line) in (1..).zip(source.text.lines()) {
            if has_name(line, "amq_protocol") {
                findings.push(source.at(number, "names `amq_protocol`"));
            }
        }
    }
    none(
        &findings,
        "Only core/src/wire speaks amq_protocol (and tests/, as the oracle): use the core's own types.",
    );
}

#[test]
fn tls_is_spoken_in_one_place() {
    let elsewhere = |source: &Source| !source.is_in("adapter/src/tls") && !source.is_in("tests");
    let mut findings = Vec::new();
    for source in sources().iter().filter(|source| elsewhere(source)) {
        for (number, line) in source.code() {
            if has_name(line, "rustls") {
                findings.push(source.at(number, "names `rustls`"));
            }
        }
    }
    none(&findings, "Only adapter/src/tls speaks rustls: use the core's own types.");
}

#[test]
fn a_file_can_be_read_in_one_sitting() {
    let mut findings = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > LONGEST_FILE {
            findings.push(source.at(lines, &format!("has {lines} lines")));
        }
    }
    none(
        &findings,
        &format!("One idea per file, at most {LONGEST_FILE} lines: split it, tests into a sibling first."),
    );
}

#[test]
fn the_scans_find_what_they_look_for() {
    let source = |text: &str| Source { path: "core/src/delay/mod.rs".to_owned(), text: text.to_owned() };
    let clock = source("fn now() -> u64 {\n    Instant::now().into()\n}\n");
    assert_eq!(
        impurities(&clock),
        ["core/src/delay/mod.rs:2: names `Instant::now`: the time is an argument"]
    );

    let direct = source("use crate::wire::Frame;\n");
    let grouped = source("use crate::{\n    text::ShortString,\n    session::Session,\n};\n");
    let inline = source("fn send(to: &super::connection::Connection) {}\n");
    let innocent = source("use crate::text::ShortString;\n\nlet connection = rewire(session);\n");
    let machinery = |source| modules_named(source, MACHINERY);
    assert_eq!(machinery(&direct), ["core/src/delay/mod.rs:1: names `crate::wire`"]);
    assert_eq!(machinery(&grouped), ["core/src/delay/mod.rs:3: names `crate::session`"]);
    assert_eq!(machinery(&inline), ["core/src/delay/mod.rs:1: names `crate::connection`"]);
    assert_eq!(machinery(&innocent), [""; 0]);

    let upwards = source("use crate::topology::QueueName;\nuse super::granularity::HoldTtl;\n");
    assert_eq!(circles(&upwards), ["core/src/delay/mod.rs:1: names `crate::topology`"]);
    let downwards = Source { path: "core/src/settle/decide.rs".to_owned(), text: upwards.text };
    assert_eq!(circles(&downwards), [""; 0]);
}
