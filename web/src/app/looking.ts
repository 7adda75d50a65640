//! Whether somebody can be seeing what the page shows: read cursors, notifications and the new-messages line go by it.

export function isLooking(): boolean {
  return document.visibilityState === 'visible' && document.hasFocus();
}
