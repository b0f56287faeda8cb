//! Servers that are none, or that stop before the client is connected.

use std::time::Duration;

use leveret_tokio::ConnectError;

use tokio::task::JoinSet;

use crate::connect;
use crate::server::{
    Answer, CHANNEL_OPEN, CONFIRM_SELECT, DECLARE, GREETING, OPEN, START_OK, Server, close, tune,
};

/// What a client says while it connects, and how many of it come before: each may be the last that is answered.
const STEPS: [((u16, u16), usize); 8] = [
    (GREETING, 0),
    (START_OK, 0),
    (OPEN, 0),
    (CHANNEL_OPEN, 0),
    (CHANNEL_OPEN, 1),
    (CONFIRM_SELECT, 0),
    (DECLARE, 0),
    (DECLARE, 1),
];

fn except_at(step: ((u16, u16), usize), answer: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
    Server::start(move |heard| if (heard.method, heard.before) == step { answer() } else { Answer::Usual })
}

/// The error names the server, so that somebody can find it.
fn assert_helps(error: &ConnectError, server: &Server) {
    let text = error.to_string();
    assert!(text.contains(&server.addr().to_string()), "{text}");
}

#[tokio::test]
async fn silence_at_any_step_ends_connecting_within_its_bound() {
    let mut all = JoinSet::new();
    for step in STEPS {
        all.spawn(async move {
            let server = except_at(step, || Answer::Silence);
            let begun = tokio::time::Instant::now();
            let error = connect(&server).await.unwrap_err();
            assert!(begun.elapsed() < Duration::from_secs(3), "{step:?}: {error}");
            assert_helps(&error, &server);
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn a_server_that_hangs_up_at_any_step_ends_connecting() {
    for step in STEPS {
        let server = except_at(step, || Answer::HangUp);
        let error = connect(&server).await.unwrap_err();
        assert_helps(&error, &server);
    }
}

#[tokio::test]
async fn a_server_that_closes_the_connection_at_any_step_ends_connecting() {
    for step in STEPS {
        let server = except_at(step, || Answer::Bytes(close(0, 541, "INTERNAL_ERROR - out of luck", (0, 0))));
        let error = connect(&server).await.unwrap_err();
        assert_helps(&error, &server);
        assert!(error.to_string().contains("out of luck"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_closes_every_channel_ends_connecting() {
    for cause in [CHANNEL_OPEN, CONFIRM_SELECT, DECLARE] {
        let server = Server::start(move |heard| {
            if heard.method == cause {
                Answer::CloseChannel(540, "NOT_IMPLEMENTED - no such thing here")
            } else {
                Answer::Usual
            }
        });
        let error = connect(&server).await.unwrap_err();
        assert!(error.to_string().contains("no such thing here"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_amqp_0_9_1_is_told_for_what_it_is() {
    let openings: [(&[u8], &str); 9] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "web server"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS"),
        (b"\x16\x03\x01\x00\xA5\x01\x00\x00\xA1\x03\x03", "TLS"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1-0-0"),
        (b"AMQP\x00\x00\x09\x00", "AMQP 0-9-0"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-"),
        (b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "does not speak AMQP"),
        (b"\x01\x00\x00\xFF\xFF\xFF\xFF", "a frame of 4294967303 bytes"),
        (b"\x01\x00\x00\x00\x02\x00\x0A\x00\x00\xCE", "broke the protocol"),
    ];
    for (opening, word) in openings {
        let server = except_at((GREETING, 0), || Answer::LastWords(opening.to_vec()));
        let error = connect(&server).await.unwrap_err();
        assert_helps(&error, &server);
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[tokio::test]
async fn an_odd_tune_is_lived_with_or_refused() {
    let odd = [
        ((0, 0, 0), true),
        ((2, 4_096, 1), true),
        ((65_535, u32::MAX, 65_535), true),
        ((1, 131_072, 60), false), // A channel for each queue and one more.
        ((5, 4_095, 60), false),
        ((5, 8, 60), false),
    ];
    for ((channels, frame, heartbeat), fine) in odd {
        let server = except_at((START_OK, 0), move || Answer::Bytes(tune(channels, frame, heartbeat)));
        match connect(&server).await {
            Ok(_) => assert!(fine, "{channels} {frame} {heartbeat}"),
            Err(error) => assert!(!fine, "{error}"),
        }
    }
}
