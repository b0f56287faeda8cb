//! Which member of the workspace may know which, and what the core reaches.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{none, root};

/// What a member may depend on among the others.
struct Arrows {
    member: &'static str,
    /// To be built.
    normal: &'static [&'static str],
    /// For its tests, examples and benchmarks only.
    dev: &'static [&'static str],
}

/// core <- adapter <- adapter-*; the testkit knows core and adapter, the fuzz targets core and testkit. Nothing points
/// back: only tests of an outer member may use what lies further out.
const ARROWS: &[Arrows] = &[
    Arrows { member: "leveret-core", normal: &[], dev: &[] },
    Arrows { member: "leveret-adapter", normal: &["leveret-core"], dev: &[] },
    Arrows {
        member: "leveret-tokio",
        normal: &["leveret-core", "leveret-adapter"],
        dev: &["leveret-testkit"],
    },
    Arrows {
        member: "leveret-async-std",
        normal: &["leveret-core", "leveret-adapter"],
        dev: &["leveret-testkit"],
    },
    Arrows {
        member: "leveret-testkit",
        normal: &["leveret-core", "leveret-adapter"],
        dev: &["leveret-tokio", "leveret-async-std"],
    },
    Arrows { member: "leveret-fuzz", normal: &["leveret-core", "leveret-testkit"], dev: &[] },
];

/// All that the core is built on.
const CORE_PACKAGES: &[&str] =
    &["amq-protocol", "bytes", "humantime", "percent-encoding", "serde", "serde_json", "tracing", "uuid"];

/// Runtimes, sockets, TLS, random sources and other clients: none of them is reachable from the core. amq-protocol's own tree, with
/// its default features off, has the traits of a runtime and no runtime.
const OUTSIDE: &[&str] = &[
    "async-channel",
    "async-executor",
    "async-global-executor",
    "async-io",
    "async-net",
    "async-std",
    "futures-executor",
    "getrandom",
    "hyper",
    "lapin",
    "mio",
    "native-tls",
    "openssl",
    "polling",
    "rand",
    "reqwest",
    "ring",
    "rustls",
    "rustls-native-certs",
    "smol",
    "socket2",
    "tokio",
    "tokio-util",
];

/// What `cargo` with these arguments prints.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cargo {}: {err}", arguments.join(" "));
    out.into_owned()
}

/// The packages of the workspace, as cargo describes them.
fn members() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]);
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    let Value::Array(packages) = metadata["packages"].take() else {
        panic!("no packages in cargo's metadata")
    };
    assert!(packages.len() > 1, "looked in the wrong place");
    packages
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("cargo's metadata has no {key} in {value}"))
}

/// `file:line` of the first line in a package's manifest that begins with `start`.
fn manifest_line(package: &Value, start: &str) -> String {
    let path = text(package, "manifest_path");
    let manifest = fs::read_to_string(path).unwrap();
    let line = manifest.lines().position(|line| line.starts_with(start)).map_or(1, |index| index + 1);
    let path = path.strip_prefix(&format!("{}/", root().display())).unwrap_or(path);
    format!("{path}:{line}")
}

