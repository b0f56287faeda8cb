//! The broker on a port, and the command that starts it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;

#[expect(clippy::disallowed_methods, reason = "this test is the client")]
fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    // What waits for ever fails instead.
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn start() -> TcpBroker {
    TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").unwrap()
}

/// Begins a handshake and reads the head of `connection.start`.
fn greet(addr: SocketAddr) -> TcpStream {
    let mut stream = connect(addr);
    stream.write_all(b"AMQP\x00\x00\x09\x01").unwrap();
    let mut head = [0; 7];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..3], [1, 0, 0], "a method on channel 0");
    stream
}

fn read_to_end(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_not_amqp_gets_its_answer_before_the_socket_closes() {
    let broker = start();
    let mut stream = connect(broker.addr());
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(read_to_end(stream), b"AMQP\x00\x00\x09\x01");
}

#[test]
fn dropping_the_broker_ends_its_clients_and_frees_the_port() {
    let broker = start();
    let addr = broker.addr();
    let stream = greet(addr);
    drop(broker);
    read_to_end(stream);
    #[expect(clippy::disallowed_methods, reason = "to see that the port is free")]
    let again = TcpListener::bind(addr);
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn deadlines_are_kept_without_any_client_doing_anything() {
    let config = BrokerConfig::default().handshake_timeout(Duration::from_millis(20));
    let broker = TcpBroker::start(config, "127.0.0.1:0").unwrap();
    read_to_end(greet(broker.addr()));
}

#[test]
fn the_command_says_where_it_listens() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_broker"))
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(command.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim_end().strip_prefix("leveret broker: listening on amqp://127.0.0.1:");
    let port: u16 = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
    greet(SocketAddr::from(([127, 0, 0, 1], port)));
    command.kill().unwrap();
    command.wait().unwrap();
}

#[test]
fn a_wrong_command_line_is_explained() {
    let taken = start();
    let port = taken.addr().port().to_string();
    for (arguments, expected) in [
        (&["--port", "http"][..], "broker: --port takes a number from 0 to 65535, found 'http'"),
        (&["--port", "65536"], "broker: --port takes a number from 0 to 65535, found '65536'"),
        (&["--host", "localhost"], "broker: --host takes an IP address, found 'localhost'"),
        (&["--prot", "1"], "invalid option '--prot'"),
        (&["--port"], "missing argument"),
        (&["--port", &port], "broker: cannot listen on 127.0.0.1"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_broker")).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
    let help = Command::new(env!("CARGO_BIN_EXE_broker")).arg("--help").output().unwrap();
    assert!(help.status.success() && help.stdout.starts_with(b"An AMQP 0-9-1 broker"));
}
