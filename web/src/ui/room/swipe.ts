//! A finger that drags a message to the side answers it, as on every phone. Dragging up or down is scrolling and stays that.

/** From here on letting go means it. */
const DISTANCE_PX = 56;
const REACH_PX = 84;
/** The first pixels decide what the finger wants. */
const SLOP_PX = 12;

/** Whether a finger that goes sideways there moves something inside the message: code with long lines, a wide table. */
function scrollsSideways(target: EventTarget | null, within: HTMLElement): boolean {
  for (let part = target instanceof Element ? target : null; part && part !== within; part = part.parentElement) {
    if (part.scrollWidth > part.clientWidth && /auto|scroll/.test(getComputedStyle(part).overflowX)) return true;
  }
  return false;
}

export function swipeToReply(reply: () => void) {
  return (element: HTMLElement): (() => void) | undefined => {
    // A screen that no finger can touch is spared the listeners of each row.
    if (navigator.maxTouchPoints === 0) return undefined;
    const stop = new AbortController();
    const { signal } = stop;
    let from: { x: number; y: number } | undefined;
    let dragging = false;

    const moved = () => element.querySelector<HTMLElement>('.message');
    const settle = () => {
      from = undefined;
      dragging = false;
      const message = moved();
      if (!message) return;
      message.style.transition = 'transform 0.15s';
      message.style.transform = '';
    };

    element.addEventListener('touchstart', ({ touches, target }) => {
      const touch = touches.length === 1 && !scrollsSideways(target, element) ? touches[0] : undefined;
      from = touch && { x: touch.clientX, y: touch.clientY };
      dragging = false;
    }, { signal, passive: true });
    element.addEventListener('touchmove', (event) => {
      const touch = event.touches[0];
      if (!from || !touch) return;
      // Towards where the line begins: the other way a phone goes back.
      const way = getComputedStyle(element).direction === 'rtl' ? 1 : -1;
      const x = (touch.clientX - from.x) * way;
      const y = Math.abs(touch.clientY - from.y);
      if (!dragging && (y > SLOP_PX || x < -SLOP_PX)) return void (from = undefined);
      if (!dragging && x < SLOP_PX) return;
      dragging = true;
      if (event.cancelable) event.preventDefault();
      const message = moved();
      if (!message) return;
      message.style.transition = 'none';
      message.style.transform = `translateX(${way * Math.min(REACH_PX, Math.max(0, x))}px)`;
    }, { signal, passive: false });
    element.addEventListener('touchend', ({ changedTouches }) => {
      const touch = changedTouches[0];
      const far = dragging && from && touch && Math.abs(touch.clientX - from.x) >= DISTANCE_PX;
      settle();
      if (far) reply();
    }, { signal, passive: true });
    element.addEventListener('touchcancel', settle, { signal, passive: true });
    return () => stop.abort();
  };
}
