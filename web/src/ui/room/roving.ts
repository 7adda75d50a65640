//! One stop for Tab in a list of many rows: the links and buttons inside a row are stops only while the row holds the focus.
//! Without it, the way from the heading to the text field leads through every link of every message on screen.

/** What is there for the pointer alone, as the face beside a name that does the same, is no stop. */
const STOPS = 'a[href], button:not([aria-hidden]), input, textarea, select, summary, [tabindex="0"]:not(article)';

/** For the element that holds the rows, each an `article`. */
export function rovingRows(rows: HTMLElement): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let current: Element | null = null;

  const set = (row: Element, tabIndex: 0 | -1) => {
    for (const each of row.querySelectorAll<HTMLElement>(STOPS)) each.tabIndex = tabIndex;
  };

  rows.addEventListener('focusin', ({ target }) => {
    const row = target instanceof Element ? target.closest('article') : null;
    if (row === current) return;
    if (current) set(current, -1);
    current = row;
    if (row) set(row, 0);
  }, { signal });
  rows.addEventListener('focusout', ({ relatedTarget }) => {
    if (!current || (relatedTarget instanceof Node && current.contains(relatedTarget))) return;
    set(current, -1);
    current = null;
  }, { signal });

  const added = new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) {
        if (!(node instanceof HTMLElement)) continue;
        const row = node.closest('article');
        if (row && row === current) continue;
        if (node.matches(STOPS)) node.tabIndex = -1;
        set(node, -1);
      }
    }
  });
  added.observe(rows, { childList: true, subtree: true });
  set(rows, -1);
  return () => {
    stop.abort();
    added.disconnect();
  };
}
