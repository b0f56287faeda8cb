use super::*;

#[test]
fn the_handshake_from_the_protocol_header_to_the_first_command() {
    let mut config = config();
    config.virtual_host = short("jobs");
    let mut pair = Pair::new(config);
    assert_eq!(pair.client.open_channel(), Err(CommandError::NotOpen));
    assert_eq!(pair.sent(), ["header 0.9.1"]);

    pair.feed(script::start("AMQPLAIN PLAIN"));
    assert_eq!(pair.sent(), ["0 start-ok PLAIN"]);
    pair.feed(script::tune(100, 8_192, 60));
    assert_eq!(pair.sent(), ["0 tune-ok 100 8192 30", "0 open jobs"]);
    assert!(!pair.client.is_open());
    pair.feed(script::open_ok());

    assert!(pair.client.is_open());
    let events = pair.events();
    let [Event::Opened { negotiated, server }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((negotiated.channel_max, negotiated.frame_max), (100, 8_192));
    assert_eq!(negotiated.heartbeat, Duration::from_secs(30));
    assert_eq!((server.product.as_str(), server.version.as_str()), ("RabbitMQ", "4.0.5"));
    assert!(pair.client.open_channel().is_ok());
}

#[test]
fn the_server_is_told_who_we_are_and_what_we_understand() {
    let mut config = config();
    config.connection_name = Some(short("mailer"));
    let mut pair = Pair::new(config);
    pair.sent();
    pair.feed(script::start("PLAIN"));
    let start_ok = script::start_ok_of(&pair.sent_bytes());
    assert_eq!(start_ok.response, b"\0ada\0hunter2");
    let version = concat!("version=", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        start_ok.properties,
        [
            "connection_name=mailer",
            "information=Reliable jobs on RabbitMQ",
            "platform=Rust",
            "product=leveret",
            version
        ]
    );
    assert_eq!(
        start_ok.capabilities,
        [
            "authentication_failure_close",
            "basic.nack",
            "connection.blocked",
            "consumer_cancel_notify",
            "exchange_exchange_bindings",
            "per_consumer_qos",
            "publisher_confirms",
        ]
    );
}

#[test]
fn the_first_of_our_mechanisms_that_is_offered_is_used() {
    use Mechanism::{AmqPlain, External, Plain};
    let amqplain: &[u8] = b"\x05LOGINS\0\0\0\x03ada\x08PASSWORDS\0\0\0\x07hunter2";
    let plain: &[u8] = b"\0ada\0hunter2";
    for (ours, offered, mechanism, response) in [
        (&[Plain, AmqPlain][..], "AMQPLAIN PLAIN EXTERNAL", "PLAIN", plain),
        (&[Plain, AmqPlain], "EXTERNAL AMQPLAIN", "AMQPLAIN", amqplain),
        (&[External, Plain], "PLAIN EXTERNAL", "EXTERNAL", b""),
        (&[External, Plain], "PLAIN AMQPLAIN", "PLAIN", plain),
    ] {
        let mut config = config();
        config.credentials = config.credentials.with_mechanisms(ours.iter().copied()).unwrap();
        let mut pair = Pair::new(config);
        pair.sent();
        pair.feed(script::start(offered));
        let start_ok = script::start_ok_of(&pair.sent_bytes());
        assert_eq!((start_ok.mechanism.as_str(), start_ok.response.as_slice()), (mechanism, response));
    }
}

#[test]
fn nothing_prints_the_password() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("PLAIN"));
    let mut out = SendBuf::default();
    let printed = format!("{:?}", pair.client);
    pair.client.poll_transmit(pair.now, &mut out);
    let printed = format!("{printed} {:?} {out:?}", pair.client);
    assert!(!printed.contains("hunter2") && !printed.contains("ada"), "{printed}");
}

#[test]
fn a_server_with_none_of_our_mechanisms_is_named_with_what_it_offers() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("EXTERNAL PLAINER"));
    let error = pair.end();
    let wanted = vec![Mechanism::Plain, Mechanism::AmqPlain];
    let offered = "EXTERNAL PLAINER".to_owned();
    assert_eq!(error, ConnectionError::MechanismNotOffered { wanted, offered });
    let text = error.to_string();
    assert!(text.contains("(PLAIN AMQPLAIN)") && text.contains("EXTERNAL PLAINER"), "{text}");
    assert!(error.is_permanent());
    assert!(pair.sent().is_empty());
}

