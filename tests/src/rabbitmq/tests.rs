use super::find::listed;
use super::*;

#[test]
fn a_uri_that_does_not_parse_is_named_by_its_place_and_not_by_its_password() {
    let error = listed("none, amqp:/secret@").unwrap_err();
    assert!(matches!(error, RealBrokerError::Uri { position: 1, .. }), "{error}");
    let error = listed("amqps://guest:secret@localhost").unwrap_err();
    assert!(matches!(error, RealBrokerError::Uri { position: 1, .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn none_and_commas_alone_are_no_broker() {
    assert!(listed("none").unwrap().is_empty());
    assert!(listed(" , ,").unwrap().is_empty());
}

#[test]
fn a_server_that_is_no_broker_is_told_apart_from_one_that_is_not_there() {
    use std::io::{Read as _, Write as _};

    #[expect(clippy::disallowed_methods, reason = "a test of a socket needs one")]
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 8]).unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        });
        let error = listed(&format!("amqp://guest:guest@127.0.0.1:{port}")).unwrap_err();
        assert!(matches!(error, RealBrokerError::NotAmqp { .. }), "{error}");
    });
    drop(listener);
    let error = listed(&format!("amqp://guest:guest@127.0.0.1:{port}")).unwrap_err();
    assert!(matches!(error, RealBrokerError::Io { .. }), "{error}");
}

#[test]
fn no_two_names_are_the_same() {
    assert_ne!(unique_name("queue"), unique_name("queue"));
}

#[cfg(feature = "testcontainers")]
#[test]
fn the_colon_of_a_registry_is_not_that_of_a_tag() {
    use super::container::name_and_tag;

    assert_eq!(name_and_tag("rabbitmq:4"), ("rabbitmq", "4"));
    assert_eq!(name_and_tag("rabbitmq"), ("rabbitmq", "latest"));
    assert_eq!(name_and_tag("host:5000/rabbitmq"), ("host:5000/rabbitmq", "latest"));
    assert_eq!(name_and_tag("host:5000/rabbitmq:3.13"), ("host:5000/rabbitmq", "3.13"));
}
