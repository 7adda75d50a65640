//! Moving through messages with the keyboard: which number a key leads to.

const PAGE_ROWS = 10;

export function messageKey(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>, seq: number, lastSeq: number): number | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  switch (event.key) {
    case 'ArrowUp':
      return seq - 1;
    case 'ArrowDown':
      return seq + 1;
    case 'PageUp':
      return seq - PAGE_ROWS;
    case 'PageDown':
      return seq + PAGE_ROWS;
    case 'Home':
      return 1;
    case 'End':
      return lastSeq;
    default:
      return undefined;
  }
}