#[test]
fn no_arrow_points_back() {
    let packages = members();
    let names: BTreeSet<&str> = packages.iter().map(|package| text(package, "name")).collect();
    let mut findings = Vec::new();
    for package in &packages {
        let name = text(package, "name");
        let Some(arrows) = ARROWS.iter().find(|arrows| arrows.member == name) else {
            findings.push(format!(
                "{}: {name} is new: say in this test what it may know",
                manifest_line(package, "name")
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(dependency, "name");
            let allowed = match dependency["kind"].as_str() {
                None => arrows.normal.contains(&to),
                Some("dev") => arrows.normal.contains(&to) || arrows.dev.contains(&to),
                Some(_) => false,
            };
            if names.contains(to) && !allowed {
                findings.push(format!("{}: {name} -> {to}", manifest_line(package, to)));
            }
        }
    }
    none(
        &findings,
        "core <- adapter <- adapter-*; testkit -> core, adapter; fuzz -> core, testkit. Nothing points back.",
    );
}

#[test]
fn the_core_is_built_on_few_packages_without_their_defaults() {
    let packages = members();
    let core = packages.iter().find(|package| text(package, "name") == "leveret-core").unwrap();
    let mut findings = Vec::new();
    for dependency in core["dependencies"].as_array().unwrap() {
        let name = text(dependency, "name");
        if !dependency["kind"].is_null() {
            continue;
        }
        if !CORE_PACKAGES.contains(&name) {
            findings.push(format!("{}: leveret-core -> {name}", manifest_line(core, name)));
        }
        if dependency["uses_default_features"] != Value::Bool(false) {
            findings.push(format!("{}: {name} with its default features", manifest_line(core, name)));
        }
    }
    none(
        &findings,
        "What the core is built on, every user builds: it stays small, and default features stay off.",
    );
}

#[test]
fn no_runtime_and_no_socket_is_reachable_from_the_core() {
    let tree =
        cargo(&["tree", "-p", "leveret-core", "-e", "normal", "--prefix", "none", "--locked", "--offline"]);
    let reached: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(reached.contains("amq-protocol"), "looked at the wrong tree:\n{tree}");
    let path = |name: &str| {
        cargo(&["tree", "-p", "leveret-core", "-e", "normal", "--locked", "--offline", "-i", name])
    };
    let findings: Vec<String> =
        OUTSIDE.iter().filter(|name| reached.contains(*name)).map(|name| path(name)).collect();
    none(
        &findings,
        "core/Cargo.toml: the core reaches no runtime, socket, TLS or random source. The trees show how it got there.",
    );
}

/// All that TLS is built on, where it is asked for: what the faces reach with the feature and not without.
const TLS_PACKAGES: &[&str] = &[
    "cfg-if",
    "getrandom",
    "libc",
    "openssl-probe",
    "ring",
    "rustls",
    "rustls-native-certs",
    "rustls-pki-types",
    "rustls-webpki",
    "subtle",
    "untrusted",
    "zeroize",
];

#[test]
fn tls_is_built_where_it_is_asked_for_and_stays_small() {
    let reached = |member: &str, features: &[&str]| -> BTreeSet<String> {
        let tree = ["tree", "-p", member, "-e", "normal", "--prefix", "none", "--locked", "--offline"];
        let target = ["--target", "x86_64-unknown-linux-gnu"];
        let tree = cargo(&[&tree[..], &target, features].concat());
        tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let mut findings = Vec::new();
    for member in ["leveret-adapter", "leveret-tokio", "leveret-async-std"] {
        let without = reached(member, &[]);
        let with = reached(member, &["--features", "tls"]);
        assert!(with.contains("rustls"), "looked at the wrong tree of {member}");
        let early = ["rustls", "ring"].into_iter().filter(|name| without.contains(*name));
        findings.extend(early.map(|name| format!("{member} -> {name} without its feature tls")));
        let more = with.difference(&without).filter(|name| !TLS_PACKAGES.contains(&name.as_str()));
        findings.extend(more.map(|name| format!("{member} -> {name} with its feature tls")));
    }
    none(&findings, "TLS is for those who turn it on, and they build few packages for it.");
}

#[test]
fn every_member_is_held_to_the_lints_of_the_workspace() {
    let mut findings = Vec::new();
    for package in members() {
        let manifest = fs::read_to_string(text(&package, "manifest_path")).unwrap();
        let inherits =
            manifest.lines().skip_while(|line| *line != "[lints]").nth(1) == Some("workspace = true");
        if !inherits {
            findings.push(format!(
                "{}: no `[lints]` with `workspace = true`",
                manifest_line(&package, "[lints]")
            ));
        }
    }
    none(&findings, "Every member inherits the lints of the workspace.");
}
