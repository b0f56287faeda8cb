//! Logging in, on the embedded broker and on every RabbitMQ that is there: what each mechanism is answered, how a login is
//! refused, and what becomes of a new secret.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says why")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use leveret_core::connection::{Connection, ConnectionError, Event, Mechanism, SendBuf, Uri};
use leveret_core::time::Instant;
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::rabbitmq::{brokers, needed_brokers};

/// Nothing here waits for a timer, so time may stand still.
const NOW: Instant = Instant::ORIGIN;

struct Client {
    connection: Connection,
    socket: TcpStream,
    input: BytesMut,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "a client of its own for the tests")]
    fn connect(uri: &Uri) -> Self {
        let socket = TcpStream::connect((uri.host(), uri.port())).expect("the broker is there");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("it can be set");
        Self { connection: Connection::new(uri.connection_config(), NOW), socket, input: BytesMut::new() }
    }

    /// Moves bytes until there is an event.
    fn event(&mut self) -> Event {
        loop {
            let mut out = SendBuf::default();
            while self.connection.poll_transmit(NOW, &mut out) > 0 {
                while out.has_remaining() {
                    let written = self.socket.write(out.chunk()).expect("the broker reads");
                    out.advance(written);
                }
            }
            if let Some(event) = self.connection.poll_event() {
                return event;
            }
            let mut block = [0; 16 * 1024];
            // A peer that hangs up before it has read everything resets the connection.
            let length = self.socket.read(&mut block).unwrap_or(0);
            if length == 0 {
                self.connection.handle_eof(NOW);
            }
            self.input.extend_from_slice(&block[..length]);
            let _ = self.connection.handle_read(NOW, &mut self.input);
        }
    }
}

/// How logging in ends.
fn log_in(uri: &Uri) -> Result<(), ConnectionError> {
    match Client::connect(uri).event() {
        Event::Opened { .. } => Ok(()),
        Event::Closed(error) => Err((*error).clone()),
        other => panic!("neither in nor out: {other:?}"),
    }
}

/// Checks a fact on every broker, given its URI.
fn everywhere(fact: impl Fn(Uri, &str)) {
    let embedded = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port");
    fact(embedded.uri().parse().expect("a good URI"), "the embedded broker");
    for broker in brokers().expect("the brokers that are required are there") {
        fact(broker.uri().parse().expect("a good URI"), &format!("RabbitMQ {}", broker.version()));
    }
}

#[test]
fn each_mechanism_with_a_password_lets_us_in_and_keeps_others_out() {
    everywhere(|uri, place| {
        for mechanism in [Mechanism::Plain, Mechanism::AmqPlain] {
            let builder = || uri.clone().into_builder().auth_mechanisms([mechanism]);
            assert_eq!(log_in(&builder().build().expect("a good URI")), Ok(()), "{mechanism} on {place}");

            let error =
                log_in(&builder().login("guest", "wrong").build().expect("a good URI")).expect_err(place);
            let ConnectionError::AuthenticationRefused { text } = &error else { panic!("{place}: {error}") };
            assert!(text.contains(mechanism.name()), "{place}: {text}");
            assert!(error.is_permanent());
        }
    });
}

#[test]
fn a_mechanism_that_is_not_offered_gives_way_to_the_next() {
    everywhere(|uri, place| {
        let mechanisms = [Mechanism::External, Mechanism::AmqPlain];
        let uri = uri.into_builder().auth_mechanisms(mechanisms).build().expect("a good URI");
        assert_eq!(log_in(&uri), Ok(()), "no TLS and so no EXTERNAL on {place}");
    });
}

#[test]
fn a_virtual_host_that_is_not_there_is_named() {
    everywhere(|uri, place| {
        let uri = uri.into_builder().virtual_host("no such/host").build().expect("a good URI");
        let error = log_in(&uri).expect_err(place);
        let ConnectionError::VirtualHostRefused { virtual_host, .. } = &error else {
            panic!("{place}: {error}")
        };
        assert_eq!(virtual_host, "no such/host");
        assert!(error.is_permanent(), "{place}: {error}");
    });
}

#[test]
fn a_new_secret_is_taken_and_another_may_follow() {
    for broker in needed_brokers().expect("the brokers that are required are there") {
        let mut client = Client::connect(&broker.uri().parse().expect("a good URI"));
        assert!(matches!(client.event(), Event::Opened { .. }));
        for secret in ["guest", "something else"] {
            client.connection.update_secret(secret, "a test").expect("it is open");
            // The internal users of RabbitMQ do not expire: it takes any secret, and looks at none.
            assert_eq!(client.event(), Event::SecretUpdated, "RabbitMQ {}", broker.version());
        }
    }
}

#[test]
fn a_port_for_something_else_is_no_amqp() {
    let listener_of = |answer: &'static [u8]| {
        #[expect(clippy::disallowed_methods, reason = "a server of its own for the test")]
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        #[expect(clippy::disallowed_methods, reason = "a server of its own for the test")]
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("the client comes");
            let mut header = [0; 8];
            socket.read_exact(&mut header).expect("the client speaks first");
            socket.write_all(answer).expect("the client reads");
        });
        (Uri::builder("127.0.0.1").port(port).build().expect("a good URI"), server)
    };
    for (answer, wanted) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "web server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1-0-0"),
        (b"", "ended without a close"),
    ] {
        let (uri, server) = listener_of(answer);
        let error = log_in(&uri).expect_err("nobody to talk to").to_string();
        assert!(error.contains(wanted), "{error}");
        server.join().expect("it only answers");
    }
}
#[test]
fn a_login_longer_than_the_first_frame_may_be_is_not_even_read() {
    for broker in needed_brokers().expect("the brokers that are required are there") {
        let uri: Uri = broker.uri().parse().expect("a good URI");
        let uri = uri.into_builder().login("guest", "x".repeat(9_000)).build().expect("a good URI");
        let error = log_in(&uri).expect_err("nobody has such a password");
        assert_eq!(error, ConnectionError::ProbablyAuthenticationRefused, "RabbitMQ {}", broker.version());
        assert!(error.to_string().contains("initial_frame_max"), "{error}");
    }
}
