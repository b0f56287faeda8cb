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
fn the_server_is_told_the_credentials_and_what_we_understand() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("PLAIN"));
    let (response, capabilities) = script::start_ok_of(&pair.sent_bytes());
    assert_eq!(response, b"\0ada\0hunter2");
    assert_eq!(
        capabilities,
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
fn a_server_without_plain_is_named_with_what_it_offers() {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(script::start("EXTERNAL PLAINER"));
    let error = pair.end();
    assert_eq!(error, ConnectionError::MechanismNotOffered { offered: "EXTERNAL PLAINER".to_owned() });
    assert!(error.is_permanent() && error.to_string().contains("EXTERNAL PLAINER"));
    assert!(pair.sent().is_empty());
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
fn steps_out_of_order_break_the_protocol() {
    for early in [script::tune(0, 0, 0), script::open_ok(), script::blocked("disk")] {
        let mut pair = Pair::new(config());
        pair.feed(early);
        let error = pair.end();
        assert!(
            matches!(error, ConnectionError::Protocol(ProtocolError::UnexpectedMethod { .. })),
            "{error}"
        );
    }
}
