//! TLS as a part of connecting.

use std::task::Poll;
use std::time::Duration;

use leveret_core::connection::{TlsConfig, TlsFailure};
use leveret_core::session::{Endpoint, LinkError, SessionConfig};

use super::world::{Authority, Files, Server, Setup, with};
use crate::testing::{MemoryRuntime, queue};
use crate::{Client, Config, ConnectError, ConnectedClient};

fn client(runtime: &MemoryRuntime, tls: &TlsConfig) -> Client<MemoryRuntime> {
    let endpoint = Endpoint::new("broker.test", 5671).with_tls(tls.clone());
    let config = Config::from(SessionConfig::new(
        endpoint,
        crate::ConnectionConfig::new(crate::Credentials::default()),
    ));
    Client::on(runtime.clone(), config).queue(queue())
}

fn connect(
    runtime: &MemoryRuntime,
    tls: &TlsConfig,
    server: &mut Server,
) -> Result<ConnectedClient, ConnectError> {
    let mut connecting = Box::pin(client(runtime, tls).connect());
    for _ in 0..20 {
        if let Poll::Ready(result) = runtime.poll(&mut connecting) {
            return result;
        }
        server.serve();
    }
    panic!("it waits");
}

#[test]
fn amqp_begins_when_tls_is_agreed_on_and_not_before() {
    let (runtime, authority, files) = (MemoryRuntime::default(), Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    let tls = files.trusting(&authority);
    let mut server = Setup::new(&identity).accept(&runtime);
    let mut connecting = Box::pin(client(&runtime, &tls).connect());
    for _ in 0..5 {
        assert!(runtime.poll(&mut connecting).is_pending());
        server.serve();
    }
    assert_eq!(server.heard, b"AMQP\0\0\x09\x01");
    server.say(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let Poll::Ready(Err(error)) = runtime.poll(&mut connecting) else { panic!("that was no AMQP") };
    assert!(error.to_string().contains("web server"), "{error}");
}

#[test]
fn a_server_that_is_not_the_one_is_told_nothing() {
    let (runtime, authority, files) = (MemoryRuntime::default(), Authority::new(), Files::new());
    let stranger = Authority::new().issue(&["broker.test"]);
    let mut server = Setup::new(&stranger).accept(&runtime);
    let error = connect(&runtime, &files.trusting(&authority), &mut server).unwrap_err();
    let ConnectError::Link(LinkError::Tls { failure, .. }) = &error else { panic!("{error:?}") };
    assert!(matches!(**failure, TlsFailure::Certificate { .. }), "{failure:?}");
    assert!(error.to_string().starts_with("no connection to broker.test:5671: "), "{error}");
    assert_eq!(server.heard, b"");
    runtime.run();
    assert!(server.peer.is_closed());
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_bound_on_an_attempt() {
    let (runtime, authority, files) = (MemoryRuntime::default(), Authority::new(), Files::new());
    let peer = runtime.accept();
    let mut connecting = Box::pin(client(&runtime, &files.trusting(&authority)).connect());
    assert!(runtime.poll(&mut connecting).is_pending());
    assert_eq!(peer.received()[..2], [22, 3], "it says hello");
    runtime.advance(Duration::from_secs(9));
    assert!(runtime.poll(&mut connecting).is_pending());
    runtime.advance(Duration::from_secs(2));
    let error = runtime.block_on(connecting).unwrap_err();
    assert!(matches!(error, ConnectError::Link(LinkError::TimedOut { .. })), "{error:?}");
    runtime.run();
    assert!(peer.is_closed());
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn tls_and_login_share_one_bound() {
    let (runtime, authority, files) = (MemoryRuntime::default(), Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    let mut server = Setup::new(&identity).accept(&runtime);
    let mut connecting = Box::pin(client(&runtime, &files.trusting(&authority)).connect());
    assert!(runtime.poll(&mut connecting).is_pending());
    runtime.advance(Duration::from_secs(9));
    for _ in 0..5 {
        server.serve();
        assert!(runtime.poll(&mut connecting).is_pending());
    }
    assert_eq!(server.heard, b"AMQP\0\0\x09\x01");
    runtime.advance(Duration::from_secs(2));
    let error = runtime.block_on(connecting).unwrap_err();
    assert!(matches!(error, ConnectError::Link(LinkError::TimedOut { .. })), "{error:?}");
}

#[test]
fn files_that_cannot_be_used_connect_nowhere() {
    let (runtime, files) = (MemoryRuntime::default(), Files::new());
    let missing = files.dir().join("missing.pem");
    let tls = with(TlsConfig::default(), |tls| tls.ca_file = Some(missing));
    let error = runtime.block_on(client(&runtime, &tls).connect()).unwrap_err();
    let ConnectError::Link(error) = error else { panic!("{error:?}") };
    let LinkError::Tls { failure, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(**failure, TlsFailure::File { .. }), "{failure:?}");
    assert!(error.is_permanent());
    assert!(error.to_string().contains("missing.pem"), "{error}");
    assert_eq!(runtime.connects(), 0);
    runtime.run();
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn the_next_endpoint_is_tried_where_a_certificate_is_not_accepted() {
    let (runtime, authority, files) = (MemoryRuntime::default(), Authority::new(), Files::new());
    let tls = files.trusting(&authority);
    let (expired, good) = (authority.issue_valid(&["one.test"], 1990, 2000), authority.issue(&["two.test"]));
    let mut servers = [Setup::new(&expired).accept(&runtime), Setup::new(&good).accept(&runtime)];
    let endpoint = Endpoint::new("one.test", 5671).with_tls(tls);
    let config = Config::from(SessionConfig::new(
        endpoint,
        crate::ConnectionConfig::new(crate::Credentials::default()),
    ));
    let client = Client::on(runtime.clone(), config.endpoint("two.test", 5671)).queue(queue());
    let mut connecting = Box::pin(client.connect());
    for _ in 0..10 {
        assert!(runtime.poll(&mut connecting).is_pending());
        servers.iter_mut().for_each(Server::serve);
    }
    let [one, two] = servers;
    assert_eq!((&*one.heard, &*two.heard), (&b""[..], &b"AMQP\0\0\x09\x01"[..]));
}

#[test]
fn no_password_is_shown_and_none_is_sent() {
    let (runtime, authority, files) = (MemoryRuntime::default(), Authority::new(), Files::new());
    let ca_file = files.write("ca.pem", &authority.pem);
    let missing = files.dir().join("missing.pem");
    let stranger = Authority::named("a stranger").issue(&["broker.test"]);
    for ca_file in [&ca_file, &missing] {
        let uri = format!("amqps://ada:hunter2@broker.test?cacertfile={}", ca_file.display());
        let config = Config::from_uri(&uri).unwrap();
        let told = format!("{config:?}");
        let client = Client::on(runtime.clone(), config).queue(queue());
        let mut server = Setup::new(&stranger).accept(&runtime);
        let mut connecting = Box::pin(client.connect());
        let error = loop {
            match runtime.poll(&mut connecting) {
                Poll::Ready(result) => break result.unwrap_err(),
                Poll::Pending => server.serve(),
            }
        };
        for shown in [told, error.to_string(), format!("{error:?}")] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(server.heard, b"");
    }
}
