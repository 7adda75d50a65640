//! What nobody waits for, behind all that somebody does.

export const whenIdle: (run: () => void) => void = window.requestIdleCallback ?? ((run) => setTimeout(run));
