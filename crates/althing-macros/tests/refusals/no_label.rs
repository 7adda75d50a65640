use althing::actor;

struct Cart;

#[actor(name = "cart", label = "ssd")]
impl Cart {
    async fn take(&mut self) {}
}

fn main() {}
