//! Tells panics that a program wants from those that nobody wants: the first are silent, the second
//! are kept for the report.

use std::panic::panic_any;
use std::sync::{Mutex, Once, PoisonError};

/// What a deliberate panic carries.
struct OnPurpose;

/// What the panic hook has heard; a hook is the process's, so this is too.
static UNWANTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) fn panic_on_purpose() -> ! {
    panic_any(OnPurpose)
}

/// Puts the hook in, once for the process.
pub(crate) fn listen() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().is::<OnPurpose>() {
                return;
            }
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            // The test's own verdict is printed as ever.
            if name.starts_with("torture") || name.starts_with("tokio") {
                UNWANTED.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
            } else {
                default(panic);
            }
        }));
    });
}

/// Takes what was heard since the last time.
pub(crate) fn take_unwanted() -> Vec<String> {
    std::mem::take(&mut UNWANTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether a caught panic was a deliberate one.
pub(crate) fn is_on_purpose(panic: &(dyn std::any::Any + Send)) -> bool {
    panic.is::<OnPurpose>()
}
