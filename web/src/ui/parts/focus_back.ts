//! Gives the focus back to where it was. What had it may be gone by then, as the buttons of a message are that exist only
//! while it has the focus: then whatever is around it gets it.

/** To be called before the focus moves; what is returned, when it is to come back. */
export function focusBack(): () => void {
  const stops: HTMLElement[] = [];
  for (let element = document.activeElement; element instanceof HTMLElement; element = element.parentElement) {
    if (element.tabIndex >= 0 || element.hasAttribute('tabindex')) stops.push(element);
  }
  return () => stops.find((element) => element.isConnected)?.focus();
}
