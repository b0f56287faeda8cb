//! Values for the tests of this module.

use bytes::Bytes;
use proptest::prelude::*;

use crate::message::{DeliveryMode, Properties};
use crate::table::{Table, Value};
use crate::text::ShortString;

pub(super) fn any_short() -> impl Strategy<Value = ShortString> {
    prop_oneof![".{0,20}", "a{250,255}"].prop_map(|text: String| ShortString::truncated(&text))
}

pub(super) fn any_table() -> impl Strategy<Value = Table> {
    prop::collection::vec((any_short(), any_value()), 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn any_value() -> impl Strategy<Value = Value> {
    let bytes = prop::collection::vec(any::<u8>(), 0..30).prop_map(Bytes::from);
    let leaf = prop_oneof![
        Just(Value::Void),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<u8>().prop_map(Value::U8),
        any::<i16>().prop_map(Value::I16),
        any::<u16>().prop_map(Value::U16),
        any::<i32>().prop_map(Value::I32),
        any::<u32>().prop_map(Value::U32),
        any::<i64>().prop_map(Value::I64),
        prop::num::f32::NORMAL.prop_map(Value::F32),
        prop::num::f64::NORMAL.prop_map(Value::F64),
        any::<u64>().prop_map(Value::Timestamp),
        any::<(u8, u32)>().prop_map(|(scale, value)| Value::Decimal { scale, value }),
        bytes.clone().prop_map(Value::LongString),
        bytes.prop_map(Value::ByteArray),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((any_short(), inner), 0..4)
                .prop_map(|fields| Value::Table(fields.into_iter().collect())),
        ]
    })
}

pub(super) fn any_properties() -> impl Strategy<Value = Properties> {
    let texts = prop::collection::vec(prop::option::of(any_short()), 10);
    let mode =
        prop_oneof![Just(None), Just(Some(DeliveryMode::Transient)), Just(Some(DeliveryMode::Persistent))];
    (texts, any_table(), mode, any::<Option<u8>>(), any::<Option<u64>>()).prop_map(
        |(texts, headers, delivery_mode, priority, timestamp)| {
            let text = |at: usize| texts[at].clone();
            Properties {
                content_type: text(0),
                content_encoding: text(1),
                headers,
                delivery_mode,
                priority,
                correlation_id: text(2),
                reply_to: text(3),
                expiration: text(4),
                message_id: text(5),
                timestamp,
                kind: text(6),
                user_id: text(7),
                app_id: text(8),
                cluster_id: text(9),
            }
        },
    )
}
