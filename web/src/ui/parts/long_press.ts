//! A finger that rests on something opens its menu, as a right click does elsewhere. Moving it means scrolling, not that.

const REST_MS = 450;
const STILL_PX = 10;

export function longPress(action: () => void) {
  return (element: HTMLElement): (() => void) | undefined => {
    if (navigator.maxTouchPoints === 0) return undefined;
    const stop = new AbortController();
    const { signal } = stop;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let from = { x: 0, y: 0 };
    let rested = false;
    let swallow = false;

    element.addEventListener('pointerdown', ({ pointerType, clientX: x, clientY: y }) => {
      rested = false;
      swallow = false;
      if (pointerType !== 'touch') return;
      from = { x, y };
      clearTimeout(timer);
      timer = setTimeout(() => {
        rested = true;
        navigator.vibrate?.(8);
      }, REST_MS);
    }, { signal });
    element.addEventListener('pointermove', ({ clientX, clientY }) => {
      if (Math.hypot(clientX - from.x, clientY - from.y) <= STILL_PX) return;
      clearTimeout(timer);
      rested = false;
    }, { signal });
    // Opened when the finger is lifted: to the browser, lifting it beside an open menu means closing the menu.
    for (const name of ['pointerup', 'pointercancel'] as const) {
      element.addEventListener(name, () => {
        clearTimeout(timer);
        if (!rested) return;
        rested = false;
        swallow = true;
        setTimeout(action);
      }, { signal });
    }
    // To a browser that waits longer than we do, lifting the finger is a tap: it would come after the menu has opened, and
    // hit what the menu has put under the finger, or close it.
    element.addEventListener('touchend', (event) => {
      if (swallow && event.cancelable) event.preventDefault();
    }, { signal, passive: false });
    // The click that ends the press would open what the menu is about; the browser's own menu would cover ours.
    element.addEventListener('click', (event) => {
      if (!swallow) return;
      swallow = false;
      event.preventDefault();
      event.stopPropagation();
    }, { signal, capture: true });
    element.addEventListener('contextmenu', (event) => {
      if (rested || swallow) event.preventDefault();
    }, { signal });
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  };
}
