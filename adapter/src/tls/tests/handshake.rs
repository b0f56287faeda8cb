//! Who agrees with whom, and what is said where they do not.

use leveret_core::connection::{PlainPeer, TlsConfig, TlsFailure, Verification};
use std::task::Poll;

use super::world::{Authority, Files, Hesitant, Identity, ONLY_12, ONLY_13, Setup, agree, read, with};
use crate::testing::MemoryRuntime;

/// What becomes of a client that is told `tls`, with a server at `host` that has `identity`; and the name that the
/// server was asked for.
fn meet(identity: &Identity, host: &str, tls: TlsConfig) -> (Result<(), TlsFailure>, Option<String>) {
    let runtime = MemoryRuntime::default();
    let mut server = Setup::new(identity).accept(&runtime);
    let agreed = agree(&runtime, &mut server, host, tls, |memory| memory).map(drop);
    (agreed, server.tls.server_name().map(str::to_owned))
}

fn certificate_problem(identity: &Identity, host: &str, tls: TlsConfig) -> String {
    let (result, _) = meet(identity, host, tls);
    let failure = result.unwrap_err();
    assert!(matches!(&failure, TlsFailure::Certificate { name, .. } if name == host), "{failure:?}");
    assert!(!failure.is_permanent(), "a certificate is renewed one day");
    failure.to_string()
}

#[test]
fn a_name_is_asked_for_and_an_address_is_not() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test", "10.0.0.1", "::1"]);
    let tls = files.trusting(&authority);
    for (host, asked) in [
        ("broker.test", Some("broker.test")),
        ("broker.test.", Some("broker.test")),
        ("10.0.0.1", None),
        ("::1", None),
        ("::1%eth0", None),
    ] {
        assert_eq!(meet(&identity, host, tls.clone()), (Ok(()), asked.map(str::to_owned)), "{host}");
    }
    let named = with(tls, |tls| tls.server_name = Some("broker.test".to_owned()));
    assert_eq!(meet(&identity, "10.9.9.9", named), (Ok(()), Some("broker.test".to_owned())));
}

#[test]
fn a_certificate_for_another_name_is_not_accepted() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["other.test"]);
    let text = certificate_problem(&identity, "broker.test", files.trusting(&authority));
    assert!(text.contains("other.test") && text.contains("server_name_indication"), "{text}");
    let text = certificate_problem(&identity, "10.0.0.1", files.trusting(&authority));
    assert!(text.contains("10.0.0.1"), "{text}");
}

#[test]
fn a_certificate_of_a_stranger_is_not_accepted() {
    let (authority, files) = (Authority::new(), Files::new());
    // One may have the name of ours, such as after it was made anew.
    for stranger in [Authority::named("a stranger"), Authority::new()] {
        let identity = stranger.issue(&["broker.test"]);
        let text = certificate_problem(&identity, "broker.test", files.trusting(&authority));
        assert!(text.contains("cacertfile"), "{text}");
    }
}

#[test]
fn a_certificate_is_accepted_in_its_time_only() {
    let (authority, files) = (Authority::new(), Files::new());
    for (from, until, word) in [(1990, 2000, "expired"), (2190, 2200, "not valid yet")] {
        let identity = authority.issue_valid(&["broker.test"], from, until);
        let text = certificate_problem(&identity, "broker.test", files.trusting(&authority));
        assert!(text.contains(word) && text.contains("clock"), "{text}");
    }
}

#[test]
fn whoever_does_not_verify_accepts_anybody() {
    let (stranger, files) = (Authority::new(), Files::new());
    let identity = stranger.issue_valid(&["other.test"], 1990, 2000);
    let none = with(TlsConfig::default(), |tls| tls.verification = Verification::None);
    for host in ["broker.test", "10.0.0.1"] {
        assert_eq!(meet(&identity, host, none.clone()).0, Ok(()));
    }
    let missing = with(none, |tls| tls.ca_file = Some(files.dir().join("none.pem")));
    assert_eq!(meet(&identity, "broker.test", missing).0, Ok(()), "who trusts anybody needs no authorities");
}

#[test]
fn a_certificate_without_its_key_is_nobody_s() {
    let (authority, files) = (Authority::new(), Files::new());
    let (identity, thief) = (authority.issue(&["broker.test"]), authority.issue(&["thief.test"]));
    let none = with(TlsConfig::default(), |tls| tls.verification = Verification::None);
    for versions in [ONLY_12, ONLY_13] {
        for tls in [files.trusting(&authority), none.clone()] {
            let runtime = MemoryRuntime::default();
            let setup = Setup::new(&identity).without_its_key(&thief).speaking(versions);
            let mut server = setup.accept(&runtime);
            let met = agree(&runtime, &mut server, "broker.test", tls, |memory| memory).map(drop);
            assert!(matches!(met, Err(TlsFailure::Certificate { .. })), "{met:?}");
        }
    }
}

