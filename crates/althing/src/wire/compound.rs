//! Values made of others: options, lists, maps, results, tuples, boxes.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::{Depth, Fields, Value, Wire, WireError, WireField, alone, finish, merge, put_nested};

alone!([T: WireField] Option<T>);
impl<T: WireField> WireField for Option<T> {
    fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.encode_single(number, out);
        }
    }

    fn merge_field(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), WireError> {
        *slot = Some(Some(T::decode_single(value)?));
        Ok(())
    }

    fn absent(_: Depth) -> Result<Self, WireError> {
        Ok(None)
    }
}

alone!([T: WireField] Vec<T>);
impl<T: WireField> WireField for Vec<T> {
    fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
        T::encode_repeated(self, number, out);
    }

    fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
        T::encode_list(self, number, out);
    }

    fn decode_single(value: Value<'_>) -> Result<Self, WireError> {
        T::decode_list(value)
    }

    fn merge_field(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), WireError> {
        T::merge_repeated(slot.get_or_insert_default(), value)
    }

    fn absent(_: Depth) -> Result<Self, WireError> {
        Ok(Vec::new())
    }
}

/// A map is a repeated message of key and value.
macro_rules! map {
    ([$($parameters:tt)*] $type:ty) => {
        alone!([$($parameters)*] $type);

        impl<$($parameters)*> WireField for $type {
            fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
                for (key, value) in self {
                    put_nested(number, out, |out| {
                        key.encode_field(1, out);
                        value.encode_field(2, out);
                    });
                }
            }

            fn merge_field(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), WireError> {
                let (key, value) = <(K, V)>::decode_single(value)?;
                slot.get_or_insert_default().insert(key, value);
                Ok(())
            }

            fn absent(_: Depth) -> Result<Self, WireError> {
                Ok(Self::default())
            }
        }
    };
}

map!([K: WireField + Ord, V: WireField] BTreeMap<K, V>);
map!([K: WireField + Eq + Hash, V: WireField, S: BuildHasher + Default] HashMap<K, V, S>);

impl<T: WireField, E: WireField> Wire for Result<T, E> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => value.encode_single(1, out),
            Err(error) => error.encode_single(2, out),
        }
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let mut fields = Fields::new(bytes, depth);
        let mut result = None;
        while let Some(value) = fields.next_field()? {
            match value.number() {
                1 => result = Some(Ok(T::decode_single(value)?)),
                2 => result = Some(Err(E::decode_single(value)?)),
                _ => {}
            }
        }
        result.ok_or_else(|| WireError::new("a result that is neither ok nor an error"))
    }
}

impl<T: WireField, E: WireField> WireField for Result<T, E> {}

/// The same bytes as what is inside.
impl<T: WireField> Wire for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        T::decode_within(bytes, depth).map(Self::new)
    }
}

impl<T: WireField> WireField for Box<T> {
    fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
        (**self).encode_field(number, out);
    }

    fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
        (**self).encode_single(number, out);
    }

    fn decode_single(value: Value<'_>) -> Result<Self, WireError> {
        T::decode_single(value).map(Self::new)
    }

    fn merge_field(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), WireError> {
        let mut inside = slot.take().map(|boxed| *boxed);
        T::merge_field(&mut inside, value)?;
        *slot = inside.map(Self::new);
        Ok(())
    }

    fn absent(depth: Depth) -> Result<Self, WireError> {
        T::absent(depth).map(Self::new)
    }
}

/// The same bytes as what is inside.
impl<T: WireField> Wire for Arc<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        T::decode_within(bytes, depth).map(Self::new)
    }
}

impl<T: WireField> WireField for Arc<T> {
    fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
        (**self).encode_field(number, out);
    }

    fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
        (**self).encode_single(number, out);
    }

    fn decode_single(value: Value<'_>) -> Result<Self, WireError> {
        T::decode_single(value).map(Self::new)
    }

    fn merge_field(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), WireError> {
        // Nobody else has it yet: it was made by the occurrence before.
        let mut inside = slot.take().and_then(Arc::into_inner);
        T::merge_field(&mut inside, value)?;
        *slot = inside.map(Self::new);
        Ok(())
    }

    fn absent(depth: Depth) -> Result<Self, WireError> {
        T::absent(depth).map(Self::new)
    }
}

impl Wire for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let mut fields = Fields::new(bytes, depth);
        while fields.next_field()?.is_some() {}
        Ok(())
    }
}

impl WireField for () {}

macro_rules! tuple {
    ($($type:ident $place:tt $number:literal),+) => {
        impl<$($type: WireField),+> Wire for ($($type,)+) {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$place.encode_field($number, out);)+
            }

            fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
                let mut slots: ($(Option<$type>,)+) = ($(None::<$type>,)+);
                let mut fields = Fields::new(bytes, depth);
                while let Some(value) = fields.next_field()? {
                    match value.number() {
                        $($number => merge(&mut slots.$place, value, stringify!($place))?,)+
                        _ => {}
                    }
                }
                Ok(($(finish(slots.$place, depth, stringify!($place))?,)+))
            }
        }

        impl<$($type: WireField),+> WireField for ($($type,)+) {}
    };
}

tuple!(A 0 1);
tuple!(A 0 1, B 1 2);
tuple!(A 0 1, B 1 2, C 2 3);
tuple!(A 0 1, B 1 2, C 2 3, D 3 4);
tuple!(A 0 1, B 1 2, C 2 3, D 3 4, E 4 5);
tuple!(A 0 1, B 1 2, C 2 3, D 3 4, E 4 5, F 5 6);
