use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::connection::{ClientCertificate, Mechanism, Verification};

fn parts(uri: &str) -> (String, String, String, u16, String) {
    let uri = Uri::parse(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
    let (user, password) = uri.credentials.login().expect("a login");
    (user.to_owned(), password.to_owned(), uri.host.clone(), uri.port, uri.virtual_host.to_string())
}

fn error(uri: &str) -> UriError {
    Uri::parse(uri).expect_err(uri)
}

#[test]
fn a_password_that_holds_what_looks_like_a_list_of_uris_is_not_shown() {
    let list = "amqps://user:/v,amqps://wo:1/?vverifehunter/v,amqps://wo:1/?vverife@host";
    let error = UriList::parse(list).unwrap_err();
    assert!(!format!("{error:?}{error}").contains("hunter"), "{error}");
    let misspelt = UriList::parse("amqp://one?heartbeet=5,amqp://two").unwrap_err();
    assert!(misspelt.to_string().contains("heartbeet"), "{misspelt}");
}

#[test]
fn the_table_of_examples() {
    let guest = ("guest", "guest");
    for (uri, (user, password), host, port, virtual_host) in [
        ("amqp://user:pass@host:10000/vhost", ("user", "pass"), "host", 10_000, "vhost"),
        ("amqp://user%61:%61pass@ho%61st:10000/v%2fhost", ("usera", "apass"), "hoast", 10_000, "v/host"),
        ("amqp://", guest, "localhost", 5672, "/"),
        ("amqp://:@/", ("", ""), "localhost", 5672, ""),
        ("amqp://user@", ("user", ""), "localhost", 5672, "/"),
        ("amqp://user:pass@", ("user", "pass"), "localhost", 5672, "/"),
        ("amqp://host", guest, "host", 5672, "/"),
        ("amqp://:10000", guest, "localhost", 10_000, "/"),
        ("amqp:///vhost", guest, "localhost", 5672, "vhost"),
        ("amqp://host/", guest, "host", 5672, ""),
        ("amqp://host/%2f", guest, "host", 5672, "/"),
        ("amqp://[::1]", guest, "::1", 5672, "/"),
        ("AMQP://[::1]:5673/%2F?heartbeat=5", guest, "::1", 5673, "/"),
        ("amqp://[fe80::1%25eth0]:5673", guest, "fe80::1%eth0", 5673, "/"),
        ("amqp://[::ffff:127.0.0.1]", guest, "::ffff:127.0.0.1", 5672, "/"),
        ("amqp://10.0.0.1", guest, "10.0.0.1", 5672, "/"),
        ("amqp://host:/", guest, "host", 5672, ""),
        ("amqp://a+b:p%40ss%3aw%2frd%25+%c3%a9@h", ("a+b", "p@ss:w/rd%+é"), "h", 5672, "/"),
        ("amqp://u:p@ss:word@h", ("u", "p@ss:word"), "h", 5672, "/"),
        ("amqps://host", guest, "host", 5671, "/"),
        ("AmqpS://user:pass@host:5672/vhost", ("user", "pass"), "host", 5672, "vhost"),
    ] {
        let expected = (user.into(), password.into(), host.into(), port, virtual_host.into());
        assert_eq!(parts(uri), expected, "{uri}");
    }
}

#[test]
fn limits_are_read_with_their_units() {
    let uri =
        Uri::parse("amqp://h?heartbeat=5&connection_timeout=3000&frame_max=8192&channel_max=10").unwrap();
    let config = uri.connection_config();
    assert_eq!(config.heartbeat, Duration::from_secs(5));
    assert_eq!(config.handshake_timeout, Duration::from_secs(3));
    assert_eq!((config.frame_max, config.channel_max), (8_192, 10));
    assert!(uri.tls().is_none());
}

#[test]
fn what_is_left_out_has_the_default_of_the_configuration() {
    let config = Uri::parse("amqp://guest:guest@h/%2f").unwrap().connection_config();
    assert_eq!(config, ConnectionConfig::new(Credentials::default()));
}

#[test]
fn parameters_of_tls_are_paths_and_names() {
    let uri = Uri::parse(
        "amqps://h?cacertfile=/etc/my%20ca.pem&certfile=c+c.pem&keyfile=%2Fk%26k.pem&verify=verify_none\
         &server_name_indication=rabbit.example",
    );
    let expected = TlsConfig {
        ca_file: Some("/etc/my ca.pem".into()),
        client_certificate: Some(ClientCertificate {
            cert_file: "c+c.pem".into(),
            key_file: "/k&k.pem".into(),
        }),
        verification: Verification::None,
        server_name: Some("rabbit.example".to_owned()),
    };
    assert_eq!(uri.unwrap().tls(), Some(&expected));
    assert_eq!(Uri::parse("amqps://h").unwrap().tls(), Some(&TlsConfig::default()));
    assert_eq!(TlsConfig::default().verification, Verification::Peer, "nothing is trusted unasked");
}

#[test]
fn mechanisms_are_read_in_their_order() {
    use Mechanism::{AmqPlain, External, Plain};
    for (query, mechanisms) in [
        ("", &[Plain, AmqPlain][..]),
        ("?auth_mechanism=amqplain", &[AmqPlain]),
        ("?auth_mechanism=EXTERNAL&heartbeat=5&auth_mechanism=plain", &[External, Plain]),
        ("?auth%5fmechanism=%70lain", &[Plain]),
    ] {
        let uri = Uri::parse(&format!("amqp://ada:x@h{query}")).unwrap();
        assert_eq!(uri.credentials().mechanisms(), mechanisms, "{query}");
        assert_eq!(uri.credentials().user(), Some("ada"));
    }
}

#[test]
fn external_alone_needs_a_certificate_and_no_name() {
    let certified = "certfile=/c&keyfile=/k";
    let uri = Uri::parse(&format!("amqps://h?{certified}&auth_mechanism=external")).unwrap();
    assert_eq!(uri.credentials(), &Credentials::external());
    let uri =
        Uri::parse(&format!("amqps://h?{certified}&auth_mechanism=external&auth_mechanism=plain")).unwrap();
    assert_eq!(uri.credentials().user(), Some("guest"), "another mechanism may be the one that is offered");
    let uri = Uri::parse(&format!("amqps://ada:x@h?{certified}&auth_mechanism=external")).unwrap();
    assert_eq!(uri.credentials().user(), Some("ada"), "a name that is given is kept");

    for uri in ["amqp://h?auth_mechanism=external", "amqps://h?auth_mechanism=external&cacertfile=/ca"] {
        assert_eq!(error(uri), UriError::ExternalWithoutCertificate, "{uri}");
    }
}

#[test]
fn errors_name_the_part() {
    for (uri, part) in [
        ("localhost", "amqp://"),
        ("http://host", "amqp://"),
        ("amqp:/host", "amqp://"),
        ("amqp://host:0", "port"),
        ("amqp://host:65536", "port"),
        ("amqp://host:x", "port"),
        ("amqp://host:+1", "port"),
        ("amqp://::1", "port"),
        ("amqp://[::1", "host"),
        ("amqp://[::1]x", "host"),
        ("amqp://[zz]", "host"),
        ("amqp://[10.0.0.1]", "host"),
        ("amqp://[fe80::1%eth0]", "host"),
        ("amqp://[fe80::1%25]", "host"),
        ("amqp://[fe80::1%25e%20]", "host"),
        ("amqp://h ost", "host"),
        ("amqp://h%3aost", "host"),
        ("amqp://one,two", "host"),
        ("amqp://ho%zzst", "host"),
        ("amqp://host/a/b", "virtual host"),
        ("amqp://host/%zz", "virtual host"),
        ("amqp://us%e9r@host", "user name"),
        ("amqp://us%00er@host", "user name"),
        ("amqp://u:p%4@host", "password"),
        ("amqp://u:p%00@host", "password"),
        ("amqp://host?heartbeat=-1", "heartbeat"),
        ("amqp://host?heartbeat=+1", "heartbeat"),
        ("amqp://host?heartbeat=65536", "heartbeat"),
        ("amqp://host?heartbeat=", "heartbeat"),
        ("amqp://host?heartbeat", "heartbeat"),
        ("amqp://host?heartbeat=%e9", "heartbeat"),
        ("amqp://host?connection_timeout=0", "connection_timeout"),
        ("amqp://host?connection_timeout=4294967296", "connection_timeout"),
        ("amqp://host?frame_max=4096", "frame_max"),
        ("amqp://host?frame_max=0", "frame_max"),
        ("amqp://host?channel_max=65536", "channel_max"),
        ("amqp://host?auth_mechanism=scram", "auth_mechanism"),
        ("amqps://host?verify=none", "verify"),
        ("amqps://host?cacertfile=", "cacertfile"),
        ("amqps://host?certfile=&keyfile=k", "certfile"),
        ("amqps://host?certfile=c&keyfile=", "keyfile"),
        ("amqps://host?server_name_indication=", "server_name_indication"),
        ("amqps://host?server_name_indication=a/b", "server_name_indication"),
        ("amqp://host?prefetch=5", "prefetch"),
        ("amqp://host?=5", "\"\""),
        ("amqp://host?%zz=5", "query"),
    ] {
        let error = error(uri).to_string();
        assert!(error.contains(part), "{uri}: {error}");
    }
    let long = format!("amqp://host/{}", "v".repeat(256));
    assert_eq!(error(&long), UriError::VirtualHostTooLong { bytes: 256 });
    let long = format!("amqp://host?{}=1", "é".repeat(100));
    assert_eq!(error(&long), UriError::UnknownParameter { name: "é".repeat(32) });
}

#[test]
fn a_parameter_counts_once() {
    for name in [
        "heartbeat=5",
        "connection_timeout=5",
        "frame_max=8192",
        "channel_max=5",
        "auth_mechanism=plain",
        "cacertfile=f",
        "certfile=f",
        "keyfile=f",
        "verify=verify_peer",
        "server_name_indication=h",
    ] {
        let found = error(&format!("amqps://host?{name}&&{name}"));
        let UriError::Duplicate { name: found } = found else { panic!("{name}: {found}") };
        assert!(name.starts_with(found));
    }
}

#[test]
fn combinations_that_cannot_be_are_refused() {
    assert_eq!(error("amqps://h?certfile=c"), UriError::Half { given: "certfile", missing: "keyfile" });
    assert_eq!(error("amqps://h?keyfile=k"), UriError::Half { given: "keyfile", missing: "certfile" });
    for (query, name) in [
        ("cacertfile=ca", "cacertfile"),
        ("certfile=c&keyfile=k", "certfile"),
        ("verify=verify_peer", "verify"),
        ("server_name_indication=h", "server_name_indication"),
    ] {
        assert_eq!(error(&format!("amqp://h?{query}")), UriError::NeedsTls { name });
    }
}

#[test]
fn no_part_of_a_password_is_shown() {
    for uri in [
        "amqp://user:sec/ret@host",
        "amqp://user:sec?ret@host",
        "amqp://user:sec?ret=1@host",
        "amqp://user:sec#ret@host",
        "amqp://user:sec%ret@host",
        "amqp://user:1/sec/ret@host/v",
        "amqp://user:secret@host:x",
        "amqp://user:secret@ho st",
        "amqp://user:secret@host?heartbeat=x",
        "amqp://user:secret@host?nothing=x",
    ] {
        let error = error(uri);
        assert!(!format!("{error} {error:?}").contains("ret"), "{uri}: {error}");
    }
    let uri = Uri::parse("amqp://user:secret@host").unwrap();
    let list = UriList::from(uri.clone());
    let builder = uri.clone().into_builder();
    let config = uri.connection_config();
    let printed = format!("{uri:?} {uri} {list:?} {list} {builder:?} {config:?}");
    assert!(printed.contains("user") && !printed.contains("secret"), "{printed}");
}

#[test]
fn a_password_that_is_not_encoded_is_never_taken_for_something_else() {
    for uri in [
        "amqp://user:1/secret@host",
        "amqp://user:/secret@host",
        "amqp://user:1?channel_max=1@host",
        "amqp://user:1/v?server_name_indication=secret@host",
        "amqp://user:1#secret@host",
    ] {
        assert_eq!(error(uri), UriError::Reserved, "{uri}");
    }
}

#[test]
fn a_uri_is_printed_whole_but_for_its_password() {
    for (uri, printed) in [
        ("amqp://", "amqp://guest@localhost:5672/%2F"),
        ("amqp://a%3ab:x@h/", "amqp://a%3Ab@h:5672/"),
        ("amqp://[fe80::1%25eth0]/v%2fé", "amqp://guest@[fe80::1%25eth0]:5672/v%2F%C3%A9"),
        (
            "amqps://h?auth_mechanism=amqplain&channel_max=0&cacertfile=/c%26a&verify=verify_none",
            "amqps://guest@h:5671/%2F?channel_max=0&auth_mechanism=amqplain&cacertfile=/c%26a&verify=verify_none",
        ),
    ] {
        assert_eq!(Uri::parse(uri).unwrap().to_string(), printed);
    }
}

#[test]
fn a_builder_overrides_single_parts() {
    let uri = Uri::parse("amqp://ada:x@one/jobs?heartbeat=5&auth_mechanism=plain").unwrap();
    let same = uri.clone().into_builder().build().unwrap();
    assert_eq!(same, uri);
    let other = uri.into_builder().tls(true).host("[::1]").virtual_host("/").heartbeat(Duration::ZERO);
    let expected = Uri::parse("amqps://ada:x@[::1]?heartbeat=0&auth_mechanism=plain").unwrap();
    assert_eq!(other.build().unwrap(), expected);
}

#[test]
fn a_builder_is_as_strict_as_a_uri() {
    let h = || Uri::builder("h");
    for (builder, error) in [
        (h().port(0), UriError::Port),
        (h().host("a b"), UriError::Host),
        (h().host("[h]"), UriError::Host),
        (h().host("::1%e]"), UriError::Host),
        (h().login("a\0", ""), UriError::Nul { part: "user name" }),
        (h().heartbeat(Duration::from_millis(1_500)), UriError::HEARTBEAT),
        (h().heartbeat(Duration::from_secs(65_536)), UriError::HEARTBEAT),
        (h().connection_timeout(Duration::ZERO), UriError::CONNECTION_TIMEOUT),
        (h().connection_timeout(Duration::from_micros(1_500)), UriError::CONNECTION_TIMEOUT),
        (h().connection_timeout(Duration::MAX), UriError::CONNECTION_TIMEOUT),
        (h().frame_max(8_191), UriError::FRAME_MAX),
        (h().ca_file("ca"), UriError::NeedsTls { name: "cacertfile" }),
        (h().tls(true).server_name(""), UriError::SERVER_NAME),
        (h().auth_mechanisms([Mechanism::External]), UriError::ExternalWithoutCertificate),
        (
            h().auth_mechanisms([Mechanism::Plain, Mechanism::Plain]),
            UriError::Duplicate { name: "auth_mechanism" },
        ),
    ] {
        assert_eq!(builder.build(), Err(error));
    }
}

#[test]
fn a_list_keeps_its_order_and_each_uri_its_own_parts() {
    let list =
        UriList::parse(" amqp://a:1@one,\n\tAMQPS://b:2@two/v?heartbeat=5 , amqp://c:x,y@three\n").unwrap();
    let found: Vec<_> = list.iter().map(|uri| (uri.host(), uri.port(), uri.credentials().login())).collect();
    assert_eq!(
        found,
        [
            ("one", 5672, Some(("a", "1"))),
            ("two", 5671, Some(("b", "2"))),
            ("three", 5672, Some(("c", "x,y"))),
        ]
    );
    let printed = list.to_string();
    assert_eq!(printed, "amqp://a@one:5672/%2F,amqps://b@two:5671/v?heartbeat=5,amqp://c@three:5672/%2F");
    assert_eq!(UriList::parse(&printed).unwrap().iter().count(), 3);
    assert_eq!(
        list.agreed(),
        Err(UriListError::Differs { position: 2, part: "user name, password or auth_mechanism" })
    );
}

#[test]
fn a_list_names_the_uri_that_is_wrong() {
    assert_eq!(UriList::parse(" \n"), Err(UriListError::Empty));
    assert_eq!(UriList::new([]), Err(UriListError::Empty));
    let wrong = |position, error| Err(UriListError::Uri { position, error });
    assert_eq!(UriList::parse("amqp://a,amqp://h:x"), wrong(2, UriError::Port));
    assert_eq!(UriList::parse("amqp://a,"), wrong(1, UriError::Host));
    assert_eq!(UriList::parse("amqp://a,b"), wrong(1, UriError::Host));
    assert_eq!(UriList::parse("amqp://a, http://b"), wrong(2, UriError::Scheme));
}

#[test]
fn a_list_agrees_where_only_hosts_ports_and_tls_differ() {
    let list = UriList::parse("amqp://one/v,amqps://two:1/v?verify=verify_none").unwrap();
    assert_eq!(list.agreed().map(Uri::host), Ok("one"));
    for (query, part) in [
        ("/w", "virtual host"),
        ("/v?heartbeat=5", "heartbeat"),
        ("/v?connection_timeout=5", "connection_timeout"),
        ("/v?channel_max=5", "channel_max"),
        ("/v?frame_max=8192", "frame_max"),
    ] {
        let list = UriList::parse(&format!("amqp://one/v,amqp://two{query}")).unwrap();
        assert_eq!(list.agreed(), Err(UriListError::Differs { position: 2, part }));
    }
}

#[test]
fn a_uri_is_deserialized_from_a_string_and_its_password_is_in_no_error() {
    let uri: Uri = serde_json::from_str(r#""amqp://ada:x@h""#).unwrap();
    assert_eq!(uri, Uri::parse("amqp://ada:x@h").unwrap());
    let list: UriList = serde_json::from_str(r#""amqp://ada:x@h,amqp://i""#).unwrap();
    assert_eq!(list.iter().count(), 2);
    let error = serde_json::from_str::<Uri>(r#""amqp://ada:secret@h?heartbeat=x""#).unwrap_err().to_string();
    assert!(error.contains("heartbeat") && !error.contains("secret"), "{error}");
    let error = serde_json::from_str::<UriList>("5").unwrap_err().to_string();
    assert!(error.contains("a list of AMQP URIs"), "{error}");
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Texts that come close to a URI.
fn any_uri() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("amqp://".to_owned()),
        Just("amqps://".to_owned()),
        prop::sample::select(vec![
            ":",
            "@",
            "/",
            "?",
            "&",
            "=",
            "%",
            "%25",
            "%2f",
            "#",
            "[",
            "]",
            "::1",
            "[::1]",
            ",",
            "+",
            "5672",
            "heartbeat=5",
            "connection_timeout=1",
            "channel_max=0",
            "frame_max=9000",
            "auth_mechanism=plain",
            "auth_mechanism=external",
            "cacertfile=/a",
            "certfile=/b",
            "keyfile=/c",
            "verify=verify_none",
            "server_name_indication=x",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
        "[a-z]{1,6}",
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..12)).prop_map(|(begin, pieces)| {
        format!("{}{}", if begin { "amqp://" } else { "amqps://" }, pieces.concat())
    })
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*", tail in ".*") {
        let _ = Uri::parse(&text);
        let _ = UriList::parse(&text);
        let _ = Uri::parse(&format!("amqp://{tail}"));
    }

    #[test]
    fn what_is_encoded_comes_back(user in "[^\0]*", password in "[^\0]*", virtual_host in ".{0,60}", path in ".+") {
        let uri = format!(
            "amqps://{}:{}@h/{}?cacertfile={}", encode(&user), encode(&password), encode(&virtual_host), encode(&path)
        );
        let uri = Uri::parse(&uri).unwrap();
        prop_assert_eq!(&uri.credentials, &Credentials::new(user, password));
        prop_assert_eq!(uri.virtual_host(), &virtual_host.as_str());
        prop_assert_eq!(uri.tls().unwrap().ca_file.as_deref(), Some(std::path::Path::new(&path)));
    }

    #[test]
    fn a_uri_that_is_printed_and_parsed_again_is_the_same(text in any_uri()) {
        if let Ok(uri) = Uri::parse(&text) {
            prop_assert_eq!(Uri::parse(&uri.to_string()), Ok(uri.clone().without_password()));
            prop_assert_eq!(uri.clone().into_builder().build(), Ok(uri.clone()));
            let list = UriList::new([uri.clone(), uri.clone()]).unwrap();
            let again = UriList::parse(&list.to_string()).unwrap();
            prop_assert!(again.iter().all(|one| *one == uri.clone().without_password()));
        }
    }

    #[test]
    fn no_error_holds_the_password(before in any_uri(), odd in ".{0,8}", after in any_uri()) {
        let after = &after["amqp".len()..];
        for uri in [format!("amqp://user:{odd}hunter2{odd}@{after}"), format!("{before}:hunter2{odd}@{after}")] {
            if let Err(error) = Uri::parse(&uri) {
                prop_assert!(!format!("{error}{error:?}").contains("hunter2"), "{uri}: {error}");
            }
            if let Err(error) = UriList::parse(&uri) {
                prop_assert!(!format!("{error}{error:?}").contains("hunter2"), "{uri}: {error}");
            }
        }
    }
}