#[test]
fn a_server_that_asks_for_more_than_one_answer_is_not_answered() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("PLAIN"));
    pair.sent();
    pair.feed(script::secure("and your mother's name?"));
    let error = pair.end();
    assert_eq!(error, ConnectionError::UnexpectedChallenge);
    assert!(error.is_permanent());
    assert!(pair.sent().is_empty());
}

#[test]
fn a_login_that_no_frame_holds_is_not_sent() {
    // The last one is not even encoded.
    for (bytes, at_least) in [(7_000, None), (8_000, Some(8_193)), (9_000, Some(9_000))] {
        let mut config = config();
        config.frame_max = 8_192;
        config.credentials = Credentials::new("", "t".repeat(bytes));
        let mut pair = Pair::new(config);
        pair.sent();
        pair.feed(script::start("PLAIN"));
        let Some(at_least) = at_least else {
            assert_eq!(pair.sent(), ["0 start-ok PLAIN"]);
            continue;
        };
        let error = pair.end();
        let ConnectionError::LoginTooLarge { bytes, limit: 8_192 } = error else { panic!("{error}") };
        assert!((at_least..at_least + 300).contains(&bytes), "{bytes}");
        assert!(error.is_permanent() && pair.sent().is_empty());
    }
}

#[test]
fn wrong_credentials_are_refused_with_the_servers_text() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("PLAIN"));
    pair.sent();
    pair.feed(script::connection_close(403, "ACCESS_REFUSED - Login was refused"));
    assert_eq!(pair.sent(), ["0 close-ok"]);
    let error = pair.end();
    assert!(matches!(&error, ConnectionError::AuthenticationRefused { text } if text.contains("Login")));
    assert!(error.is_permanent());
}

#[test]
fn a_server_that_hangs_up_on_the_credentials_probably_refuses_them() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("PLAIN"));
    pair.sent();
    pair.client.handle_eof(pair.now);
    let error = pair.end();
    assert_eq!(error, ConnectionError::ProbablyAuthenticationRefused);
    assert!(!error.is_permanent(), "a server that restarts does the same");
}

#[test]
fn a_virtual_host_is_refused_by_its_name() {
    for (text, permanent) in [
        ("NOT_ALLOWED - vhost nope not found", true),
        ("NOT_ALLOWED - access to vhost 'nope' refused for user 'ada'", true),
        ("NOT_ALLOWED - access to vhost 'nope' refused: connection limit (1) is reached", false),
    ] {
        let mut config = config();
        config.virtual_host = short("nope");
        let mut pair = Pair::new(config);
        pair.sent();
        pair.feed(script::start("PLAIN"));
        pair.feed(script::tune(0, 0, 0));
        pair.sent();
        pair.feed(script::connection_close(530, text));
        assert_eq!(pair.sent(), ["0 close-ok"]);
        let error = pair.end();
        let ConnectionError::VirtualHostRefused { virtual_host, text: found } = &error else {
            panic!("{error}");
        };
        assert_eq!((virtual_host.as_str(), found.as_str()), ("nope", text));
        assert_eq!(error.is_permanent(), permanent, "{text}");
    }
}

#[test]
fn a_peer_of_another_kind_is_told_by_its_first_bytes() {
    let peer = |bytes: &[u8]| {
        let mut pair = Pair::new(config());
        pair.sent();
        pair.feed(bytes);
        pair.client.handle_eof(pair.now);
        let error = pair.end();
        assert!(pair.sent().is_empty());
        assert!(error.is_permanent(), "{error}");
        error
    };
    let version = |id, major, minor, revision| {
        let offered = ProtocolVersion { id, major, minor, revision };
        ConnectionError::VersionMismatch { offered }
    };
    assert_eq!(peer(b"AMQP\x00\x00\x08\x00"), version(0, 0, 8, 0));
    assert_eq!(peer(&script::start_of_version(0, 8)), version(0, 0, 8, 0));
    for (bytes, id) in
        [(b"AMQP\x00\x01\x00\x00", 0), (b"AMQP\x02\x01\x00\x00", 2), (b"AMQP\x03\x01\x00\x00", 3)]
    {
        let error = peer(bytes);
        assert_eq!(error, version(id, 1, 0, 0));
        assert!(matches!(error, ConnectionError::VersionMismatch { offered } if offered.is_amqp_1_0()));
    }
    for (bytes, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], ForeignPeer::Http),
        (b"HTTP", ForeignPeer::Http),
        (b"\x15\x03\x03\x00\x02\x02\x46", ForeignPeer::Tls),
        (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", ForeignPeer::Tls),
        (b"220 mail.example ESMTP", ForeignPeer::Unknown),
    ] {
        let error = peer(bytes);
        assert!(matches!(error, ConnectionError::NotAmqp { peer, .. } if peer == expected), "{error}");
    }
}