#[test]
fn a_client_certificate_is_shown_to_who_asks_for_it() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    let ours = files.client_certificate(&authority.issue(&["ada"]));
    let tls = with(files.trusting(&authority), |tls| tls.client_certificate = Some(ours));
    for versions in [ONLY_12, ONLY_13] {
        let runtime = MemoryRuntime::default();
        let mut server = Setup::new(&identity).asking_clients(&authority).speaking(versions).accept(&runtime);
        agree(&runtime, &mut server, "broker.test", tls.clone(), |memory| memory).unwrap();
        assert_eq!(server.tls.peer_certificates().map(<[_]>::len), Some(1));
    }
    assert_eq!(meet(&identity, "broker.test", tls).0, Ok(()), "who does not ask is not bothered");
}

#[test]
fn a_server_that_wants_a_certificate_and_gets_none_says_so() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    let runtime = MemoryRuntime::default();
    let setup = Setup::new(&identity).asking_clients(&authority);

    let mut server = setup.speaking(ONLY_12).accept(&runtime);
    let failure = agree(&runtime, &mut server, "broker.test", files.trusting(&authority), |memory| memory)
        .map(drop)
        .unwrap_err();
    assert!(matches!(failure, TlsFailure::Refused { .. }), "{failure:?}");
    assert!(failure.to_string().contains("client certificate"), "{failure}");

    // With 1.3 it looks at the answer to its question when the handshake is over for us.
    let setup = Setup::new(&identity).asking_clients(&authority);
    let mut server = setup.speaking(ONLY_13).accept(&runtime);
    let tls = files.trusting(&authority);
    let mut stream = agree(&runtime, &mut server, "broker.test", tls, |memory| memory).unwrap();
    server.serve();
    let Poll::Ready(Err(error)) = read(&runtime, &mut stream) else { panic!("it was refused") };
    assert!(error.to_string().contains("certfile and keyfile"), "{error}");
}

#[test]
fn a_client_certificate_of_a_stranger_is_refused() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    for stranger in [Authority::named("a stranger"), Authority::new()] {
        let ours = files.client_certificate(&stranger.issue(&["mallory"]));
        let tls = with(files.trusting(&authority), |tls| tls.client_certificate = Some(ours));
        let runtime = MemoryRuntime::default();
        let setup = Setup::new(&identity).asking_clients(&authority).speaking(ONLY_12);
        let mut server = setup.accept(&runtime);
        let met = agree(&runtime, &mut server, "broker.test", tls, |memory| memory);
        let failure = met.map(drop).unwrap_err();
        assert!(failure.to_string().contains("client certificate"), "{failure}");
    }
}

#[test]
fn what_speaks_no_tls_is_told_for_what_it_is() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    for (words, wanted) in [
        (&b"AMQP\0\0\x09\x01"[..], TlsFailure::NotTls { peer: PlainPeer::Amqp }),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", TlsFailure::NotTls { peer: PlainPeer::WebServer }),
        (b"220 mail.test ESMTP\r\n", TlsFailure::NotTls { peer: PlainPeer::Unknown }),
        (&[0xFF; 64], TlsFailure::NotTls { peer: PlainPeer::Unknown }),
        (b"AMQ", TlsFailure::NotTls { peer: PlainPeer::Unknown }),
        (b"", TlsFailure::Ended),
    ] {
        for piece in [1, 100] {
            let runtime = MemoryRuntime::default();
            let mut server = Setup::new(&identity).accept(&runtime);
            server.peer.send(words);
            server.peer.close();
            let around = |memory| Hesitant::new(memory, piece);
            let met = agree(&runtime, &mut server, "broker.test", files.trusting(&authority), around);
            assert_eq!(met.map(drop), Err(wanted.clone()), "{words:?} in pieces of {piece}");
        }
    }
}

#[test]
fn any_bytes_in_place_of_a_handshake_end_in_an_error() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["broker.test"]);
    let tls = files.trusting(&authority);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for kind in 20..=24 {
        for _ in 0..20 {
            // A record's head, then anything.
            let mut words = vec![kind, 3, 3, 0, 60];
            words.extend((0..60).map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random.to_le_bytes()[0]
            }));
            let runtime = MemoryRuntime::default();
            let mut server = Setup::new(&identity).accept(&runtime);
            server.peer.send(&words);
            server.peer.close();
            let met = agree(&runtime, &mut server, "broker.test", tls.clone(), |memory| memory).map(drop);
            let failure = met.unwrap_err();
            assert!(!matches!(failure, TlsFailure::NotTls { .. }), "{failure}");
        }
    }
}
