//! A finger that rests on something opens its menu, as a right click does elsewhere. Moving it means scrolling, not that.

const REST_MS = 450;
const STILL_PX = 10;

export function longPress(action: () => void) {
  return (element: HTMLElement): (() => void) => {
    const stop = new AbortController();
    const { signal } = stop;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let from = { x: 0, y: 0 };
    let pressed = false;
    const end = () => clearTimeout(timer);
    element.addEventListener('pointerdown', ({ pointerType, clientX: x, clientY: y }) => {
      pressed = false;
      if (pointerType !== 'touch') return;
      from = { x, y };
      clearTimeout(timer);
      timer = setTimeout(() => {
        pressed = true;
        navigator.vibrate?.(8);
        action();
      }, REST_MS);
    }, { signal });
    element.addEventListener('pointermove', ({ clientX, clientY }) => {
      if (Math.hypot(clientX - from.x, clientY - from.y) > STILL_PX) end();
    }, { signal });
    for (const name of ['pointerup', 'pointercancel', 'pointerleave'] as const) element.addEventListener(name, end, { signal });
    // The click that ends the press would open what the menu is about; the browser's own menu would cover ours.
    element.addEventListener('click', (event) => {
      if (!pressed) return;
      pressed = false;
      event.preventDefault();
      event.stopPropagation();
    }, { signal, capture: true });
    return () => {
      end();
      stop.abort();
    };
  };
}
