//! The suite's own RabbitMQ servers: they start, answer, stay out of each other's way, and leave nothing behind.
#![cfg(target_os = "linux")] // They look for what was left in /proc.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use leveret_testkit::rabbitmq::{RealBroker, needed_brokers, needed_installations, our_brokers, unique_name};

/// `host:port` of a URI such as `amqp://guest:guest@127.0.0.1:5672/vhost`.
fn address(uri: &str) -> &str {
    let authority = uri.strip_prefix("amqp://").unwrap().split('/').next().unwrap();
    authority.rsplit('@').next().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a real broker is behind a real socket")]
fn connect(uri: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(address(uri))
}

/// The processes whose environment speaks of `mark`. A process that is dead and not yet collected has none.
fn processes_with(mark: &str) -> Vec<PathBuf> {
    let speaks_of_it = |process: &PathBuf| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(mark)
    };
    let numbered = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    numbered.filter(speaks_of_it).collect()
}

/// What is unique to a server of our own: its node and its directory are named so.
fn node_name(broker: &RealBroker) -> String {
    let node = broker.ctl(&["eval", "node()."]).unwrap();
    node.trim().trim_matches('\'').split('@').next().unwrap().to_owned()
}

/// A killed server is gone soon, but not at once: the helpers of an Erlang machine end when their pipe does.
fn assert_gone(name: &str) {
    let dir = std::env::temp_dir().join(name);
    let gone = (0..20_000).any(|_| {
        std::thread::yield_now();
        processes_with(name).is_empty() && !dir.exists()
    });
    assert!(gone, "left: {:?}, directory: {}", processes_with(name), dir.exists());
}

#[test]
fn every_broker_opens_with_connection_start() {
    for broker in needed_brokers().unwrap() {
        let mut stream = connect(broker.uri()).unwrap();
        stream.write_all(b"AMQP\x00\x00\x09\x01").unwrap();
        let mut start = [0; 13];
        stream.read_exact(&mut start).unwrap();
        // A method frame on channel 0 with class 10, method 10, and version 0-9.
        assert_eq!(start[..3], [1, 0, 0], "{broker:?}");
        assert_eq!(start[7..], [0, 10, 0, 10, 0, 9], "{broker:?}");
        assert!(broker.major_version() >= 3, "{broker:?}");
    }
}

#[test]
fn a_new_virtual_host_is_empty_and_known_to_the_broker() {
    for broker in our_brokers().unwrap() {
        let uri = broker.vhost().unwrap();
        let vhost = uri.rsplit('/').next().unwrap();
        assert_eq!(broker.ctl(&["list_queues", "--quiet", "--vhost", vhost]).unwrap(), "", "{broker:?}");
        assert!(broker.ctl(&["list_permissions", "--vhost", vhost]).unwrap().contains("guest"), "{broker:?}");
        assert_ne!(broker.vhost().unwrap(), uri);
    }
}

#[test]
fn a_refused_command_says_what_the_broker_said() {
    for broker in our_brokers().unwrap() {
        let missing = unique_name("missing");
        let error = broker.ctl(&["delete_vhost", &missing]).unwrap_err().to_string();
        assert!(error.contains(&missing), "{error}");
    }
}

#[test]
fn two_servers_at_once_do_not_meet() {
    for installation in needed_installations() {
        let first = RealBroker::start(&installation).unwrap();
        let second = RealBroker::start(&installation).unwrap();
        assert_ne!(address(first.uri()), address(second.uri()));
        first.ctl(&["add_vhost", "only-here"]).unwrap();
        assert!(first.ctl(&["list_vhosts"]).unwrap().contains("only-here"));
        assert!(!second.ctl(&["list_vhosts"]).unwrap().contains("only-here"));

        drop(first);
        assert!(connect(second.uri()).is_ok(), "the end of one server took the other with it");
    }
}

#[test]
fn a_dropped_server_leaves_nothing_behind() {
    for installation in needed_installations() {
        let broker = RealBroker::start(&installation).unwrap();
        let uri = broker.uri().to_owned();
        let name = node_name(&broker);
        assert!(!processes_with(&name).is_empty(), "looked for the wrong mark: {name}");

        drop(broker);
        assert!(connect(&uri).is_err(), "{uri} still answers");
        assert_gone(&name);
    }
}

#[test]
fn a_killed_process_takes_its_server_along() {
    // This test in a process of its own, which is the one to be killed.
    const CHILD: &str = "LEVERET_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let broker = RealBroker::start(&needed_installations()[0]).unwrap();
        println!("\nnode {}", node_name(&broker));
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    if needed_installations().is_empty() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_process_takes_its_server_along", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let name = lines.filter_map(|line| line.strip_prefix("node ").map(str::to_owned)).next().unwrap();
    assert!(!processes_with(&name).is_empty(), "looked for the wrong mark: {name}");

    child.kill().unwrap();
    child.wait().unwrap();
    assert_gone(&name);
}