#[test]
fn a_server_that_stalls_within_its_first_bytes_is_silent() {
    for beginning in [&b"AMQ"[..], b"HTTP", b"\x01\0\0"] {
        let mut pair = Pair::new(config());
        pair.sent();
        let deadline = pair.now + Duration::from_secs(10);
        pair.feed(beginning);
        assert_eq!((pair.next_timeout(), pair.now), (TimerKind::HandshakeDeadline, deadline));
        assert_eq!(pair.end(), ConnectionError::HandshakeTimeout { stage: HandshakeStage::Start });
    }
}

#[test]
fn silence_at_every_step_ends_at_the_deadline_and_names_the_step() {
    let steps = [script::start("PLAIN"), script::tune(0, 0, 0)];
    for answered in 0..=steps.len() {
        let mut config = config();
        config.heartbeat = Duration::ZERO;
        let mut pair = Pair::new(config);
        let deadline = pair.now + Duration::from_secs(10);
        pair.pass(Duration::from_secs(3));
        for answer in &steps[..answered] {
            pair.sent();
            pair.feed(answer);
        }
        pair.sent();
        assert_eq!(pair.next_timeout(), TimerKind::HandshakeDeadline);
        assert_eq!(pair.now, deadline, "the deadline counts from the start");
        let stage = [HandshakeStage::Start, HandshakeStage::Tune, HandshakeStage::OpenOk][answered];
        assert_eq!(pair.end(), ConnectionError::HandshakeTimeout { stage });
        assert!(pair.sent().is_empty());
    }
}

#[test]
fn the_stream_may_end_at_every_step() {
    let mut pair = Pair::new(config());
    pair.client.handle_eof(pair.now);
    assert_eq!(pair.end(), ConnectionError::Eof);
    let mut pair = Pair::new(config());
    pair.feed(script::start("PLAIN"));
    pair.feed(script::tune(0, 0, 0));
    pair.client.handle_eof(pair.now);
    assert_eq!(pair.end(), ConnectionError::Eof);
}

#[test]
fn a_close_during_the_handshake_ends_it_at_once() {
    let mut pair = Pair::new(config());
    pair.client.close(pair.now, 200, "never mind");
    assert!(pair.sent().is_empty());
    assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: false });
}

#[test]
fn a_server_that_wants_tiny_frames_is_refused() {
    let mut pair = Pair::new(config());
    pair.feed(script::start("PLAIN"));
    pair.feed(script::tune(0, 4_095, 0));
    assert_eq!(pair.end(), ConnectionError::Protocol(ProtocolError::FrameMaxTooSmall { offered: 4_095 }));
}

#[test]
fn limits_are_agreed_on_as_rabbitmq_does() {
    // Ours, the server's, and the answer: channel_max, frame_max, heartbeat.
    for (ours, theirs, answer) in [
        ((2_047, 131_072, 30), (2_047, 131_072, 60), "2047 131072 30"),
        ((2_047, 131_072, 60), (0, 0, 0), "2047 131072 60"),
        ((0, 131_072, 0), (128, 131_072, 60), "128 131072 60"),
        ((0, 131_072, 0), (0, 0, 0), "0 131072 0"),
        ((2_047, 4_096, 30), (2_047, 131_072, 60), "2047 8192 30"),
        ((2_047, 131_072, 30), (2_047, 4_096, 60), "2047 4096 30"),
    ] {
        let mut config = config();
        (config.channel_max, config.frame_max) = (ours.0, ours.1);
        config.heartbeat = Duration::from_secs(ours.2);
        let mut pair = Pair::new(config);
        pair.sent();
        pair.feed(script::start("PLAIN"));
        pair.sent();
        pair.feed(script::tune(theirs.0, theirs.1, theirs.2));
        assert_eq!(pair.sent()[0], format!("0 tune-ok {answer}"));
        pair.feed(script::open_ok());
        let off = ours.2 == 0 && theirs.2 == 0;
        assert_eq!(pair.client.poll_timeout().is_none(), off, "no heartbeat, no timer");
    }
}

