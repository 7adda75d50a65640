use althing::actor;

struct Cart;

pub struct Item;

pub struct Full;

#[actor(name = "cart", wire)]
impl Cart {
    async fn add(&mut self, _count: u32, _item: Option<Item>) {}

    async fn mark(&mut self, _letter: char) {}

    async fn is_full(&self) -> Result<(), Full> {
        Ok(())
    }
}

fn main() {}
