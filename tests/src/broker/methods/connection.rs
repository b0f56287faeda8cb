//! Handshake and close of a connection (AMQP 0-9-1, 1.4).

use std::time::Duration;

use amq_protocol::protocol::{AMQPClass, connection};
use amq_protocol::types::{AMQPValue, FieldTable, LongString, ShortString as AmqpShortString};
use leveret_core::text::ShortString;

use super::{not_implemented, text};
use crate::broker::channel::At;
use crate::broker::connection::{Capabilities, Stage};
use crate::broker::error::{AmqpError, Code};
use crate::broker::event::{BrokerEvent, EndCause};
use crate::broker::{Broker, ConnectionId, frames, lifecycle, table};

/// What RabbitMQ offers and this broker has.
const CAPABILITIES: [&str; 7] = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "authentication_failure_close",
    "per_consumer_qos",
];

impl Broker {
    pub(in crate::broker) fn send_start(&mut self, conn: ConnectionId) {
        let mut capabilities = FieldTable::default();
        for name in CAPABILITIES {
            capabilities.insert(AmqpShortString::from(name), AMQPValue::Boolean(true));
        }
        let mut server = FieldTable::default();
        let mut set = |name: &str, value: &str| {
            server.insert(AmqpShortString::from(name), AMQPValue::LongString(value.into()));
        };
        set("product", "leveret-broker");
        set("version", env!("CARGO_PKG_VERSION"));
        set("platform", "Rust");
        set("information", "an embedded broker for tests and demonstrations");
        server.insert(AmqpShortString::from("capabilities"), AMQPValue::FieldTable(capabilities));
        let start = connection::Start {
            version_major: 0,
            version_minor: 9,
            server_properties: server,
            mechanisms: LongString::from("PLAIN AMQPLAIN"),
            locales: LongString::from("en_US"),
        };
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.stage = Stage::StartOk;
            connection.send(0, AMQPClass::Connection(connection::AMQPMethod::Start(start)));
        }
    }

    /// A method on channel 0.
    pub(in crate::broker) fn on_connection_method(
        &mut self,
        at: At,
        method: AMQPClass,
    ) -> Result<(), AmqpError> {
        use connection::AMQPMethod as M;
        let Some(stage) = self.connections.get(&at.conn).map(|connection| connection.stage) else {
            return Ok(());
        };
        let AMQPClass::Connection(method) = method else { return Err(out_of_turn(stage)) };
        match (stage, method) {
            (Stage::StartOk, M::StartOk(start_ok)) => self.log_in(at, &start_ok),
            (Stage::TuneOk, M::TuneOk(tune_ok)) => self.tune(at, &tune_ok),
            (Stage::Open, M::Open(open)) => self.open(at, &open),
            (_, M::Close(_)) => {
                self.release(at.conn, EndCause::ClosedByClient);
                self.reply(at, lifecycle::close_ok());
                self.end_after_flush(at.conn);
                Ok(())
            }
            // An answer that came too late, or to nothing.
            (_, M::CloseOk(_)) => Ok(()),
            (Stage::Running, M::UpdateSecret(_)) => Err(not_implemented("connection.update-secret")),
            (stage, _) => Err(out_of_turn(stage)),
        }
    }

    fn log_in(&mut self, at: At, start_ok: &connection::StartOk) -> Result<(), AmqpError> {
        let mechanism = start_ok.mechanism.as_str();
        let credentials = match mechanism {
            "PLAIN" => plain(start_ok.response.as_bytes()),
            "AMQPLAIN" => amqplain(start_ok.response.as_bytes()),
            other => {
                let detail = format!("unknown authentication mechanism '{other}'");
                return Err(AmqpError::new(Code::CommandInvalid, detail));
            }
        };
        let capabilities = capabilities(&start_ok.client_properties);
        let name = start_ok.client_properties.inner().get("connection_name");
        let name =
            name.and_then(AMQPValue::as_long_string).map(|name| ShortString::truncated(&name.to_string()));
        let Some(connection) = self.connections.get_mut(&at.conn) else { return Ok(()) };
        connection.capabilities = capabilities;
        connection.name = name;
        match credentials.filter(|(user, password)| self.config.knows(user, password)) {
            Some((user, _)) => {
                connection.user = ShortString::truncated(&user);
                connection.stage = Stage::TuneOk;
                let tune = connection::Tune {
                    channel_max: self.config.channel_max,
                    frame_max: self.config.frame_max,
                    heartbeat: self.config.heartbeat,
                };
                connection.send(0, AMQPClass::Connection(connection::AMQPMethod::Tune(tune)));
            }
            None => {
                let error = AmqpError::new(
                    Code::AccessRefused,
                    format!(
                        "Login was refused using authentication mechanism {mechanism}. For details see the \
                         broker logfile."
                    ),
                );
                self.refuse_login(at.conn, &error);
            }
        }
        Ok(())
    }

    /// RabbitMQ: a refused login is answered only to a client that advertised
    /// `authentication_failure_close`; others find their socket closed.
    fn refuse_login(&mut self, conn: ConnectionId, error: &AmqpError) {
        let capabilities = self.connections.get(&conn).map(|connection| connection.capabilities);
        if capabilities.is_some_and(|capabilities| capabilities.authentication_failure_close) {
            self.start_close(conn, (0, 0), error.code.number(), error.text());
        } else {
            let cause = EndCause::ClosedByBroker { code: error.code.number(), text: error.text() };
            self.release(conn, cause);
            self.end_after_flush(conn);
        }
    }

    fn tune(&mut self, at: At, tune_ok: &connection::TuneOk) -> Result<(), AmqpError> {
        negotiated("frame_max", tune_ok.frame_max, frames::FRAME_MIN_SIZE, self.config.frame_max)?;
        negotiated("channel_max", tune_ok.channel_max.into(), 1, self.config.channel_max.into())?;
        if let Some(connection) = self.connections.get_mut(&at.conn) {
            connection.frame_max = tune_ok.frame_max;
            connection.channel_max = tune_ok.channel_max;
            // RabbitMQ: exactly what the client answers, also if it is more than was proposed.
            let seconds = Duration::from_secs(tune_ok.heartbeat.into());
            connection.heartbeat = Some(seconds).filter(|seconds| !seconds.is_zero());
            connection.stage = Stage::Open;
        }
        Ok(())
    }

    fn open(&mut self, at: At, open: &connection::Open) -> Result<(), AmqpError> {
        let vhost = text(&open.virtual_host);
        if !self.config.vhosts.contains(&vhost) {
            return Err(AmqpError::new(Code::NotAllowed, format!("vhost {vhost} not found")));
        }
        if let Some(connection) = self.connections.get_mut(&at.conn) {
            connection.vhost = vhost;
            connection.stage = Stage::Running;
            connection.give_up_at = None;
            let ok = connection::AMQPMethod::OpenOk(connection::OpenOk {});
            connection.send(0, AMQPClass::Connection(ok));
            self.events.push(BrokerEvent::Opened { conn: at.conn, name: connection.name.clone() });
        }
        Ok(())
    }
}

