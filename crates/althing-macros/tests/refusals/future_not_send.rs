use std::rc::Rc;

use althing::actor;

struct Cart;

#[actor(name = "cart")]
impl Cart {
    async fn count(&self) -> u8 {
        let held = Rc::new(1);
        std::future::ready(()).await;
        *held
    }
}

fn main() {}
