#[allow(clippy::unused_async)]
impl<T: Item> Cart<T> {
    pub async fn add(&mut self, item: T, count: u32) -> Result<u32, Full> {
        self.put(item, count)
    }
    pub async fn items(&self) -> Vec<T> {
        self.items.clone()
    }
    async fn audit(&self, auditor: ActorRef<Auditor>) {
        auditor.look(self.items.len()).try_tell().ok();
    }
}
impl<T: Item> ::althing::Actor for Cart<T> {
    const NAME: &'static str = "shop.cart";
}
/// The messages of `Cart`, one for each call.
#[allow(dead_code, unused_imports)]
pub mod cart_messages {
    use super::*;
    /// What `CartCalls::add` sends.
    pub struct Add<T: Item> {
        /// The call's `item`.
        pub item: T,
        /// The call's `count`.
        pub count: u32,
    }
    /// What `CartCalls::items` sends.
    pub struct Items;
    /// What `CartCalls::audit` sends.
    pub(super) struct Audit {
        /// The call's `auditor`.
        pub(super) auditor: ActorRef<Auditor>,
    }
}
impl<T: Item> ::althing::Handler<cart_messages::Add<T>> for Cart<T> {
    type Reply = Result<u32, Full>;
    fn handle(
        &mut self,
        message: cart_messages::Add<T>,
        _ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.add(message.item, message.count)
    }
}
impl<T: Item> ::althing::ReadHandler<cart_messages::Items> for Cart<T> {
    type Reply = Vec<T>;
    fn read(
        &self,
        _message: cart_messages::Items,
        _ctx: &::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.items()
    }
}
impl<T: Item> ::althing::Receives<cart_messages::Items> for Cart<T> {
    type Reply = Vec<T>;
    type Way = ::althing::Read;
}
impl<T: Item> ::althing::ReadHandler<cart_messages::Audit> for Cart<T> {
    type Reply = ();
    fn read(
        &self,
        message: cart_messages::Audit,
        _ctx: &::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.audit(message.auditor)
    }
}
impl<T: Item> ::althing::Receives<cart_messages::Audit> for Cart<T> {
    type Reply = ();
    type Way = ::althing::Read;
}
/// The calls that an `ActorRef<Cart>` takes.
#[allow(dead_code, private_bounds, private_interfaces)]
pub trait CartCalls<T: Item> {
    /// Sends `cart_messages::Add`.
    fn add(
        &self,
        item: T,
        count: u32,
    ) -> ::althing::Call<'_, Cart<T>, cart_messages::Add<T>, ::althing::Write>;
    /// Sends `cart_messages::Items`.
    fn items(
        &self,
    ) -> ::althing::Call<'_, Cart<T>, cart_messages::Items, ::althing::Read>;
    /// Sends `cart_messages::Audit`.
    fn audit(
        &self,
        auditor: ActorRef<Auditor>,
    ) -> ::althing::Call<'_, Cart<T>, cart_messages::Audit, ::althing::Read>;
}
impl<T: Item> CartCalls<T> for ::althing::ActorRef<Cart<T>> {
    fn add(
        &self,
        item: T,
        count: u32,
    ) -> ::althing::Call<'_, Cart<T>, cart_messages::Add<T>, ::althing::Write> {
        self.send(cart_messages::Add { item, count })
    }
    fn items(
        &self,
    ) -> ::althing::Call<'_, Cart<T>, cart_messages::Items, ::althing::Read> {
        self.send(cart_messages::Items)
    }
    fn audit(
        &self,
        auditor: ActorRef<Auditor>,
    ) -> ::althing::Call<'_, Cart<T>, cart_messages::Audit, ::althing::Read> {
        self.send(cart_messages::Audit { auditor })
    }
}
impl<T: Item> ::althing::Wire for cart_messages::Add<T>
where
    T: ::althing::wire::WireField,
{
    fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
        <T as ::althing::wire::WireField>::encode_field(&self.item, 1u32, out);
        <u32 as ::althing::wire::WireField>::encode_field(&self.count, 2u32, out);
    }
    fn decode_within(
        bytes: &[u8],
        depth: ::althing::wire::Depth,
    ) -> ::core::result::Result<Self, ::althing::WireError> {
        let mut field_1 = ::core::option::Option::None::<T>;
        let mut field_2 = ::core::option::Option::None::<u32>;
        let mut fields = ::althing::wire::Fields::new(bytes, depth);
        while let ::core::option::Option::Some(value) = fields.next_field()? {
            match value.number() {
                1u32 => ::althing::wire::merge(&mut field_1, value, "item")?,
                2u32 => ::althing::wire::merge(&mut field_2, value, "count")?,
                _ => {}
            }
        }
        ::core::result::Result::Ok(Self {
            item: ::althing::wire::finish(field_1, depth, "item")?,
            count: ::althing::wire::finish(field_2, depth, "count")?,
        })
    }
}
impl ::althing::Wire for cart_messages::Items {
    fn encode(&self, _out: &mut ::std::vec::Vec<u8>) {}
    fn decode_within(
        bytes: &[u8],
        depth: ::althing::wire::Depth,
    ) -> ::core::result::Result<Self, ::althing::WireError> {
        <() as ::althing::Wire>::decode_within(bytes, depth)?;
        ::core::result::Result::Ok(Self {})
    }
}
#[allow(private_bounds)]
impl<T: Item> ::althing::Remote for Cart<T>
where
    T: ::althing::wire::WireField,
    Vec<T>: ::althing::Wire,
{
    fn codecs(codecs: &mut ::althing::Codecs<Self>) {
        codecs.message::<cart_messages::Add<T>, ::althing::Write>("add");
        codecs.message::<cart_messages::Items, ::althing::Read>("list");
    }
}
