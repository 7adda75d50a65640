//! Arrow keys through a list of kept messages, for the element that holds it. They walk from where the focus is.

export function keptKeys(list: HTMLElement): () => void {
  const stop = new AbortController();
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const stops = [...list.querySelectorAll<HTMLElement>('[data-kept]')];
    const row = document.activeElement?.closest('li');
    const at = stops.findIndex((each) => each.closest('li') === row);
    event.preventDefault();
    stops[Math.max(0, Math.min(stops.length - 1, at + step))]?.focus();
  }, { signal: stop.signal });
  return () => stop.abort();
}