#[test]
fn steps_out_of_order_break_the_protocol() {
    for early in [script::secure("?"), script::tune(0, 0, 0), script::open_ok(), script::blocked("disk")] {
        let mut pair = Pair::new(config());
        pair.feed(early);
        let error = pair.end();
        assert!(
            matches!(error, ConnectionError::Protocol(ProtocolError::UnexpectedMethod { .. })),
            "{error}"
        );
    }
}

#[test]
fn a_secret_is_replaced_and_the_server_says_when_it_holds() {
    let mut pair = Pair::open(config());
    pair.client.update_secret("token-2", "the first one expires").unwrap();
    assert_eq!(pair.client.update_secret("token-3", ""), Err(CommandError::SecretUnanswered));
    assert!(!format!("{:?}", pair.client).contains("token"));
    assert_eq!(pair.sent(), ["0 update-secret token-2 the first one expires"]);
    assert!(pair.events().is_empty());
    pair.feed(script::update_secret_ok());
    assert_eq!(pair.events(), [Event::SecretUpdated]);
    pair.client.update_secret("token-3", &"r".repeat(300)).unwrap();
    assert_eq!(pair.sent(), [format!("0 update-secret token-3 {}", "r".repeat(255))]);
}

#[test]
fn a_secret_goes_out_also_while_publishes_are_blocked() {
    let mut pair = Pair::confirming(1, config());
    pair.feed(script::blocked("memory"));
    pair.publish(1, "later").unwrap();
    pair.client.update_secret("token-2", "").unwrap();
    assert_eq!(pair.sent(), ["0 update-secret token-2 "]);
}

#[test]
fn a_refused_secret_ends_the_connection_by_its_name() {
    let mut pair = Pair::open(config());
    pair.client.update_secret("token-2", "").unwrap();
    pair.sent();
    let text = "NOT_ALLOWED - New secret was refused by one of the backends";
    pair.feed(script::connection_close(530, text));
    assert_eq!(pair.sent(), ["0 close-ok"]);
    let error = pair.end();
    assert_eq!(error, ConnectionError::SecretRefused { text: short(text) });
    assert!(!error.is_permanent(), "the credentials of the configuration may still be good");
}

#[test]
fn a_close_after_the_secret_was_taken_has_nothing_to_do_with_it() {
    let mut pair = Pair::open(config());
    pair.client.update_secret("token-2", "").unwrap();
    pair.sent();
    pair.feed(script::update_secret_ok());
    pair.feed(script::connection_close(530, "NOT_ALLOWED"));
    assert!(matches!(pair.end(), ConnectionError::ClosedByPeer(_)));
}

#[test]
fn an_answer_to_no_secret_changes_nothing() {
    let mut pair = Pair::open(config());
    pair.feed(script::update_secret_ok());
    assert!(pair.client.is_open() && pair.events().is_empty());
}

#[test]
fn a_secret_that_no_frame_holds_or_that_comes_too_early_is_not_taken() {
    let mut pair = Pair::new(config());
    assert_eq!(pair.client.update_secret("token", ""), Err(CommandError::NotOpen));
    pair.shake_hands();
    // Eight bytes of frame, four of class and method, five of lengths.
    let longest = 131_072 - 17;
    let error = pair.client.update_secret(&"t".repeat(longest + 1), "").unwrap_err();
    assert_eq!(error, CommandError::TooLarge { bytes: 131_073, limit: 131_072 });
    assert_eq!(pair.client.update_secret(&"t".repeat(longest), ""), Ok(()));
    assert_eq!(pair.sent_bytes().len(), 131_072);
}