/// The refusal of a method that does not come at this point.
fn out_of_turn(stage: Stage) -> AmqpError {
    let state = match stage {
        Stage::Header | Stage::StartOk => "starting",
        Stage::TuneOk => "tuning",
        Stage::Open => "opening",
        Stage::Running => "running",
        Stage::Closing | Stage::Ended => "closing",
    };
    AmqpError::new(Code::ChannelError, format!("unexpected method in connection state {state}"))
}

/// RabbitMQ: zero means "no limit", which is more than any limit.
fn negotiated(field: &str, value: u32, min: u32, max: u32) -> Result<(), AmqpError> {
    let (which, limit) = if value == 0 || value > max {
        ("higher than the maximum", max)
    } else if value < min {
        ("lower than the minimum", min)
    } else {
        return Ok(());
    };
    let detail = format!("negotiated {field} = {value} is {which} allowed value ({limit})");
    Err(AmqpError::new(Code::NotAllowed, detail))
}

/// RFC 4616: an identity to act for (not used), the user and the password, with zeros between.
fn plain(response: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut parts = response.split(|byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let user = String::from_utf8(user.to_vec()).ok()?;
    parts.next().is_none().then(|| (user, password.to_vec()))
}

/// The fields of a table, without its length (RabbitMQ's own mechanism, kept for old clients).
fn amqplain(response: &[u8]) -> Option<(String, Vec<u8>)> {
    let long_string = |name: &[u8]| {
        let field = table::fields(response).filter_map(Result::ok).find(|field| field.name == name)?;
        field.value.get(4..).filter(|_| field.kind == b'S').map(<[u8]>::to_vec)
    };
    Some((String::from_utf8(long_string(b"LOGIN")?).ok()?, long_string(b"PASSWORD")?))
}

fn capabilities(client_properties: &FieldTable) -> Capabilities {
    let table = client_properties.inner().get("capabilities").and_then(AMQPValue::as_field_table);
    let has =
        |name| table.and_then(|table| table.inner().get(name)).and_then(AMQPValue::as_bool) == Some(true);
    Capabilities {
        consumer_cancel_notify: has("consumer_cancel_notify"),
        connection_blocked: has("connection.blocked"),
        authentication_failure_close: has("authentication_failure_close"),
    }
}
